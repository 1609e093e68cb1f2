//! Notices that somebody takes back, in every state and by every type.

use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;

use super::{HELLO, TIMES, redialled};
use crate::calls::stage::{Stage, field, on_postgres};
use crate::support::{self, APP, eventually, status_code};

/// It takes some seconds to say this.
const LONG: &str = "\"mediaTxt\":\"The water rises. Please leave the house at once, and take the children with you.\",\"priority\":\"4\"";

async fn cancel(stage: &Stage, sid: &CallSid, kind: &str) -> String {
    let body = format!("{{\"appId\":\"{APP}\",\"callSid\":\"{sid}\",\"type\":\"{kind}\"}}");
    let answer = stage.server.ask("Calls/CallCancel", "json", Some(&body));
    answer.await
}

async fn said(stage: &Stage, sid: &CallSid) -> [String; 4] {
    let report = stage.report_of(sid).await;
    ["state", "attempts", "result", "ended"].map(|name| field(&report, name).to_owned())
}

async fn during_a_talk(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    let sid = stage.call("13800000001", LONG).await;
    stage.is_in(&sid, CallState::Answered).await;
    let answer = cancel(&stage, &sid, "0").await;
    assert_eq!(status_code(&answer), "000000", "{answer}");
    assert_eq!(said(&stage, &sid).await, ["1", "1", "talked", "cancelled"]);
    assert_eq!(stage.outcome(&sid).await, Some(Outcome::Talked));
    let leg = stage.legs(&sid).await.remove(0);
    assert!(leg.media.played < leg.media.to_play, "it was cut off");
    // Types 1 and 2 are for those whom nobody has answered yet.
    let sid = stage.call("13800010001", LONG).await;
    stage.is_in(&sid, CallState::Answered).await;
    for kind in ["1", "2"] {
        let answer = cancel(&stage, &sid, kind).await;
        assert_eq!(status_code(&answer), "190011", "{answer}");
    }
    assert_eq!(said(&stage, &sid).await, ["0", "1", "talked", "talked"]);
    let leg = stage.legs(&sid).await.remove(0);
    assert_eq!(leg.media.played, leg.media.to_play, "to its end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_that_is_cancelled_during_its_talk_ends_as_cancelled() {
    during_a_talk("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_that_is_cancelled_during_its_talk_ends_as_cancelled_on_postgres() {
    during_a_talk(&on_postgres().await).await;
}

async fn too_late_or_resolved(database: &str) {
    let stage = Stage::new(&format!("{database}{TIMES}")).await;
    for (number, marks, expected) in [
        // It was answered in the moment in which it was cancelled by type 1.
        (
            "13800000001",
            "cancelled = TRUE, cancel_before_answer = TRUE",
            ["0", "1", "talked", "talked"],
        ),
        (
            "13800010001",
            "cancelled = TRUE, cancel_before_answer = TRUE, resolved = TRUE",
            ["1", "1", "talked", "resolved"],
        ),
    ] {
        let sid = stage.call(number, LONG).await;
        stage.is_in(&sid, CallState::Answered).await;
        let mark = format!("UPDATE call_queue SET {marks} WHERE call_sid = '{sid}'");
        support::execute(&stage.server.database, &mark).await;
        assert_eq!(said(&stage, &sid).await, expected);
        let leg = stage.legs(&sid).await.remove(0);
        assert_eq!(leg.media.played, leg.media.to_play, "no talk is cut off");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_talk_that_was_quicker_is_a_talk_and_what_was_resolved_meanwhile_is_resolved() {
    too_late_or_resolved("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_talk_that_was_quicker_is_a_talk_and_what_was_resolved_meanwhile_is_resolved_on_postgres()
{
    too_late_or_resolved(&on_postgres().await).await;
}

async fn before_anybody_answers(database: &str) {
    let stage = Stage::new(&format!("{database}[dispatch]\nring_seconds = 60\n")).await;
    for (place, kind) in ["1", "2"].into_iter().enumerate() {
        let ringing = stage
            .call(&format!("1380{place}000003"), &redialled(2))
            .await;
        stage.is_in(&ringing, CallState::Ringing).await;
        let answer = cancel(&stage, &ringing, kind).await;
        assert_eq!(status_code(&answer), "000000", "{answer}");
        assert_eq!(
            said(&stage, &ringing).await,
            ["1", "1", "cancelled", "cancelled"]
        );
        let between = stage
            .call(&format!("1380{place}000002"), &redialled(2))
            .await;
        eventually("an attempt is over", async || {
            let is_queued = stage.record(&between).await.state == CallState::Queued;
            is_queued && stage.attempts(&between).await.len() == 1
        })
        .await;
        let answer = cancel(&stage, &between, kind).await;
        assert_eq!(status_code(&answer), "000000", "{answer}");
        assert_eq!(
            said(&stage, &between).await,
            ["1", "1", "busy", "cancelled"]
        );
        let again = cancel(&stage, &between, kind).await;
        assert_eq!(status_code(&again), "190011", "{again}");
    }
    // Whoever has pressed the key before it has confirmed.
    let keys = format!("{HELLO},\"confirmDtmf\":\"1\"");
    let confirmed = stage.call("13800000012", &keys).await;
    assert_eq!(
        said(&stage, &confirmed).await,
        ["0", "1", "confirmed", "confirmed"]
    );
    let answer = cancel(&stage, &confirmed, "0").await;
    assert_eq!(status_code(&answer), "190011", "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_1_and_2_take_back_a_notice_that_nobody_has_answered() {
    before_anybody_answers("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_1_and_2_take_back_a_notice_that_nobody_has_answered_on_postgres() {
    before_anybody_answers(&on_postgres().await).await;
}
