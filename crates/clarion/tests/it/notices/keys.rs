//! What callees press: confirmed, heard again, no more calls. Confirmed means committed before they hear so.

use clarion::domain::call::CallSid;
use clarion::domain::do_not_call::DoNotCallSource;
use clarion::domain::notice::keys::CalleeChoice;
use clarion::domain::outcome::Outcome;

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
