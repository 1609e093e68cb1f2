//! What callees press: confirmed, heard again, no more calls. Confirmed means committed before they hear so.

use clarion::domain::call::CallSid;
use clarion::domain::do_not_call::DoNotCallSource;
use clarion::domain::notice::keys::CalleeChoice;
use clarion::domain::outcome::Outcome;
use sound::wav::mono_16_bit;

use super::{HELLO, TIMES, billed, times, told};
use crate::audio_files::{upload, wav};
use crate::calls::stage::{Stage, field, on_postgres};
use crate::support::{self, eventually, tone};

/// Tones instead of words: a test can measure them.
const TONES: &str = "[calls]\nkey_confirm_en = \"\"\nkey_replay_zh = \"\"\nkey_thanks_en = \"\"\n";
/// A message that takes longer than anybody waits for its end.
const LONG: &str = "\"mediaTxt\":\"This message is long. It says that the water rises. It says so again and again, and nobody should hear all of it before a key is pressed. The water rises. Please leave the house. The water rises. Please leave the house at once.\",\"userData\":\"u\"";

impl Stage {
    async fn result(&self, sid: &CallSid) -> String {
        let question = format!("CallResult?callsid={sid}");
        self.server.ask(&question, "xml", None).await
    }
}

async fn the_second_person_confirms(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let fields = format!("{LONG},\"confirmDtmf\":\"1;2\",\"backupTo\":\"13800000003;13800000012\"");
    let sid = stage.call("13800000002", &fields).await;
    let report = stage.report_of(&sid).await;
    let attempts = stage.attempts(&sid).await;
    assert_eq!(
        told(&attempts),
        [
            ("8613800000002", Outcome::Busy, false),
            ("8613800000003", Outcome::NotAnswered, false),
            ("8613800000012", Outcome::Confirmed, true),
        ]
    );
    assert_eq!(attempts[2].choice, Some(CalleeChoice::Confirmed('1')));
    let lines = stage.lines(&sid).await;
    let (second, third) = (format!("{sid}-2"), format!("{sid}-3"));
    assert_eq!(
        billed(&lines),
        [
            (sid.as_str(), "13800000002", "busy"),
            (&second, "13800000003", "not-answered"),
            (&third, "13800000012", "confirmed"),
        ]
    );
    assert_eq!(
        report,
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><request><action>SellingCall</action><number>13800000002</number>\
             <callSid>{sid}</callSid><state>0</state>{}\
             <userData>u</userData><attempts>3</attempts><confirm>1</confirm><confirmNumber>13800000012</confirmNumber>\
             <dtmf>1</dtmf><result>confirmed</result><ended>confirmed</ended></request>",
            times(&stage, &lines[2]),
        )
    );
    let answer = stage.result(&sid).await;
    let seconds = lines[2].seconds;
    let expected = format!(
        "<state>0</state><callTime>{seconds}</callTime><duration>{seconds}</duration><attempts>3</attempts><confirm>1</confirm>\
         <confirmNumber>13800000012</confirmNumber><dtmf>1</dtmf>"
    );
    assert!(answer.contains(&expected), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_called_in_turn_until_somebody_confirms() {
    the_second_person_confirms("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_called_in_turn_until_somebody_confirms_on_postgres() {
    the_second_person_confirms(&on_postgres().await).await;
}

async fn nobody_confirms(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let fields = format!(
        "{HELLO},\"confirmDtmf\":\"5\",\"waitDtmfTime\":\"1\",\"inputDtmfPrompt\":\"Press five.\",\
         \"redialTimes\":\"1\",\"redialInterval\":\"10\",\"backupTo\":\"13800000004\""
    );
    let sid = stage.call("13800000001", &fields).await;
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
            ("8613800000001", Outcome::Unconfirmed, true),
            ("8613800000001", Outcome::Unconfirmed, true),
            ("8613800000004", Outcome::Declined, false),
        ]
    );
    let said = ["state", "attempts", "confirm", "result", "ended"];
    assert_eq!(
        said.map(|name| field(&report, name)),
        ["1", "3", "0", "unconfirmed", "exhausted"]
    );
    assert!(!report.contains("dtmf") && !report.contains("confirmNumber"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_answers_and_presses_nothing_is_called_again() {
    nobody_confirms("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_answers_and_presses_nothing_is_called_again_on_postgres() {
    nobody_confirms(&on_postgres().await).await;
}

async fn wants_no_more_calls(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let fields = format!(
        "{LONG},\"confirmDtmf\":\"1\",\"stopDtmf\":\"9\",\"redialTimes\":\"3\",\"backupTo\":\"13800000012\""
    );
    let sid = stage.call("13800000013", &fields).await;
    let report = stage.report_of(&sid).await;
    let attempts = stage.attempts(&sid).await;
    assert_eq!(
        told(&attempts),
        [
            ("8613800000013", Outcome::Stopped, true),
            ("8613800000012", Outcome::Confirmed, true),
        ]
    );
    assert_eq!(attempts[0].choice, Some(CalleeChoice::Stopped));
    assert_eq!(field(&report, "confirmNumber"), "13800000012");
    // From the commit of the key on, for this account; the account itself is known anew within a second.
    eventually("the number is not called any more", async || {
        let fields = "\"to\":\"13800000013\",\"mediaTxt\":\"x\"";
        support::status_code(&stage.server.call_json(fields).await) == "108035"
    })
    .await;
    let entry = stage
        .server
        .store
        .do_not_call_entry(&support::SID.parse().unwrap(), "8613800000013")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(entry.source, DoNotCallSource::Callee(sid));
    let alone = format!("{LONG},\"stopDtmf\":\"9\"");
    let sid = stage.call("13900000013", &alone).await;
    let report = stage.report_of(&sid).await;
    let said = ["state", "attempts", "confirm", "result", "ended"];
    assert_eq!(
        said.map(|name| field(&report, name)),
        ["1", "1", "0", "stopped", "exhausted"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_wants_no_more_calls_makes_way_for_the_next() {
    wants_no_more_calls("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_wants_no_more_calls_makes_way_for_the_next_on_postgres() {
    wants_no_more_calls(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirmation_stops_the_message_and_is_thanked_for() {
    let stage = Stage::new(TONES).await;
    let sid = stage
        .call("13800000012", &format!("{LONG},\"confirmDtmf\":\"1\""))
        .await;
    stage.report_of(&sid).await;
    let heard = tone::of_wav(&stage.recording(&sid).await);
    let seconds = heard.len() / 8000;
    assert!((2..7).contains(&seconds), "{seconds} s were heard");
    assert!(tone::is_heard(&heard, 880.0), "the thanks");
    assert!(!tone::is_heard(&heard, 600.0), "nothing was asked any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_heard_again_by_a_key() {
    let stage = Stage::new(TONES).await;
    upload(&stage.server, "a.wav", &wav(1000)).await;
    // The vendor's fields alone: an answer is enough.
    let fields = "\"mediaName\":\"a.wav\",\"replayDtmf\":\"1\",\"waitDtmfTime\":\"2\"";
    let silent = stage.call("13800000001", fields).await;
    let report = stage.report_of(&silent).await;
    let said = ["state", "attempts", "confirm", "result", "ended"];
    assert_eq!(
        said.map(|name| field(&report, name)),
        ["0", "1", "0", "talked", "talked"]
    );
    let pressing = stage.call("13800000012", fields).await;
    stage.report_of(&pressing).await;
    // The message is a tone of 400 Hz and a second.
    let mut tones = Vec::new();
    for sid in [&silent, &pressing] {
        let heard = tone::of_wav(&stage.recording(sid).await);
        let windows = heard.chunks_exact(800);
        tones.push(
            windows
                .filter(|window| tone::power(window, 400.0) > 1e4)
                .count(),
        );
    }
    assert!((9..=11).contains(&tones[0]), "{tones:?}");
    assert!((18..=22).contains(&tones[1]), "{tones:?}");
}

/// A file with a second of this tone.
#[expect(clippy::cast_possible_truncation, reason = "the sine of anything fits")]
fn tone_of(pitch: f64) -> Vec<u8> {
    let step = std::f64::consts::TAU * pitch / 8000.0;
    let sample = |at: u16| ((f64::from(at) * step).sin() * 8000.0) as i16;
    mono_16_bit(&(0..8000).map(sample).collect::<Vec<_>>(), 8000)
}

/// The tenths of a second in which something like this is heard: the first and the last.
fn when_heard(heard: &[f64], is_it: impl Fn(&[f64]) -> bool) -> Option<(usize, usize)> {
    let windows = heard.chunks_exact(800).enumerate();
    let mut places = windows.filter_map(|(place, window)| is_it(window).then_some(place));
    let first = places.next()?;
    Some((first, places.next_back().unwrap_or(first)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_question_of_a_request_is_heard_after_its_message_and_waited_for() {
    let stage = Stage::new(TONES).await;
    upload(&stage.server, "message.wav", &tone_of(400.0)).await;
    upload(&stage.server, "question.wav", &tone_of(1000.0)).await;
    let ask = |question: &str, wait: u32| {
        format!(
            "\"mediaName\":\"message.wav\",\"confirmDtmf\":\"1\",\"inputDtmfPrompt\":\"{question}\",\"waitDtmfTime\":\"{wait}\""
        )
    };
    let by_file = stage.call("13800000001", &ask("question.wav", 3)).await;
    let by_text = stage
        .call("13900000001", &ask("Press the one, please.", 1))
        .await;
    for (sid, seconds) in [(&by_file, 2 + 3), (&by_text, 1 + 1)] {
        let report = stage.report_of(sid).await;
        assert_eq!(field(&report, "result"), "unconfirmed");
        let attempt = &stage.attempts(sid).await[0];
        let talk = attempt
            .ended_at
            .duration_since(attempt.answered_at.unwrap());
        assert!(talk >= jiff::SignedDuration::from_secs(seconds), "{talk}");
    }
    let message = |window: &[f64]| tone::is_heard(window, 400.0);
    let heard = tone::of_wav(&stage.recording(&by_file).await);
    let (_, message_ends) = when_heard(&heard, message).expect("the message");
    let question = when_heard(&heard, |window| tone::is_heard(window, 1000.0));
    let (begins, ends) = question.expect("the question");
    assert!(begins > message_ends, "{begins} after {message_ends}");
    assert!(ends - begins >= 7, "all of it: from {begins} to {ends}");
    // Words are loud, and neither the message nor the tone of the platform.
    let heard = tone::of_wav(&stage.recording(&by_text).await);
    let (_, message_ends) = when_heard(&heard, message).expect("the message");
    let is_loud = |window: &[f64]| window.iter().any(|sample| sample.abs() > 2000.0);
    let words = when_heard(&heard, |window| is_loud(window) && !message(window));
    let (_, words_end) = words.expect("the question");
    assert!(
        words_end >= message_ends + 3,
        "{words_end} after {message_ends}"
    );
    assert!(!tone::is_heard(&heard, 600.0), "the platform asks nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_keys_are_refused_by_name_and_the_vendors_fields_never() {
    let stage = Stage::new("").await;
    for (fields, named) in [
        ("\"confirmDtmf\":\"12\"", "confirmDtmf"),
        ("\"confirmDtmf\":\"1;\"", "confirmDtmf"),
        ("\"confirmDtmf\":\"a\"", "confirmDtmf"),
        ("\"stopDtmf\":\"99\"", "stopDtmf"),
        ("\"confirmDtmf\":\"1\",\"stopDtmf\":\"1\"", "stopDtmf"),
        ("\"confirmDtmf\":\"1;2\",\"replayDtmf\":\"2\"", "replayDtmf"),
        ("\"stopDtmf\":\"2\",\"replayDtmf\":\"2\"", "stopDtmf"),
    ] {
        let fields = format!("\"to\":\"13800000001\",{HELLO},{fields}");
        let answer = stage.server.call_json(&fields).await;
        assert_eq!(support::status_code(&answer), "108023", "{fields}");
        assert!(answer.contains(named), "{fields}: {answer}");
    }
    let (queued, _) = stage.server.store.queue_depth().await.unwrap();
    assert_eq!(queued, 0);
    for wrong in [
        "\"replayDtmf\":\"12\"",
        "\"waitDtmfTime\":\"soon\"",
        "\"inputDtmfPrompt\":\"../secret.wav\"",
        "\"waitDtmfTime\":\"0\",\"inputDtmfPrompt\":\"Press one.\"",
        "\"replayDtmf\":{\"a\":1},\"callStateUrl\":[],\"callStatePush\":{}",
    ] {
        let sid = stage.call("13800000005", &format!("{HELLO},{wrong}")).await;
        let report = stage.report_of(&sid).await;
        assert!(
            report.ends_with("<userData>u</userData></request>"),
            "nothing is asked for, so all is as before: {report}"
        );
    }
    // A file that is not there, and a wait that makes no sense: the platform's sentence, and its time.
    let sid = stage
        .call(
            "13800000012",
            &format!("{LONG},\"confirmDtmf\":\"1\",\"waitDtmfTime\":\"600\",\"inputDtmfPrompt\":\"none.wav\""),
        )
        .await;
    assert_eq!(field(&stage.report_of(&sid).await, "confirm"), "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_belongs_to_the_keys_too() {
    let stage = Stage::new(TIMES).await;
    let fields =
        |more: &str| format!("\"to\":\"13800000003\",{HELLO},\"requestId\":\"alarm-7\"{more}");
    let keys = ",\"confirmDtmf\":\"1\",\"inputDtmfPrompt\":\"Press one.\"";
    let first = stage.server.call_json(&fields(keys)).await;
    let again = stage.server.call_json(&fields(keys)).await;
    assert_eq!(support::call_sid(&first), support::call_sid(&again));
    for other in [
        "",
        ",\"confirmDtmf\":\"1\"",
        ",\"confirmDtmf\":\"1;2\",\"inputDtmfPrompt\":\"Press one.\"",
        ",\"confirmDtmf\":\"1\",\"inputDtmfPrompt\":\"Press one.\",\"stopDtmf\":\"9\"",
    ] {
        let answer = stage.server.call_json(&fields(other)).await;
        assert!(answer.contains("190010"), "{other}: {answer}");
    }
}
