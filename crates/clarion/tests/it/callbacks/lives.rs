//! Callbacks over the lives of a server: stopped, killed, started again; and the operator's commands beside it.

use std::collections::HashSet;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Output;

use clarion::domain::callback::CallbackState;
use phone::test_phone::Script;
use serde_json::Value;
use supervisor::Supervisor;
use tokio::process::Command;
use tokio_postgres::NoTls;

use super::SETTINGS;
use crate::support::child::{Caller, Installation};
use crate::support::owed::{call, key, now, owe, owed_to};
use crate::support::receiver::{Manner, Receiver, answer, ok};
use crate::support::telephone::Telephone;
use crate::support::{TestServer, ZONE, eventually, postgres};

/// Settings for a server in a process of its own.
fn impatient() -> [(&'static str, PathBuf); 4] {
    [
        ("CLARION_CALLBACKS__ALLOWED_NETWORKS", "[\"127.0.0.0/8\"]"),
        ("CLARION_CALLBACKS__TIME_LIMIT_SECONDS", "2"),
        ("CLARION_CALLBACKS__LEASE_SECONDS", "4"),
        ("CLARION_CALLBACKS__POLL_SECONDS", "1"),
    ]
    .map(|(name, value)| (name, PathBuf::from(value)))
}

#[tokio::test]
async fn a_delivery_cut_off_by_a_kill_is_repeated_with_the_same_webhook_id() {
    for database in [None, Some(postgres::empty_database().await)] {
        let installation = Installation::new(database).await;
        let receiver = Receiver::start(vec![Manner::Hang, ok()]).await;
        let settings = impatient();
        let settings = settings.each_ref().map(|(name, value)| (*name, value));
        owe(
            &installation.database,
            vec![owed_to(&receiver.url(), 1, now())],
        )
        .await;
        let mut server = installation.start_with(&settings).await;
        receiver.has_received(1).await;
        server.process.kill().await.unwrap();

        let _server = installation.start_with(&settings).await;
        let received = receiver.has_received(2).await;
        assert_eq!(
            received[0].header("webhook-id"),
            received[1].header("webhook-id")
        );
        let store = installation
            .database
            .open(&Supervisor::new())
            .await
            .unwrap();
        eventually("it is delivered", async || {
            let (callback, attempts) = store.callback(&key(1)).await.unwrap().unwrap();
            callback.state == CallbackState::Delivered && attempts.len() == 1
        })
        .await;
        assert_eq!(receiver.received().len(), 2);
    }
}

/// A receiver that accepts connections and says nothing has what it gets of places; more for it is only written down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_owed_to_a_receiver_without_a_place_makes_nobody_look() {
    const BEFORE: u64 = 20;
    const AFTER: u64 = 60;
    // What a refused call owes: its end; or that it waits, is dialled, was hung up, and is over.
    for (field, owed) in [("respUrl", 1), ("callStateUrl", 4)] {
        for database in [None, Some(postgres::empty_database().await)] {
            let telephone = Telephone::that(Script::refuse(486)).await;
            let trunk = telephone.trunk("only", "channels = 20\ncalls_per_second = 200\n");
            let installation = Installation::with_settings(database, &trunk).await;
            let silent = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/", silent.local_addr().unwrap());
            let mut settings = impatient();
            for ((_, value), patient) in settings[1..].iter_mut().zip(["60", "90", "3600"]) {
                *value = PathBuf::from(patient);
            }
            let settings = settings.each_ref().map(|(name, value)| (*name, value));
            let server = installation.start_with(&settings).await;
            let store = installation
                .database
                .open(&Supervisor::new())
                .await
                .unwrap();
            let mut caller = Caller::connect(&server.client).await.unwrap();
            let mut looks = Vec::new();
            let mut number = 0;
            for calls in [BEFORE, AFTER] {
                while number < calls {
                    number += 1;
                    let fields = format!(
                        "\"to\":\"1380000{number:04}\",\"mediaTxt\":\"x\",\"{field}\":\"{url}\""
                    );
                    caller.place(&fields).await.unwrap();
                }
                eventually("all are owed", async || {
                    store.callback_backlog().await.unwrap().waiting == owed * calls
                })
                .await;
                let made = server.metric("clarion_callback_polls_total").await;
                looks.push(made.unwrap());
            }
            let more = looks[1] - looks[0];
            assert!(
                more <= 4.0,
                "{more} looks for {} calls with {field}",
                AFTER - BEFORE
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_nodes_either_delivers_and_when_one_is_killed_nothing_is_lost() {
    let installation = Installation::new(Some(postgres::empty_database().await)).await;
    let settings = impatient();
    let settings = settings.each_ref().map(|(name, value)| (*name, value));
    let receiver = Receiver::start(vec![ok()]).await;
    let mut lost = installation.start_with(&settings).await;
    let _stays = installation.start_with(&settings).await;
    let owed = |numbers: std::ops::RangeInclusive<u32>| {
        numbers.map(|number| owed_to(&receiver.url(), number, now()))
    };
    // While both are alive, nothing arrives twice.
    owe(&installation.database, owed(1..=200).collect()).await;
    let received = receiver.has_received(200).await;
    let ids: HashSet<_> = received
        .iter()
        .map(|one| one.header("webhook-id"))
        .collect();
    assert_eq!((received.len(), ids.len()), (200, 200));

    owe(&installation.database, owed(1001..=2000).collect()).await;
    receiver.has_received(300).await;
    lost.process.kill().await.unwrap();
    let store = installation
        .database
        .open(&Supervisor::new())
        .await
        .unwrap();
    eventually("nothing is left", async || {
        store.callback_backlog().await.unwrap().waiting == 0
    })
    .await;
    let received = receiver.received();
    let ids: HashSet<_> = received
        .iter()
        .map(|one| one.header("webhook-id"))
        .collect();
    assert_eq!(ids.len(), 1200);
    assert!(
        received.len() < 1200 + 256,
        "only what was under way is repeated"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_the_database_cut_during_deliveries_lose_none() {
    let database = postgres::empty_database().await;
    let settings = format!("database = {database:?}\n{SETTINGS}lease_seconds = 3\nper_host = 4\n");
    let server = TestServer::start_with(&settings).await;
    let receiver = Receiver::start(vec![ok()]).await;
    server.owe(&vec![receiver.url(); 500]).await;
    let (client, connection) = tokio_postgres::connect(&database, NoTls).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..5 {
        // Not before some more have arrived.
        receiver.has_received(receiver.received().len() + 10).await;
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        client.execute(cut, &[]).await.unwrap();
    }
    eventually("nothing is left", async || {
        let backlog = server.store.callback_backlog().await;
        backlog.is_ok_and(|backlog| backlog.waiting == 0)
    })
    .await;
    let received = receiver.received();
    let ids: HashSet<_> = received
        .iter()
        .map(|one| one.header("webhook-id"))
        .collect();
    assert_eq!(ids.len(), 500);
}

#[tokio::test]
async fn a_server_that_stops_begins_nothing_new_and_hands_back_what_it_cannot_finish() {
    let settings = SETTINGS.replace(
        "time_limit_seconds = 1\n",
        "time_limit_seconds = 15\nper_host = 1\n",
    );
    let mut server = TestServer::start_with(&settings).await;
    let receiver = Receiver::start(vec![Manner::Hang, ok()]).await;
    server.owe(&[receiver.url(), receiver.url()]).await;
    receiver.has_received(1).await;
    server.take_server().stop().await;
    for number in [1, 2] {
        let (callback, attempts) = server.callback(number).await;
        assert_eq!(
            (callback.state, attempts.len()),
            (CallbackState::Waiting, 0)
        );
    }
    assert_eq!(receiver.received().len(), 1);
    server.restart(&settings).await;
    for number in [1, 2] {
        server.callback_is(number, CallbackState::Delivered).await;
    }
}

#[tokio::test]
async fn a_delivery_that_ends_while_the_server_stops_is_recorded() {
    let settings = SETTINGS.replace("stop_seconds = 1\n", "stop_seconds = 15\n");
    let mut server = TestServer::start_with(&settings).await;
    let drip = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n".to_owned();
    let receiver = Receiver::start(vec![Manner::Drip(drip, b'x')]).await;
    server.owe(&[receiver.url()]).await;
    receiver.has_received(1).await;
    server.take_server().stop().await;
    let (callback, attempts) = server.callback(1).await;
    assert_eq!(
        (callback.state, attempts.len()),
        (CallbackState::Delivered, 1)
    );
}

async fn clarion(server: &TestServer, arguments: &[&str]) -> Output {
    let config = server.folder.path().join("clarion.toml");
    let data = server.folder.path().join("data");
    std::fs::write(
        &config,
        format!("data_dir = {data:?}\ntime_zone = {ZONE:?}\n"),
    )
    .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_clarion"));
    let command = command
        .arg("--config")
        .arg(config)
        .arg("callback")
        .args(arguments);
    command.output().await.unwrap()
}

async fn json(server: &TestServer, arguments: &[&str]) -> Value {
    let output = clarion(server, &[arguments, &["--json"]].concat()).await;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn the_operator_lists_shows_and_replays_callbacks_beside_the_server() {
    let server = TestServer::start_with(SETTINGS).await;
    let mut manners = vec![answer(500, "", "out of order"); 4];
    manners.push(ok());
    let receiver = Receiver::start(manners).await;
    server.owe(&[receiver.url()]).await;
    server.callback_is(1, CallbackState::GivenUp).await;
    let sid = call(1).to_string();

    let listed = json(&server, &["list", "--state", "given-up"]).await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed[0]["callSid"], &listed[0]["attempts"]),
        (&sid.clone().into(), &4.into())
    );
    assert_eq!(
        json(&server, &["list", "--state", "waiting"]).await,
        serde_json::json!([])
    );
    assert_eq!(
        json(&server, &["list", "--before", &sid]).await,
        serde_json::json!([])
    );

    let shown = json(&server, &["show", &sid]).await;
    assert_eq!(shown["history"][3]["answer"], "out of order");
    assert_eq!(shown["history"][3]["verdict"], "bad-status");
    let text = shown.to_string();
    assert!(
        !text.contains("13800000000") && !text.contains("secret"),
        "{text}"
    );
    let with_body = json(&server, &["show", &sid, "--body"]).await;
    assert!(with_body["body"].as_str().unwrap().contains("<callSid>"));
    let for_people = clarion(&server, &["show", &sid]).await;
    let for_people = String::from_utf8(for_people.stdout).unwrap();
    assert!(
        for_people.contains("given-up") && for_people.contains("out of order"),
        "{for_people}"
    );

    let replayed = json(&server, &["replay", &sid]).await;
    assert_eq!(replayed["attempts"], 4);
    let attempts = server.callback_is(1, CallbackState::Delivered).await;
    assert_eq!(attempts.len(), 5);

    let missing = clarion(&server, &["replay", &"f".repeat(32)]).await;
    assert!(!missing.status.success());
    let error = String::from_utf8(missing.stderr).unwrap();
    assert!(error.contains("there is no callback of call"), "{error}");
}

#[tokio::test]
async fn attempts_and_what_waits_are_metered() {
    let server = TestServer::start_with(SETTINGS).await;
    let receiver = Receiver::start(vec![ok()]).await;
    server.owe(&[receiver.url()]).await;
    server.callback_is(1, CallbackState::Delivered).await;
    let mut connection = server.client().connect().await.unwrap();
    let (_, metrics) = connection.get("/metrics").await.unwrap();
    for wanted in [
        "clarion_callback_attempts_total{verdict=\"delivered\"}",
        "clarion_callback_lag_seconds",
        "clarion_callbacks_waiting",
        "clarion_callbacks_oldest_seconds",
    ] {
        assert!(metrics.contains(wanted), "{wanted}");
    }
}
