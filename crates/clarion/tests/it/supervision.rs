//! Every long-lived task is watched: one that panics is named while it is down and started again, what it held is recovered, and the
//! others go on. Readiness tells the truth within a second.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

use clarion::client::Connection;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use phone::test_phone::Script;
use tokio::net::TcpStream;

use crate::calls::stage::{Stage, on_postgres};
use crate::support::child::Installation;
use crate::support::telephone::Telephone;
use crate::support::{PATIENCE, TestServer, call_sid, eventually, postgres, status_code};

/// `/readyz` answers within a second whatever hangs; on a busy machine the request itself takes its time.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);

async fn get(server: &TestServer, path: &str) -> (u16, String) {
    let mut connection = server.client().connect().await.unwrap();
    connection.get(path).await.unwrap()
}

async fn is_ready(server: &TestServer) -> bool {
    get(server, "/readyz").await.0 == 200
}

/// The tasks that `/readyz` names as down. On a connection that stays: a task is down for a second only, and a busy machine needs long for a
/// handshake.
async fn down(connection: &mut Connection) -> BTreeSet<String> {
    let (_, text) = connection.get("/readyz").await.unwrap();
    let names = text.trim().strip_prefix("down: ").unwrap_or_default();
    let names = names.split(", ").filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_task_that_panics_is_named_while_it_is_down_and_is_started_again() {
    let stage = Stage::new("[dispatch]\nlease_seconds = 2\n").await;
    let server = &stage.server;
    eventually("ready", async || is_ready(server).await).await;
    for task in [
        "dispatch",
        "heartbeat",
        "housekeeping",
        "callbacks",
        "console-listener",
        "billing",
        "barred-numbers",
        "metrics",
        "trunk-sharing",
    ] {
        let mut connection = server.client().connect().await.unwrap();
        assert!(server.supervisor().request_panic(task), "{task}");
        // It wakes the worker that delivers callbacks, which looks by itself only every few seconds.
        server.deliver_callbacks();
        // The console's listener comes round when somebody has connected.
        drop(TcpStream::connect(server.console).await);
        eventually(task, async || down(&mut connection).await.contains(task)).await;
        eventually("ready again", async || is_ready(server).await).await;
    }
    let sid = stage.call("13800000000", "\"mediaTxt\":\"x\"").await;
    assert!(stage.report_of(&sid).await.contains("<state>0</state>"));
}

#[tokio::test]
async fn the_metrics_name_every_task_and_the_one_that_is_down() {
    let stage = Stage::new("").await;
    let server = &stage.server;
    let shown = async |task: &str, up: u8| {
        let line = format!("clarion_task_up{{task=\"{task}\"}} {up}");
        get(server, "/metrics").await.1.contains(&line)
    };
    for task in [
        "audio-sweep",
        "billing",
        "callback-gauges",
        "callbacks",
        "console-listener",
        "disk-gauge",
        "dispatch",
        "heartbeat",
        "housekeeping",
        "http-listener",
        "pacer",
        "prompt-renderer",
        "prompts-ahead",
        "receiver",
        "sip-listener",
        "store-checkpoint",
        "store-writer",
        "trace-door",
        "trunk-sharing",
    ] {
        eventually(task, async || shown(task, 1).await).await;
    }
    let mut connection = server.client().connect().await.unwrap();
    // All servers of this process share the metric: one that starts in this moment says that its own is up.
    eventually("the metric tells", async || {
        server.supervisor().request_panic("housekeeping");
        let (_, metrics) = connection.get("/metrics").await.unwrap();
        metrics.contains("clarion_task_up{task=\"housekeeping\"} 0")
    })
    .await;
    eventually("up again", async || shown("housekeeping", 1).await).await;
}

#[tokio::test]
async fn calls_that_a_dead_dispatcher_had_claimed_are_dialled_once() {
    calls_of_a_dead_dispatcher("").await;
}

#[tokio::test]
async fn calls_that_a_dead_dispatcher_had_claimed_are_dialled_once_on_postgres() {
    calls_of_a_dead_dispatcher(&on_postgres().await).await;
}

async fn calls_of_a_dead_dispatcher(database: &str) {
    let telephone = Telephone::that(Script::answer()).await;
    let stage = Stage::on(
        &telephone.wide_trunk("provider", ""),
        &format!("{database}[dispatch]\nlease_seconds = 2\n"),
    )
    .await;
    assert!(stage.server.supervisor().request_panic("calls-claimed"));
    let mut calls = Vec::new();
    for number in ["13800000001", "13800000002", "13800000003"] {
        calls.push(stage.call(number, "\"mediaTxt\":\"x\"").await);
    }
    for sid in &calls {
        assert!(stage.report_of(sid).await.contains("<state>0</state>"));
        assert_eq!(stage.outcome(sid).await, Some(Outcome::Talked));
        assert_eq!(stage.bill_line(sid).await.order_id, sid.to_string());
    }
    assert_eq!(telephone.dialled().len(), calls.len(), "nobody twice");
}

#[tokio::test]
async fn a_call_whose_task_dies_is_hung_up_and_reported_and_the_others_go_on() {
    a_call_whose_task_dies("").await;
}

#[tokio::test]
async fn a_call_whose_task_dies_is_hung_up_and_reported_and_the_others_go_on_on_postgres() {
    a_call_whose_task_dies(&on_postgres().await).await;
}

async fn a_call_whose_task_dies(database: &str) {
    let telephone = Telephone::that(Script::answer()).await;
    let stage = Stage::on(
        &telephone.wide_trunk("provider", ""),
        &format!("{database}[dispatch]\nlease_seconds = 2\n"),
    )
    .await;
    let message = "\"mediaName\":\"ccp_marketingcall.wav\",\"mediaNameType\":\"1\"";
    let first = stage.call("13800000001", message).await;
    stage.is_in(&first, CallState::Answered).await;
    assert!(stage.server.supervisor().request_panic("call-recorded"));
    let second = stage.call("13800000002", message).await;
    let mut outcomes = Vec::new();
    for sid in [&first, &second] {
        let report = stage.report_of(sid).await;
        let outcome = stage.outcome(sid).await.unwrap();
        let state = match outcome {
            Outcome::Talked => 0,
            _ => 2,
        };
        assert!(
            report.contains(&format!("<state>{state}</state>")),
            "{report}"
        );
        assert_eq!(stage.bill_line(sid).await.order_id, sid.to_string());
        telephone.has_heard(sid).await;
        outcomes.push(outcome);
    }
    // The first may still have been in the moment after its commit.
    outcomes.sort_unstable_by_key(|outcome| *outcome != Outcome::Talked);
    assert_eq!(outcomes, [Outcome::Talked, Outcome::Interrupted]);
    assert_eq!(telephone.dialled().len(), 2, "nobody twice");
    eventually("ready: one call is no task", async || {
        is_ready(&stage.server).await
    })
    .await;
}

#[tokio::test]
async fn a_request_that_panics_is_answered_and_the_next_one_is_served() {
    let server = TestServer::start().await;
    let call = "<to>13800000000</to><mediaTxt>x</mediaTxt>";
    assert!(server.supervisor().request_panic("request"));
    assert_eq!(status_code(&server.call_xml(call).await), "111000");
    call_sid(&server.call_xml(call).await);
}

#[tokio::test]
async fn a_process_without_its_pacer_ends_and_says_why() {
    let installation = Installation::new(None).await;
    let server = installation
        .start_by(|serve| serve.args(["--panic-task", "pacer"]).stderr(Stdio::piped()))
        .await;
    let ended = tokio::time::timeout(PATIENCE, server.process.wait_with_output());
    let ended = ended.await.unwrap().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("the task `pacer` panicked"), "{said}");
}

