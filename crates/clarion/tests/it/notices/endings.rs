//! How attempts and notices end where more happens than an answer: long after a talk, by a stop of the server, on trunks that refuse.

use clarion::domain::call_state::CallState;
use clarion::domain::notice::ending::NoticeEnding;
use clarion::domain::outcome::Outcome;
use jiff::SignedDuration;

use super::{HELLO, TIMES, told};
use crate::calls::stage::{Stage, field, on_postgres};
use crate::support::{self, APP, eventually, status_code};

async fn is_cancelled_long_after_its_talk(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let fields = format!(
        "{HELLO},\"confirmDtmf\":\"5\",\"waitDtmfTime\":\"1\",\"redialTimes\":\"1\",\"redialInterval\":\"30000\",\"validTime\":\"86400\""
    );
    let sid = stage.call("13800000001", &fields).await;
    eventually("an attempt is over", async || {
        stage.attempts(&sid).await.len() == 1
    })
    .await;
    let seconds = stage.lines(&sid).await[0].seconds;
    assert!(seconds > 0);
    let long_ago = "UPDATE attempts SET dialled_at = dialled_at - 3600000, answered_at = answered_at - 3600000, ended_at = ended_at - 3600000";
    support::execute(&stage.server.database, long_ago).await;
    let body = format!("{{\"appId\":\"{APP}\",\"callSid\":\"{sid}\"}}");
    let answer = stage.server.ask("Calls/CallCancel", "json", Some(&body));
    assert_eq!(status_code(&answer.await), "000000");
    let report = stage.report_of(&sid).await;
    let said = ["duration", "result", "ended"].map(|name| field(&report, name));
    let told = seconds.to_string();
    assert_eq!(said, [&told, "unconfirmed", "cancelled"]);
    let question = format!("CallResult?callsid={sid}");
    let answer = stage.server.ask(&question, "xml", None).await;
    let expected = format!("<callTime>{seconds}</callTime><duration>{seconds}</duration>");
    assert!(answer.contains(&expected), "{answer}");
    let (record, attempts) = (stage.record(&sid).await, stage.attempts(&sid).await);
    assert_eq!(record.talk_ended_at, Some(attempts[0].ended_at));
    let waited = record
        .ended_at
        .unwrap()
        .duration_since(attempts[0].ended_at);
    assert!(waited >= SignedDuration::from_mins(59), "{waited}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_that_ends_long_after_its_talk_tells_how_long_the_talk_was() {
    is_cancelled_long_after_its_talk("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_that_ends_long_after_its_talk_tells_how_long_the_talk_was_on_postgres() {
    is_cancelled_long_after_its_talk(&on_postgres().await).await;
}

async fn refused_by_trunks_and_then_barred(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let fields = format!("{HELLO},\"backupTo\":\"13800000005\"");
    let sid = stage.call("13800000007", &fields).await;
    eventually("a trunk has refused it", async || {
        !stage.legs(&sid).await.is_empty()
    })
    .await;
    let now = stage.server.clock.now();
    let store = &stage.server.store;
    store.bar_number("8613800000007", true, now).await.unwrap();
    let report = stage.report_of(&sid).await;
    let said = ["attempts", "result", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["2", "talked", "talked"]);
    let attempts = stage.attempts(&sid).await;
    assert_eq!(
        told(&attempts),
        [
            ("8613800000007", Outcome::Cancelled, false),
            ("8613800000005", Outcome::Talked, true),
        ]
    );
    assert!(attempts[0].dialled_at.is_some(), "it had an INVITE");
    let question = format!("CallResult?callsid={sid}");
    let answer = stage.server.ask(&question, "xml", None).await;
    assert!(answer.contains("<attempts>2</attempts>"), "{answer}");
    assert_eq!(stage.lines(&sid).await.len(), 2, "each has its line");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_trunks_have_refused_counts_although_it_is_not_dialled_again() {
    refused_by_trunks_and_then_barred("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_trunks_have_refused_counts_although_it_is_not_dialled_again_on_postgres() {
    refused_by_trunks_and_then_barred(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_cancels_no_notice() {
    let mut stage = Stage::new("[dispatch]\nring_seconds = 600\nstop_seconds = 0\n").await;
    // One has a try left, the other has none.
    let fields = format!(
        "{HELLO},\"redialTimes\":\"1\",\"redialInterval\":\"3000\",\"validTime\":\"86400\""
    );
    let goes_on = stage.call("13800000003", &fields).await;
    let last = format!("{HELLO},\"priority\":\"4\"");
    let last = stage.call("13800010003", &last).await;
    for sid in [&goes_on, &last] {
        stage.is_in(sid, CallState::Ringing).await;
    }
    stage.server.take_server().stop().await;
    let interrupted = |to| [(to, Outcome::Interrupted, false)];
    assert_eq!(
        told(&stage.attempts(&goes_on).await),
        interrupted("8613800000003")
    );
    assert_eq!(stage.record(&goes_on).await.state, CallState::Queued);
    assert_eq!(
        told(&stage.attempts(&last).await),
        interrupted("8613800010003")
    );
    let ending = stage.record(&last).await.ending;
    assert_eq!(ending, Some(NoticeEnding::Exhausted));
}

/// With the trunks of the eight attempts before it, the second try would come after four minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pauses_between_trunks_begin_anew_with_each_attempt() {
    let stage = Stage::new(TIMES).await;
    let busy: Vec<_> = (1..8).map(|place| format!("138000{place}0002")).collect();
    let fields = format!("{HELLO},\"backupTo\":\"{};13800000007\"", busy.join(";"));
    let sid = stage.call("13800000002", &fields).await;
    eventually("it is tried again", async || {
        stage.legs(&sid).await.len() >= 10
    })
    .await;
    assert_eq!(stage.attempts(&sid).await.len(), 8, "it is one attempt");
    stage.server.store.cancel_call(&sid).await.unwrap();
    let report = stage.report_of(&sid).await;
    let said = ["attempts", "ended"].map(|name| field(&report, name));
    assert_eq!(said, ["9", "cancelled"]);
}
