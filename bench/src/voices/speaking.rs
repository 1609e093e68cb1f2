//! One voice by itself: as many new texts at once as it has processes, one after the other.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use sound::renderer::{Piece, Requester};
use sound::speech::{Espeak, NamedVoice, NaturalEngine, NaturalWorkers, Speaker};
use sound::{PromptRenderer, RendererSettings, Utterance, VoiceChoice, VoiceOptions};
use supervisor::Supervisor;
use tokio::task::JoinSet;

use crate::latency::{Latencies, Spread};
use crate::server;
use crate::usage::{Usage, cpu_of_ended_children};

/// For one text. Nobody stands in.
const TIME: Duration = Duration::from_secs(120);
const NATURAL: &str = "natural";
/// Of the natural voice, for English and for Chinese.
pub const SPEAKERS: [&str; 2] = ["af_heart", "zf_xiaoxiao"];

pub struct BenchVoice {
    name: &'static str,
    at_once: usize,
    renderer: Arc<PromptRenderer>,
}

impl BenchVoice {
    /// The embedded voice, and the natural one where it is installed.
    pub fn all(natural: Option<&Path>, workers: usize) -> anyhow::Result<Vec<Self>> {
        let cores = std::thread::available_parallelism()?.get();
        let mut voices = vec![Self::new("espeak", cores, Vec::new())?];
        if let Some(folder) = natural {
            let arguments = [
                "speak-naturally".into(),
                "--folder".into(),
                folder.into(),
                "--espeak".into(),
                "espeak-ng".into(),
            ];
            let program = server::program()?.display().to_string();
            let processes = Arc::new(NaturalWorkers::new(program, arguments.into(), workers));
            let speakers = SPEAKERS.map(|speaker| {
                let engine = NaturalEngine {
                    workers: Arc::clone(&processes),
                    speaker: speaker.to_owned(),
                    time: TIME,
                    version: String::new(),
                };
                NamedVoice::new(speaker, Arc::new(engine))
            });
            voices.push(Self::new(NATURAL, workers, speakers.into())?);
        }
        Ok(voices)
    }

    fn new(name: &'static str, at_once: usize, voices: Vec<NamedVoice>) -> anyhow::Result<Self> {
        let settings = RendererSettings {
            workers: at_once + 1,
            ..RendererSettings::default()
        };
        let speaker = Speaker::new(voices, Arc::new(Espeak::default()), TIME * 2);
        let renderer = PromptRenderer::open(&Supervisor::new(), &settings, speaker)?;
        Ok(Self {
            name,
            at_once,
            renderer: Arc::new(renderer),
        })
    }

    fn speaker(&self, language: &str) -> &'static str {
        match (self.name, language) {
            (NATURAL, "English") => SPEAKERS[0],
            (NATURAL, _) => SPEAKERS[1],
            (embedded, _) => embedded,
        }
    }
}

/// What a voice did.
pub struct VoiceRow {
    voice: &'static str,
    language: &'static str,
    texts: usize,
    sound: f64,
    time: Duration,
    cpu: f64,
    bytes: u64,
    ready: Spread,
}

impl VoiceRow {
    /// The first text is for warming up: the model is loaded.
    pub async fn by(
        voice: &BenchVoice,
        language: &'static str,
        texts: &[String],
    ) -> anyhow::Result<Self> {
        let speaker = voice.speaker(language);
        let (first, texts) = texts.split_first().context("there are texts")?;
        // As many at once as will be.
        let warm = (0..voice.at_once).map(|number| format!("{first} {number}"));
        let mut warming = JoinSet::new();
        for text in warm {
            warming.spawn(make(Arc::clone(&voice.renderer), speaker, text));
        }
        while let Some(made) = warming.join_next().await {
            made??;
        }
        let before = Work::so_far()?;
        let (mut sound, mut ready, mut bytes) = (0.0, Latencies::default(), 0);
        let mut making = JoinSet::new();
        for text in texts {
            if making.len() >= voice.at_once {
                let (seconds, time) = making.join_next().await.context("one is made")???;
                sound += seconds;
                ready.add(time);
            }
            making.spawn(make(Arc::clone(&voice.renderer), speaker, text.clone()));
            bytes = bytes.max(children_bytes());
        }
        while let Some(made) = making.join_next().await {
            let (seconds, time) = made??;
            sound += seconds;
            ready.add(time);
        }
        let after = Work::so_far()?;
        Ok(Self {
            voice: voice.name,
            language,
            texts: texts.len(),
            sound,
            time: after.at - before.at,
            cpu: after.cpu - before.cpu,
            bytes,
            ready: ready.spread(),
        })
    }
}

impl fmt::Display for VoiceRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (texts, seconds) = (self.texts as f64, self.time.as_secs_f64());
        write!(
            f,
            "| {} | {} | {:.1} | {:.2} | {:.1} | {:.2} | {:.2} / {:.2} | {} MB |",
            self.voice,
            self.language,
            self.sound / texts,
            texts / seconds,
            self.sound / seconds,
            texts / self.cpu,
            self.ready.p50.as_secs_f64(),
            self.ready.p99.as_secs_f64(),
            self.bytes >> 20,
        )
    }
}

/// The seconds of the sound, and how long it took.
async fn make(
    renderer: Arc<PromptRenderer>,
    speaker: &'static str,
    text: String,
) -> anyhow::Result<(f64, Duration)> {
    let piece = Piece::Speech {
        speech: Utterance {
            text,
            options: VoiceOptions::default(),
        },
        choice: VoiceChoice {
            name: Some(speaker.to_owned()),
            is_private: false,
        },
    };
    let begun = Instant::now();
    let made = renderer.piece(Requester("bench"), piece).ready().await?;
    let time = begun.elapsed();
    let by = made.voice.as_deref().unwrap_or_default();
    ensure!(by == speaker, "{by} stood in for {speaker}");
    Ok((made.sound.seconds(), time))
}

/// Processor of this process and of all that it has started, those that are over included.
struct Work {
    at: Instant,
    cpu: f64,
}

impl Work {
    fn so_far() -> anyhow::Result<Self> {
        let own = Usage::of_this_process()?.cpu + cpu_of_ended_children()?;
        let living: f64 = children().iter().map(|usage| usage.cpu).sum();
        Ok(Self {
            at: Instant::now(),
            cpu: own + living,
        })
    }
}

fn children_bytes() -> u64 {
    children().iter().map(|usage| usage.bytes).sum()
}

/// What the living children of this process use.
fn children() -> Vec<Usage> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
        let file = thread.ok()?.path().join("children");
        std::fs::read_to_string(file).ok()
    };
    let lists: Vec<String> = threads.filter_map(of_thread).collect();
    let numbers = lists.iter().flat_map(|list| list.split_ascii_whitespace());
    let numbers = numbers.filter_map(|number| number.parse().ok());
    // One may end meanwhile, and one that is not yet another program has the memory of this one.
    let own = std::env::current_exe().ok();
    let is_another = |id: &u32| std::fs::read_link(format!("/proc/{id}/exe")).ok() != own;
    let others = numbers.filter(is_another);
    others.filter_map(|id| Usage::of(id).ok()).collect()
}
