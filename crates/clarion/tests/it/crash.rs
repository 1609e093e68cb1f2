//! `kill -9` under load: every callSid that a client was given is in the store afterwards.
//!
//! A short run here; `make crash` runs a hundred rounds on each database (CRASH_ROUNDS).

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clarion::client::{Client, Credentials};
use clarion::clock::Clock;
use clarion::domain::account::AccountChange;
use clarion::store::Database;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::{
    APP, PATIENCE, SID, TOKEN, account, application, call_sid, postgres, status_code,
};

const CONNECTIONS: usize = 8;

fn rounds() -> usize {
    std::env::var("CRASH_ROUNDS").map_or(4, |rounds| {
        rounds.parse().expect("CRASH_ROUNDS is a number")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_accepted_call_is_lost_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::Sqlite(folder.path().join("clarion.db"));
    crash_again_and_again(folder.path(), &database).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_accepted_call_is_lost_on_postgres() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::Postgres(postgres::empty_database().await);
    crash_again_and_again(folder.path(), &database).await;
}

async fn crash_again_and_again(folder: &Path, database: &Database) {
    let url = match database {
        Database::Sqlite(path) => format!("sqlite:{}", path.display()),
        Database::Postgres(url) => url.clone(),
    };
    let config = folder.join("clarion.toml");
    std::fs::write(
        &config,
        format!("data_dir = {folder:?}\ndatabase = {url:?}\n[http]\nlisten = [\"127.0.0.1:0\"]\n[log]\nfilter = \"error\"\n"),
    )
    .unwrap();
    let store = database.open().await.unwrap();
    store.add_account(account()).await.unwrap();
    store.add_application(application()).await.unwrap();
    let no_limit = Some(Some(1_000_000));
    let limits = AccountChange {
        requests_per_second: no_limit,
        requests_at_once: no_limit,
        ..AccountChange::default()
    };
    store
        .change_account(&SID.parse().unwrap(), limits)
        .await
        .unwrap();
    store.close().await;

    let mut accepted_in_all = 0;
    for round in 0..rounds() {
        let (mut server, address) = start(&config).await;
        let accepted = load_until_killed(&mut server, address, &folder.join("tls/ca.pem")).await;
        assert!(
            !accepted.is_empty(),
            "round {round}: nothing was accepted before the kill"
        );
        // From outside, with the server dead: is it all there?
        let store = database.open().await.unwrap();
        for sid in &accepted {
            let progress = store
                .call_progress(&SID.parse().unwrap(), &sid.parse().unwrap())
                .await
                .unwrap();
            assert!(
                progress.is_some(),
                "round {round}: call {sid} was accepted and is lost"
            );
        }
        store.close().await;
        accepted_in_all += accepted.len();
    }
    println!(
        "{} rounds, {accepted_in_all} accepted calls, none lost on {database}",
        rounds()
    );
}

async fn start(config: &Path) -> (Child, SocketAddr) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_clarion"))
        .arg("--config")
        .arg(config)
        .arg("serve")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let first = tokio::time::timeout(PATIENCE, lines.next_line())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let address = first
        .split("https://")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    (server, address)
}

/// Clients that place calls as fast as they can, and a kill at a random moment. Returns what the clients were promised.
async fn load_until_killed(server: &mut Child, address: SocketAddr, ca: &Path) -> Vec<String> {
    let client = Client::new(address, ca).unwrap();
    let accepted = Arc::new(Mutex::new(Vec::new()));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (client, accepted) = (client.clone(), Arc::clone(&accepted));
        clients.spawn(async move { place_calls(&client, &accepted).await });
    }
    // Not before the load is really there.
    crate::support::eventually("load", async || {
        accepted.lock().unwrap().len() > CONNECTIONS
    })
    .await;
    let [random] = clarion::random::bytes::<1>();
    tokio::time::sleep(Duration::from_millis(u64::from(random))).await;
    server.kill().await.unwrap();
    while clients.join_next().await.is_some() {}
    Arc::into_inner(accepted).unwrap().into_inner().unwrap()
}

/// Until the connection breaks.
async fn place_calls(client: &Client, accepted: &Mutex<Vec<String>>) {
    let credentials = Credentials {
        sid: SID.parse().unwrap(),
        token: TOKEN.parse().unwrap(),
    };
    let signature = credentials.sign(&Clock::new(jiff::tz::TimeZone::system()).wall());
    let body = format!("{{\"appId\":\"{APP}\",\"to\":\"13800000000\",\"mediaTxt\":\"x\"}}");
    let Ok(mut connection) = client.connect().await else {
        return;
    };
    let place = async || {
        connection
            .operation(
                &credentials,
                &signature,
                "Calls/LandingCalls",
                "application/json",
                Some(body.clone()),
            )
            .await
    };
    let mut place = place;
    while let Ok(answer) = place().await {
        if status_code(&answer) == "000000" {
            accepted.lock().unwrap().push(call_sid(&answer));
        }
    }
}
