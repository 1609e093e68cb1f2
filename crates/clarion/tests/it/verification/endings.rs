//! However the call of a code ends, the code goes with it.

use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use phone::test_phone::Script;

use super::{FULL_TRUNK, is_forgotten, placed};
use crate::calls::stage::{Stage, on_postgres};
use crate::support::telephone::Telephone;
use crate::support::{APP, execute, status_code};

const CODE: &str = "\"to\":\"13800000001\",\"verifyCode\":\"1234\"";

async fn has_ended(stage: &Stage, sid: &CallSid, outcome: Outcome, state: char) {
    let report = stage.report_of(sid).await;
    let wanted = format!("<state>{state}</state><duration>0</duration></Request>");
    assert!(report.ends_with(&wanted), "{report}");
    assert_eq!(stage.outcome(sid).await, Some(outcome));
    is_forgotten(stage, sid).await;
}

async fn cancel(stage: &Stage, sid: &CallSid) {
    let body = format!("{{\"appId\":\"{APP}\",\"callSid\":\"{sid}\"}}");
    let answer = stage.server.ask("Calls/CallCancel", "json", Some(&body));
    assert_eq!(status_code(&answer.await), "000000");
}

async fn while_it_waits(database: &str) {
    let stage = Stage::on(FULL_TRUNK, database).await;
    let sid = placed(&stage, CODE).await;
    let expire = format!("UPDATE call_queue SET expires_at = 1 WHERE call_sid = '{sid}'");
    execute(&stage.server.database, &expire).await;
    has_ended(&stage, &sid, Outcome::Expired, '2').await;
    let sid = placed(&stage, CODE).await;
    cancel(&stage, &sid).await;
    has_ended(&stage, &sid, Outcome::Cancelled, '1').await;
}

async fn when_it_was_dialled(database: &str) {
    let busy = Telephone::that(Script::refuse(486)).await;
    let stage = Stage::on(&busy.wide_trunk("busy", ""), database).await;
    let sid = placed(&stage, CODE).await;
    has_ended(&stage, &sid, Outcome::Busy, '1').await;
}

async fn while_it_rings(database: &str) {
    let telephone = Telephone::that(Script::never_answer()).await;
    let settings = format!("{database}[dispatch]\nlease_seconds = 2\n");
    let stage = Stage::on(&telephone.wide_trunk("telephone", ""), &settings).await;
    let sid = placed(&stage, CODE).await;
    stage.is_in(&sid, CallState::Ringing).await;
    cancel(&stage, &sid).await;
    has_ended(&stage, &sid, Outcome::Cancelled, '1').await;
    // The task of the call is lost when it has recorded something.
    assert!(stage.server.supervisor().request_panic("call-recorded"));
    let sid = placed(&stage, CODE).await;
    has_ended(&stage, &sid, Outcome::Interrupted, '2').await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_forgotten_that_waits_on_sqlite() {
    while_it_waits("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_forgotten_that_waits_on_postgresql() {
    while_it_waits(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_forgotten_that_was_refused_on_sqlite() {
    when_it_was_dialled("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_forgotten_that_was_refused_on_postgresql() {
    when_it_was_dialled(&on_postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_forgotten_that_rings_on_sqlite() {
    while_it_rings("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_forgotten_that_rings_on_postgresql() {
    while_it_rings(&on_postgres().await).await;
}
