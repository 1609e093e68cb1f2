//! `kill -9` under load: every callSid that a client was given is in the store afterwards.
//!
//! A short run here; `make crash` runs a hundred rounds on each database (CRASH_ROUNDS).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::{eventually, postgres};

const CONNECTIONS: usize = 8;

fn rounds() -> usize {
    std::env::var("CRASH_ROUNDS").map_or(4, |rounds| {
        rounds.parse().expect("CRASH_ROUNDS is a number")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_accepted_call_is_lost_on_sqlite() {
    crash_again_and_again(Installation::new(None).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_accepted_call_is_lost_on_postgres() {
    crash_again_and_again(Installation::new(Some(postgres::empty_database().await)).await).await;
}

async fn crash_again_and_again(installation: Installation) {
    let mut accepted_in_all = 0;
    for round in 0..rounds() {
        let accepted = load_until_killed(installation.start().await).await;
        // From outside, with the server dead: is it all there?
        installation
            .holds(&accepted)
            .await
            .unwrap_or_else(|lost| panic!("round {round}: {lost}"));
        accepted_in_all += accepted.len();
    }
    println!(
        "{} rounds, {accepted_in_all} calls accepted, none lost on {}",
        rounds(),
        installation.database
    );
}

#[tokio::test]
async fn a_call_that_was_never_accepted_is_found_missing() {
    let installation = Installation::new(None).await;
    let lost = installation.holds(&["f".repeat(32)]).await;
    assert!(
        lost.unwrap_err().contains("is lost"),
        "the check of the other tests can fail"
    );
}

/// Clients that place calls as fast as they can, and a kill at a random moment. Returns what the clients were promised.
async fn load_until_killed(mut server: ChildServer) -> Vec<String> {
    let accepted = Arc::new(Mutex::new(Vec::new()));
    let mut clients = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (client, accepted) = (server.client.clone(), Arc::clone(&accepted));
        clients.spawn(async move { Caller::place_calls(&client, &accepted).await });
    }
    // Not before the load is really there.
    eventually("load", async || {
        accepted.lock().unwrap().len() > CONNECTIONS
    })
    .await;
    let [random] = clarion::random::bytes::<1>();
    tokio::time::sleep(Duration::from_millis(u64::from(random))).await;
    server.process.kill().await.unwrap();
    while clients.join_next().await.is_some() {}
    Arc::into_inner(accepted).unwrap().into_inner().unwrap()
}