#[tokio::test]
async fn a_disk_below_its_floor_is_not_ready() {
    // More than any disk has.
    let server = TestServer::start_with("min_free_mb = 17179869184\n").await;
    let (status, text) = get(&server, "/readyz").await;
    assert_eq!(status, 503);
    assert!(text.contains("min_free_mb is 17179869184"), "{text}");
    assert_eq!(get(&server, "/healthz").await.0, 200, "alive all the same");
}

#[tokio::test]
async fn a_writer_that_hangs_is_not_ready_within_a_second_and_ready_when_it_goes_on() {
    let server = TestServer::start().await;
    eventually("ready", async || is_ready(&server).await).await;
    let file = server.folder.path().join("data/clarion.db");
    let other = rusqlite::Connection::open(file).unwrap();
    other.busy_timeout(PATIENCE).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    not_ready_in_time(&server).await;
    other.execute_batch("ROLLBACK").unwrap();
    eventually("ready again", async || is_ready(&server).await).await;
}

#[tokio::test]
async fn a_database_that_hangs_is_not_ready_within_a_second_and_ready_when_it_goes_on() {
    let database = postgres::empty_database().await;
    let server = TestServer::start_with(&format!("database = {database:?}\n")).await;
    eventually("ready", async || is_ready(&server).await).await;
    let (mut other, connection) = tokio_postgres::connect(&database, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let locked = other.transaction().await.unwrap();
    let lock = "LOCK TABLE probe IN ACCESS EXCLUSIVE MODE";
    locked.batch_execute(lock).await.unwrap();
    not_ready_in_time(&server).await;
    locked.rollback().await.unwrap();
    eventually("ready again", async || is_ready(&server).await).await;
}

/// Not ready as soon as what was proven before is forgotten, and every answer comes soon.
async fn not_ready_in_time(server: &TestServer) {
    eventually("not ready", async || {
        let asked = Instant::now();
        let (status, text) = get(server, "/readyz").await;
        assert!(asked.elapsed() < ANSWERED_WITHIN, "{:?}", asked.elapsed());
        status == 503 && text.contains("did not take a write in time")
    })
    .await;
}
