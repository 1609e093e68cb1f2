//! Every long-lived task is watched: one that panics is named while it is down and started again, what it held is recovered, and the
//! others go on. Readiness tells the truth within a second.

use std::collections::BTreeSet;
use std::process::Stdio;

use clarion::client::Connection;
use clarion::domain::call_state::CallState;
use clarion::domain::outcome::Outcome;
use phone::test_phone::Script;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::calls::stage::{Stage, on_postgres};
use crate::support::child::Installation;
use crate::support::telephone::Telephone;
use crate::support::{PATIENCE, TestServer, call_sid, eventually, postgres, status_code};

/// What the supervisor restarts, on both databases.
const RESTARTED: [&str; 20] = [
    "audio-sweep",
    "barred-numbers",
    "billing",
    "callback-gauges",
    "callbacks",
    "concerns",
    "console-listener",
    "disk-gauge",
    "dispatch",
    "heartbeat",
    "housekeeping",
    "incidents",
    "loopback-recorder",
    "metrics",
    "prompts-ahead",
    "registration:provider",
    "trace-door",
    "trunk-health:provider",
    "trunk-keepalive:provider",
    "trunk-sharing",
];
/// A thread, which panics only after it has rendered something.
const RENDERER: &str = "prompt-renderer";
/// What the process cannot go on without, on both databases.
const REQUIRED: [&str; 5] = [
    "http-listener",
    "pacer",
    "receiver",
    "sip-listener",
    "test-phone",
];
const REQUIRED_ON_SQLITE: [&str; 1] = ["store-writer"];
const REQUIRED_ON_POSTGRES: [&str; 3] = ["store-accepter", "store-ends", "store-progress"];

/// A trunk that has every task of a trunk. Nobody is there.
const PROVIDER: &str = "[[trunk]]\nname = \"provider\"\nhost = \"127.0.0.1:9\"\nbind = \"127.0.0.1:0\"\ntransport = \"tcp\"\n\
    prefixes = [\"999\"]\nregister_seconds = 60\nuser = \"clarion\"\npassword = \"secret\"\n";
const LOOPBACK: &str = "[media]\nbind = \"127.0.0.1\"\n[[trunk]]\nname = \"loopback\"\nloopback = true\nprefixes = [\"\"]\n";

async fn get(server: &TestServer, path: &str) -> (u16, String) {
    let mut connection = server.client().connect().await.unwrap();
    connection.get(path).await.unwrap()
}

async fn is_ready(server: &TestServer) -> bool {
    get(server, "/readyz").await.0 == 200
}

/// The tasks that `/readyz` names as down, and those whose metric says so. On a connection that stays: a task is down for a second only, and a
/// busy machine needs long for a handshake.
async fn down(connection: &mut Connection) -> (BTreeSet<String>, BTreeSet<String>) {
    let (_, text) = connection.get("/readyz").await.unwrap();
    let names = text.trim().strip_prefix("down: ").unwrap_or_default();
    let names = names.split(", ").filter(|name| !name.is_empty());
    let (_, metrics) = connection.get("/metrics").await.unwrap();
    let measured = metrics.lines().filter_map(|line| {
        let line = line.strip_prefix("clarion_task_up{task=\"")?;
        line.strip_suffix("\"} 0")
    });
    let measured = measured.map(str::to_owned).collect();
    (names.map(str::to_owned).collect(), measured)
}

#[tokio::test]
async fn every_task_that_panics_is_named_while_it_is_down_and_is_started_again() {
    let restarted = ["store-checkpoint"];
    every_task_that_panics("", &restarted, &REQUIRED_ON_SQLITE).await;
}

#[tokio::test]
async fn every_task_that_panics_is_named_while_it_is_down_and_is_started_again_on_postgres() {
    let restarted = ["store-signals"];
    every_task_that_panics(&on_postgres().await, &restarted, &REQUIRED_ON_POSTGRES).await;
}

