//! Who answers: a person, a machine, or the network by a tone. The telephone behind the loopback trunk makes their sounds.

use clarion::domain::call::CallSid;
use clarion::domain::hearing::{AnsweredBy, HeardTone, Hearing};
use clarion::domain::outcome::Outcome;

use super::{HELLO, TIMES, billed, told};
use crate::audio_files::{upload, wav};
use crate::calls::stage::{Stage, field, on_postgres};
use crate::support::{self, eventually, tone};

/// A tone of 400 Hz and a second, which a test can measure.
const TONE: &str = "\"mediaName\":\"a.wav\",\"userData\":\"u\"";

impl Stage {
    async fn with_tone(database: &str) -> Self {
        let stage = Self::new(&format!("{database}{TIMES}")).await;
        upload(&stage.server, "a.wav", &wav(1000)).await;
        stage
    }

    /// What was heard on the last leg of a call.
    async fn hearing(&self, sid: &CallSid) -> Hearing {
        let leg = self.legs(sid).await.pop().unwrap();
        leg.heard.expect("somebody has listened")
    }

    async fn has_heard_message(&self, sid: &CallSid) -> bool {
        tone::is_heard(&tone::of_wav(&self.recording(sid).await), 400.0)
    }
}

/// State, result, ending and who answered, as the callback says them.
fn said(report: &str) -> [&str; 4] {
    ["state", "result", "ended", "answeredby"].map(|name| field(report, name))
}

