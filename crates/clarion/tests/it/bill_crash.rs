//! `kill -9` while a day is being closed, and two nodes at midnight: one right file.
//!
//! A short run here; `make crash` runs a hundred rounds (CRASH_ROUNDS).

use std::sync::Arc;
use std::time::Duration;

use clarion::billing::Billing;
use clarion::clock::Clock;
use clarion::config::Config;
use clarion::domain::bill::calendar;
use clarion::server::Server;
use clarion::store::Store;
use jiff::SignedDuration;
use supervisor::Supervisor;

use crate::support::bills::{add_records, at, bill_of, day};
use crate::support::child::Installation;
use crate::support::{APP, ZONE, account, application, clock, eventually, postgres};

const LINES: usize = 6000;

fn rounds() -> usize {
    std::env::var("CRASH_ROUNDS").map_or(3, |rounds| {
        rounds.parse().expect("CRASH_ROUNDS is a number")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_closing_leaves_one_right_file_on_sqlite() {
    kill_again_and_again(Installation::new(None).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_closing_leaves_one_right_file_on_postgres() {
    kill_again_and_again(Installation::new(Some(postgres::empty_database().await)).await).await;
}

/// Days that are over, the oldest first: each round closes one of them.
async fn kill_again_and_again(installation: Installation) {
    let clock = clock();
    let today = calendar::begins(calendar::day_of(clock.now(), clock.zone()), clock.zone());
    let mut interrupted = 0;
    for round in 0..rounds() {
        let back = i64::try_from(rounds() - round + 1).unwrap();
        let noon = today - SignedDuration::from_hours(24 * back - 12);
        let store = installation
            .database
            .open(&Supervisor::new())
            .await
            .unwrap();
        add_records(&*store, noon, LINES).await;
        let mut server = installation.start().await;
        let [random] = clarion::random::bytes::<1>();
        // Closing takes some tenths of a second: mostly in the middle of it, and sometimes at its end or after.
        let wait = u64::from(random) * if round % 2 == 0 { 1 } else { 4 };
        tokio::time::sleep(Duration::from_millis(wait)).await;
        server.process.kill().await.unwrap();
        let on = calendar::day_of(noon, clock.zone());
        let filed = async || {
            let days = store.closed_days().await.unwrap();
            days.iter()
                .any(|closed| closed.day == on && closed.filed_at.is_some())
        };
        interrupted += usize::from(!filed().await);
        let mut server = installation.start().await;
        eventually("the day is filed", filed).await;
        server.process.kill().await.unwrap();
        check(&installation, Arc::clone(&store), &clock, on, round).await;
        store.close().await;
    }
    println!(
        "{} rounds, {interrupted} interrupted, on {}",
        rounds(),
        installation.database
    );
}

async fn check(
    installation: &Installation,
    store: Arc<dyn Store>,
    clock: &Clock,
    on: jiff::civil::Date,
    round: usize,
) {
    let text = format!("data_dir = {:?}", installation.folder.path());
    let config = Config::from_parts(&text, &[]).unwrap();
    let billing = Billing::open(&config, Arc::clone(&store), clock.clone()).unwrap();
    let verdict = billing.verify(on).await.unwrap();
    assert!(verdict.is_good(), "round {round}: {verdict:?}");
    assert_eq!(
        (verdict.bills.len(), verdict.totals.lines),
        (1, LINES as u64)
    );
    let folder = installation.folder.path().join(format!("bills/{on}"));
    let files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.contains('#')) // written aside, and swept up later
        .collect();
    assert_eq!(files, [format!("{APP}.csv")], "round {round}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_at_midnight_make_one_file() {
    let url = postgres::empty_database().await;
    let folder = tempfile::tempdir().unwrap();
    let config = |node: &str| {
        let (data, bills) = (folder.path().join(node), folder.path().join("bills"));
        let text = format!(
            "data_dir = {data:?}\ndatabase = {url:?}\ntime_zone = {ZONE:?}\n[http]\nlisten = [\"127.0.0.1:0\"]\n[console]\nlisten = []\n[bills]\nfolder = {bills:?}\n"
        );
        Config::from_parts(&text, &[]).unwrap()
    };
    let store = config("a").database.open(&Supervisor::new()).await.unwrap();
    store.add_account(account()).await.unwrap();
    store.add_application(application()).await.unwrap();
    let clock = clock();
    // Both have the same clock, and both see midnight pass.
    clock.shift(at("2026-11-15T23:59:00+08:00").duration_since(clock.now()));
    let nodes = [
        Server::start(config("a"), clock.clone()).await.unwrap(),
        Server::start(config("b"), clock.clone()).await.unwrap(),
    ];
    add_records(&*store, at("2026-11-15T12:00:00+08:00"), 5000).await;
    clock.shift(SignedDuration::from_mins(7));
    let on = day("2026-11-15");
    eventually("the day is filed", async || {
        let days = store.closed_days().await.unwrap();
        days.iter()
            .any(|closed| closed.day == on && closed.filed_at.is_some())
    })
    .await;
    let files = store.bill_files(on).await.unwrap();
    assert_eq!(files.len(), 1);
    let billing = Billing::open(&config("a"), Arc::clone(&store), clock.clone()).unwrap();
    assert!(billing.verify(on).await.unwrap().is_good());
    let there = std::fs::read_dir(folder.path().join("bills/2026-11-15"))
        .unwrap()
        .count();
    assert_eq!(there, 1, "one wrote it");
    assert_eq!(
        billing.file(&bill_of("2026-11-15"), None).await.unwrap(),
        files[0]
    );
    for node in nodes {
        node.stop().await;
    }
}