async fn every_task_that_panics(database: &str, restarted: &[&str], required: &[&str]) {
    let stage = Stage::new(&format!(
        "{database}[dispatch]\nlease_seconds = 2\n{PROVIDER}"
    ))
    .await;
    let server = &stage.server;
    eventually("ready", async || is_ready(server).await).await;
    let tasks = || server.supervisor().tasks().into_iter();
    let restarted: BTreeSet<&str> = RESTARTED
        .iter()
        .chain(restarted)
        .chain(&[RENDERER])
        .copied()
        .collect();
    let named: BTreeSet<String> = tasks().map(|task| task.name).collect();
    let of_tests = restarted.iter().chain(&REQUIRED).chain(required);
    let of_tests: BTreeSet<String> = of_tests.map(|name| (*name).to_owned()).collect();
    assert_eq!(named, of_tests, "who adds a task names it here");

    // Its prompt is made when the dispatcher is up again, and the renderer panics then.
    let first = stage.call("13800000000", "\"mediaTxt\":\"x\"").await;
    let mut connection = server.client().connect().await.unwrap();
    let (mut unnamed, mut unmeasured) = (restarted.clone(), restarted.clone());
    eventually("each is down for a moment", async || {
        // All servers of this process share the metric: one that is asked in this moment may say that its own is up. Then it panics again.
        let up: BTreeSet<String> = tasks()
            .filter(|task| task.up)
            .map(|task| task.name)
            .collect();
        for name in unnamed.union(&unmeasured) {
            if up.contains(*name) {
                assert!(server.supervisor().request_panic_at_once(name), "{name}");
            }
        }
        let (down, at_zero) = down(&mut connection).await;
        unnamed.retain(|name| !down.contains(*name));
        unmeasured.retain(|name| !at_zero.contains(*name));
        unnamed.is_empty() && unmeasured.is_empty()
    })
    .await;
    eventually("ready again", async || is_ready(server).await).await;
    eventually("up again", async || {
        let (_, metrics) = connection.get("/metrics").await.unwrap();
        let is_up = |name: &&str| {
            let line = format!("clarion_task_up{{task=\"{name}\"}} 1");
            metrics.contains(&line)
        };
        restarted.iter().all(is_up)
    })
    .await;
    let second = stage.call("13800000001", "\"mediaTxt\":\"x\"").await;
    for sid in [first, second] {
        assert!(stage.report_of(&sid).await.contains("<state>0</state>"));
    }
}

/// Every task that the supervisor restarts, but the renderer, which has nothing to do here, and the console's, which is not there.
#[tokio::test]
async fn the_log_has_a_line_about_every_task_that_is_started_again() {
    let installation = Installation::with_settings(None, &format!("{LOOPBACK}{PROVIDER}")).await;
    let tasks = RESTARTED.iter().chain(&["store-checkpoint"]);
    let tasks = tasks.filter(|task| **task != "console-listener");
    let mut unsaid: BTreeSet<&str> = tasks.copied().collect();
    let asked = unsaid.iter().flat_map(|task| ["--panic-task", task]);
    let mut server = installation
        .start_by(|serve| serve.args(asked).stderr(Stdio::piped()))
        .await;
    let mut log = BufReader::new(server.process.stderr.take().unwrap()).lines();
    let reading = async {
        while !unsaid.is_empty() {
            let line = log.next_line().await.unwrap().expect("the server goes on");
            if line.contains("a task is down; it is started again") {
                unsaid.retain(|task| !line.contains(&format!("`{task}` was asked to panic")));
            }
        }
    };
    let read = tokio::time::timeout(PATIENCE, reading).await;
    assert!(read.is_ok(), "no line about {unsaid:?}");
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
async fn a_process_without_a_task_that_it_needs_ends_and_says_why() {
    let settings = format!("{LOOPBACK}{PROVIDER}");
    let on_sqlite = Installation::with_settings(None, &settings).await;
    let database = postgres::empty_database().await;
    let on_postgres = Installation::with_settings(Some(database), &settings).await;
    let of_sqlite = [&REQUIRED[..], &REQUIRED_ON_SQLITE].concat();
    tokio::join!(
        ends_without_each(&on_sqlite, &of_sqlite),
        ends_without_each(&on_postgres, &REQUIRED_ON_POSTGRES),
    );
}

async fn ends_without_each(installation: &Installation, tasks: &[&str]) {
    for task in tasks {
        let server = installation
            .start_by(|serve| serve.args(["--panic-task", task]).stderr(Stdio::piped()))
            .await;
        let ended = tokio::time::timeout(PATIENCE, server.process.wait_with_output());
        let ended = ended.await.expect(task).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{task}");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(
            said.contains(&format!("the task `{task}` panicked")),
            "{said}"
        );
    }
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

/// Not ready as soon as what was proven before is forgotten. That the answer comes within a second, the tests of `readiness` show, by a clock that
/// no other work slows down.
async fn not_ready_in_time(server: &TestServer) {
    eventually("not ready", async || {
        let (status, text) = get(server, "/readyz").await;
        status == 503 && text.contains("did not take a write in time")
    })
    .await;
}