async fn a_person_and_a_machine(database: &str) {
    let stage = Stage::with_tone(database).await;
    let mut placed = Vec::new();
    for (wish, number, expected, is_told) in [
        ("1", "13800000014", ["0", "talked", "talked", "human"], true),
        (
            "1",
            "13900000015",
            ["0", "talked", "talked", "machine"],
            true,
        ),
        ("2", "13700000014", ["0", "talked", "talked", "human"], true),
        (
            "2",
            "13600000015",
            ["1", "machine", "exhausted", "machine"],
            false,
        ),
        (
            "3",
            "13500000015",
            ["1", "machine", "exhausted", "machine"],
            true,
        ),
    ] {
        // Long enough for the greeting to be known as a machine's while it plays.
        let fields = format!("{TONE},\"playTimes\":\"3\",\"machineDetect\":\"{wish}\"");
        let sid = stage.call(number, &fields).await;
        placed.push((sid, wish, expected, is_told));
    }
    for (sid, wish, expected, is_told) in placed {
        let report = stage.report_of(&sid).await;
        let what = format!("{wish}: {report}");
        assert_eq!(said(&report), expected, "{what}");
        assert!(
            report.contains("<confirm>0</confirm><answeredby>"),
            "{what}"
        );
        assert_eq!(stage.has_heard_message(&sid).await, is_told, "{what}");
        let hearing = stage.hearing(&sid).await;
        let answered_by = hearing.answered_by.unwrap();
        assert_eq!(answered_by.as_str(), expected[3], "{what}");
        assert!((1..=4000).contains(&hearing.after.as_millis()), "{what}");
        let attempts = stage.attempts(&sid).await;
        assert_eq!(attempts[0].answered_by, Some(answered_by));
        // It was answered, so it is billed, whoever that was.
        let line = &stage.lines(&sid).await[0];
        assert_eq!(line.outcome, expected[1], "{what}");
        assert!(line.seconds > 0, "{what}");
        let question = format!("CallResult?callsid={sid}");
        let answer = stage.server.ask(&question, "xml", None).await;
        assert_eq!(field(&answer, "answeredby"), expected[3], "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_told_apart_from_a_machine() {
    a_person_and_a_machine("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_told_apart_from_a_machine_on_postgres() {
    a_person_and_a_machine(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_with_a_machine_is_tried_again_where_the_request_says_so() {
    let stage = Stage::with_tone("").await;
    let fields = format!(
        "{TONE},\"machineDetect\":\"2\",\"redialTimes\":\"1\",\"redialInterval\":\"10\",\"redialOn\":\"machine\",\"backupTo\":\"13800000014\""
    );
    let sid = stage.call("13800000015", &fields).await;
    eventually("an attempt is over", async || {
        stage.attempts(&sid).await.len() == 1
    })
    .await;
    stage
        .let_time_pass(jiff::SignedDuration::from_secs(10))
        .await;
    let report = stage.report_of(&sid).await;
    assert_eq!(
        told(&stage.attempts(&sid).await),
        [
            ("8613800000015", Outcome::Machine, true),
            ("8613800000015", Outcome::Machine, true),
            ("8613800000014", Outcome::Talked, true),
        ]
    );
    assert_eq!(said(&report), ["0", "talked", "talked", "human"]);
    // Where it does not, the next number has its turn at once.
    let fields = fields.replace("\"redialOn\":\"machine\"", "\"redialOn\":\"busy\"");
    let sid = stage.call("13900000015", &fields).await;
    stage.report_of(&sid).await;
    assert_eq!(
        told(&stage.attempts(&sid).await),
        [
            ("8613900000015", Outcome::Machine, true),
            ("8613800000014", Outcome::Talked, true),
        ]
    );
}

async fn the_network_answers_with_a_busy_tone(database: &str) {
    let stage = Stage::with_tone(database).await;
    let fields = format!("{TONE},\"machineDetect\":\"2\"");
    let sid = stage.call("13800000016", &fields).await;
    let report = stage.report_of(&sid).await;
    assert_eq!(said(&report), ["1", "busy", "exhausted", "unknown"]);
    let hearing = stage.hearing(&sid).await;
    assert_eq!(hearing.tone, Some(HeardTone::Busy));
    assert_eq!(hearing.answered_by, Some(AnsweredBy::Unknown));
    let reason = stage.record(&sid).await.reason.unwrap();
    assert!(reason.contains("busy tone"), "{reason}");
    // It was answered: the seconds are on the bill, and the word says what they were.
    let lines = stage.lines(&sid).await;
    assert_eq!(billed(&lines), [(sid.as_str(), "13800000016", "busy")]);
    assert!(lines[0].answered_at.is_some() && lines[0].seconds > 0);
    assert!(!stage.has_heard_message(&sid).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_tone_after_the_answer_is_busy_and_billed() {
    the_network_answers_with_a_busy_tone("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_tone_after_the_answer_is_busy_and_billed_on_postgres() {
    the_network_answers_with_a_busy_tone(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_network_plays_before_it_refuses_is_a_fact_of_the_leg() {
    let stage = Stage::new("").await;
    for (number, outcome, tone) in [
        ("13800000017", "busy", HeardTone::Busy),
        ("13800000018", "not-answered", HeardTone::Announcement),
    ] {
        let fields = format!("{HELLO},\"machineDetect\":\"1\"");
        let sid = stage.call(number, &fields).await;
        let report = stage.report_of(&sid).await;
        assert_eq!(field(&report, "result"), outcome, "{number}");
        assert_eq!(field(&report, "state"), "1", "{number}");
        assert!(!report.contains("answeredby"), "nobody answered: {report}");
        let hearing = stage.hearing(&sid).await;
        assert_eq!((hearing.answered_by, hearing.tone), (None, Some(tone)));
        let line = &stage.lines(&sid).await[0];
        assert_eq!((line.outcome.as_str(), line.seconds), (outcome, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_listens_without_the_field_and_wrong_values_are_refused() {
    let stage = Stage::new("").await;
    for fields in [HELLO.to_owned(), format!("{HELLO},\"machineDetect\":\"0\"")] {
        let sid = stage.call("13800000005", &fields).await;
        let report = stage.report_of(&sid).await;
        assert!(
            report.ends_with("<userData>u</userData></request>"),
            "all is as before: {report}"
        );
        assert_eq!(stage.legs(&sid).await[0].heard, None);
    }
    for wrong in ["4", "-1", "yes", "1;2"] {
        let fields = format!("\"to\":\"13800000005\",{HELLO},\"machineDetect\":\"{wrong}\"");
        let answer = stage.server.call_json(&fields).await;
        assert_eq!(support::status_code(&answer), "108023", "{wrong}");
        assert!(answer.contains("machineDetect must be"), "{answer}");
    }
    // What is asked of machines belongs to what a name stands for.
    let named = |wish: &str| {
        format!(
            "\"to\":\"13800000003\",{HELLO},\"requestId\":\"alarm-9\",\"machineDetect\":\"{wish}\""
        )
    };
    let first = stage.server.call_json(&named("2")).await;
    let again = stage.server.call_json(&named("2")).await;
    assert_eq!(support::call_sid(&first), support::call_sid(&again));
    assert!(stage.server.call_json(&named("3")).await.contains("190010"));
}
