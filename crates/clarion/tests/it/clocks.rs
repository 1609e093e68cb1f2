//! Clocks that are wrong, and clocks that jump: what is queued is neither given up nor held back.

use clarion::clock::Clock;
use clarion::dispatch::STOP_ALL;
use clarion::domain::call::CallSid;
use clarion::domain::callback::CallbackState;
use clarion::store::Store;
use jiff::SignedDuration;

use crate::calls::stage::{Stage, on_postgres};
use crate::support::child::Installation;
use crate::support::owed::{owe, owed_to, pass};
use crate::support::receiver::{Receiver, answer, ok};
use crate::support::{APP, TestServer, eventually, postgres, status_code};

const TWO_HOURS: SignedDuration = SignedDuration::from_hours(2);

async fn place(stage: &Stage, calls: usize) -> Vec<CallSid> {
    let mut sids = Vec::new();
    for number in 0..calls {
        let number = format!("138{number:07}0");
        sids.push(stage.call(&number, "\"mediaTxt\":\"x\"").await);
    }
    sids
}

async fn all_are_talked(stage: &Stage, sids: &[CallSid]) {
    for sid in sids {
        let report = stage.report_of(sid).await;
        assert!(report.contains("<state>0</state>"), "{report}");
    }
}

/// What shall end without being dialled has been looked for once more, from now on: a cancelled call is found by the same look.
async fn overdue_calls_were_looked_for(stage: &Stage) {
    let marker = stage.call("13900000000", "\"mediaTxt\":\"x\"").await;
    let body = format!("{{\"appId\":\"{APP}\",\"callSid\":\"{marker}\"}}");
    let cancelled = stage.server.ask("Calls/CallCancel", "json", Some(&body));
    assert_eq!(status_code(&cancelled.await), "000000");
    eventually("the cancelled call has ended", async || {
        let record = stage.server.store.call_record(&marker).await;
        matches!(record, Ok(Some(record)) if record.outcome.is_some())
    })
    .await;
}

#[tokio::test]
async fn a_jump_of_the_clock_neither_expires_the_queue_nor_holds_it_back() {
    for database in [String::new(), on_postgres().await] {
        a_jump_changes_nothing(&database).await;
    }
}

async fn a_jump_changes_nothing(database: &str) {
    // Nothing is dialled while the calls are placed.
    let stop = async |store: &dyn Store, clock: &Clock| {
        let set = store.set_switch(STOP_ALL, Some("on"), clock.now());
        set.await.unwrap();
    };
    let stage = Stage::prepared(database, stop).await;
    let server = &stage.server;
    let mut sids = place(&stage, 20).await;
    // Two hours ahead, the time that a call may wait is over twice; five more are accepted meanwhile.
    server.clock.skew(TWO_HOURS);
    sids.extend(place(&stage, 5).await);
    overdue_calls_were_looked_for(&stage).await;
    assert_eq!(server.store.queue_depth().await.unwrap().0, 25);
    server.clock.skew(-TWO_HOURS);
    let resume = server.store.set_switch(STOP_ALL, None, server.clock.now());
    resume.await.unwrap();
    all_are_talked(&stage, &sids).await;
}

#[tokio::test]
async fn a_node_whose_clock_jumps_claims_nothing_until_it_is_right_again() {
    let more = format!("{}[dispatch]\nlease_seconds = 2\n", on_postgres().await);
    let stage = Stage::new(&more).await;
    let server = &stage.server;
    server.clock.skew(TWO_HOURS);
    let ready = async || {
        let mut connection = server.client().connect().await.unwrap();
        connection.get("/readyz").await.unwrap()
    };
    eventually("the node says so", async || {
        let (status, body) = ready().await;
        status == 503 && body.contains("7200.0 s ahead of the database's")
    })
    .await;
    server.clock.skew(-TWO_HOURS);
    eventually("ready again", async || ready().await.0 == 200).await;
    let sids = place(&stage, 3).await;
    all_are_talked(&stage, &sids).await;
}

#[tokio::test]
async fn a_node_that_is_two_hours_ahead_does_not_start() {
    let url = postgres::empty_database().await;
    let settings = "[[trunk]]\nname = \"loopback\"\nloopback = true\nprefixes = [\"\"]\n";
    let installation = Installation::with_settings(Some(url), settings).await;
    let refused = installation
        .clarion(&["serve", "--clock-skew", "7200"])
        .await;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success());
    assert!(
        said.contains("s ahead of the database's: more than a lease"),
        "{said}"
    );
}

/// A node whose clock is wrong when it tries and records, and wrong the other way while the callback waits.
async fn a_retry_keeps_its_time(database: &str, skew: SignedDuration) {
    let settings = format!(
        "{database}[callbacks]\nallowed_networks = [\"127.0.0.0/8\"]\nretry_seconds = [600]\njitter = 0.0\n"
    );
    let server = TestServer::start_with(&settings).await;
    let failing = Receiver::start(vec![answer(500, "", ""), ok()]).await;
    let working = Receiver::start(vec![ok()]).await;
    server.clock.skew(skew);
    server.owe(&[failing.url()]).await;
    eventually("the first attempt is recorded", async || {
        server.callback(1).await.1.len() == 1
    })
    .await;
    server.clock.skew(-skew * 2);
    // Whoever claims this one has looked at the other one too.
    let other = owed_to(&working.url(), 2, server.clock.now());
    owe(&server.database, vec![other]).await;
    server.deliver_callbacks();
    server.callback_is(2, CallbackState::Delivered).await;
    assert_eq!(server.callback(1).await.1.len(), 1, "not hastened: {skew}");
    pass(&server.database, SignedDuration::from_secs(601)).await;
    server.deliver_callbacks();
    server.callback_is(1, CallbackState::Delivered).await;
    assert_eq!(failing.received().len(), 2, "not delayed: {skew}");
}

#[tokio::test]
async fn a_jump_of_the_clock_neither_delays_nor_hastens_a_retry() {
    for skew in [TWO_HOURS, -TWO_HOURS] {
        a_retry_keeps_its_time("", skew).await;
    }
}

#[tokio::test]
async fn a_node_two_hours_off_neither_delays_nor_hastens_a_retry() {
    for skew in [TWO_HOURS, -TWO_HOURS] {
        a_retry_keeps_its_time(&on_postgres().await, skew).await;
    }
}
