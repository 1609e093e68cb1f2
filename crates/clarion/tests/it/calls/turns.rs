//! Costly texts of one customer, and what they cost another one.

use std::path::Path;
use std::time::{Duration, Instant};

use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use phone::test_phone::Script;

use super::stage::{Customer, Stage};
use crate::audio_files::wav;
use crate::support::eventually;
use crate::support::telephone::Telephone;

/// A program that others take for a voice or for espeak-ng.
fn script(folder: &Path, name: &str, lines: &str) -> String {
    let path = folder.join(name);
    // Another program writes it: one that this process writes is busy as long as another test starts a child that has inherited it.
    let writing = [
        "-c",
        "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$0\"; chmod 755 \"$0\"",
    ];
    let mut shell = std::process::Command::new("sh");
    shell.args(writing).arg(&path).arg(lines);
    assert!(shell.status().unwrap().success());
    path.to_str().unwrap().to_owned()
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A voice that notes each text, and speaks it when it may.
struct GatedVoice {
    folder: tempfile::TempDir,
}

impl GatedVoice {
    /// `waits` is the shell's word on whether the voice waits for the gate with this `$text`.
    fn new(waits: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let voice = Self { folder };
        let sound = voice.path("tone.wav");
        std::fs::write(&sound, wav(1000)).unwrap();
        let lines = format!(
            "text=$(cat); echo \"$text\" >> {}; while [ ! -e {} ] && {waits}; do sleep 0.05; done; exec cat {}",
            voice.path("begun").display(),
            voice.path("gate").display(),
            sound.display()
        );
        script(voice.folder.path(), "voice", &lines);
        voice
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn settings(&self, workers: usize) -> String {
        let command = self.path("voice");
        format!(
            "[speech]\ncommand = [{command:?}]\nseconds = 80\ntext_seconds = 600\n[prompts]\nworkers = {workers}\n"
        )
    }

    /// The texts so far, in their order.
    fn begun(&self) -> Vec<String> {
        lines(&self.path("begun"))
    }

    fn open(&self) {
        std::fs::write(self.path("gate"), "").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_costly_texts_of_a_customer_delay_the_text_of_another_by_one_of_them() {
    let voice = GatedVoice::new("true");
    let stage = Stage::new(&voice.settings(1)).await;
    let (mut greedy, mut modest) = (
        Customer::first(&stage).await,
        Customer::another(&stage, 7, |_| {}).await,
    );
    for number in 0..8 {
        let text = format!("\"mediaTxt\":\"costly {number}\"");
        let sid = greedy.call(&format!("1380000000{number}"), &text).await;
        stage.is_in(&sid, CallState::Claimed).await;
    }
    eventually("the first is being made", async || voice.begun().len() == 1).await;
    let sid = modest.call("13800000009", "\"mediaTxt\":\"hello\"").await;
    stage.is_in(&sid, CallState::Claimed).await;
    voice.open();
    eventually("all are made", async || voice.begun().len() == 9).await;
    let begun = voice.begun();
    let place = begun.iter().position(|text| text == "hello").unwrap();
    // The one under way, and one more if the call was a moment late.
    assert!(place <= 2, "{begun:?}");
}

/// The trunk has one channel, and the prompts of one customer take long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_prompts_of_a_customer_are_made_others_have_the_trunk() {
    let voice = GatedVoice::new("[ \"$text\" != hello ]");
    let trunk = "[[trunk]]\nname = \"loopback\"\nloopback = true\nchannels = 1\ncalls_per_second = 5\nprefixes = [\"\"]\n";
    let stage = Stage::on(trunk, &voice.settings(4)).await;
    let mut modest = Customer::another(&stage, 7, |_| {}).await;
    let mut slow = Vec::new();
    for number in 0..3 {
        let text = format!("\"mediaTxt\":\"slow {number}\"");
        slow.push(stage.call(&format!("1380000000{number}"), &text).await);
    }
    eventually("all three are being made", async || {
        voice.begun().len() == 3
    })
    .await;
    let sid = modest.call("13800000009", "\"mediaTxt\":\"hello\"").await;
    stage.is_in(&sid, CallState::Ended).await;
    for sid in &slow {
        let state = stage.record(sid).await.state;
        assert!(matches!(state, CallState::Claimed | CallState::Queued));
    }
    voice.open();
    for sid in &slow {
        stage.is_in(sid, CallState::Ended).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_changes_language_a_thousand_times_starts_the_voice_less_than_a_hundred_times()
{
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let counted = format!("echo x >> {}; exec espeak-ng \"$@\"", begun.display());
    let program = script(folder.path(), "counted", &counted);
    let stage = Stage::new(&format!("[speech]\nprogram = {program:?}\n")).await;
    let text = format!(
        "\"mediaTxt\":\"{}\",\"maxCallTime\":\"1\"",
        "a中".repeat(1000)
    );
    let sid = stage.call("13800000001", &text).await;
    let report = stage.report_of(&sid).await;
    assert!(report.contains("<state>0</state>"), "{report}");
    let begun = lines(&begun).len();
    assert!((2..100).contains(&begun), "{begun}");
}

/// It was claimed in time, and its prompt is made when its time is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_time_is_over_when_its_prompt_is_made_is_not_dialled() {
    let voice = GatedVoice::new("true");
    let telephone = Telephone::that(Script::answer()).await;
    let trunk = telephone.wide_trunk("telephone", "");
    let stage = Stage::on(&trunk, &voice.settings(1)).await;
    let began = Instant::now();
    let fields = "\"mediaTxt\":\"late\",\"validTime\":\"2\"";
    let sid = stage.call("13800000001", fields).await;
    stage.is_in(&sid, CallState::Claimed).await;
    eventually("its time is over", async || {
        began.elapsed() > Duration::from_secs(3)
    })
    .await;
    voice.open();
    stage.is_in(&sid, CallState::Ended).await;
    assert_eq!(stage.outcome(&sid).await, Some(Outcome::Expired));
    assert_eq!(stage.record(&sid).await.tries, 0);
}
