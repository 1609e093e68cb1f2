//! Days that are closed, and who closes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clarion::domain::claim::NodeId;
use clarion::domain::outcome::Outcome;
use clarion::store::Database;
use jiff::SignedDuration;
use tokio::task::JoinSet;

use super::now;
use crate::store_contract::order;
use crate::store_contract::with_account;
use crate::support::bills::{bill_of, call, claim, day, ended, money, record};
use crate::support::{self};

contract! {
    what_is_closed_never_changes_whatever_ends_meanwhile,
    a_day_is_closed_in_the_middle_of_a_storm,
    closing_a_day_closes_those_before_it_and_they_owe_their_files,
    a_duty_is_done_by_one_node_until_its_lease_ends,
}

/// Calls end and records come while the day is closed. What is in it when closing returns is all that ever is.
async fn what_is_closed_never_changes_whatever_ends_meanwhile(database: Database) {
    let store = with_account(&database).await;
    for number in 0..40 {
        let call = call(&format!("861380000{number:04}"), now());
        store.accept_call(order(call)).await.unwrap();
    }
    let mut ending = JoinSet::new();
    for (number, claimed) in claim(&*store, 200).await.into_iter().enumerate() {
        let store = Arc::clone(&store);
        ending.spawn(async move {
            let end = ended(&claimed, Some(1), Outcome::Talked, now());
            assert!(store.end_call(end).await.unwrap());
            let record = record(&format!("r{number}"), now(), money("1"));
            let limit = Instant::now() + support::PATIENCE;
            // On a busy machine there may be no connection for so many at once.
            let imported = loop {
                match store.import_records(vec![record.clone()], true).await {
                    Err(_) if Instant::now() < limit => tokio::task::yield_now().await,
                    imported => break imported.unwrap(),
                }
            };
            assert_eq!(imported.added, 1);
        });
    }
    let lines = async |on| store.bill_lines(&bill_of(on), None, 1000).await.unwrap();
    support::eventually("some have ended", async || {
        lines("2026-11-15").await.len() > 8
    })
    .await;
    store.close_day(day("2026-11-15"), now()).await.unwrap();
    let closed = lines("2026-11-15").await;
    ending.join_all().await;
    assert_eq!(lines("2026-11-15").await, closed);
    let later = lines("2026-11-16").await.len();
    assert_eq!(closed.len() + later, 80);
    assert_eq!(store.first_open_day().await.unwrap(), day("2026-11-16"));
    store.close_day(day("2026-11-14"), now()).await.unwrap();
    assert_eq!(
        store.first_open_day().await.unwrap(),
        day("2026-11-16"),
        "never back"
    );
    println!(
        "{} lines before the closing, {later} after it",
        closed.len()
    );
}

/// Somebody is always adding a line. Closing gets its turn all the same.
async fn a_day_is_closed_in_the_middle_of_a_storm(database: Database) {
    let store = with_account(&database).await;
    let calm = Arc::new(AtomicBool::new(false));
    let mut storm = JoinSet::new();
    for asker in 0..6 {
        let (store, calm) = (Arc::clone(&store), Arc::clone(&calm));
        storm.spawn(async move {
            let mut added = 0;
            while !calm.load(Ordering::Relaxed) {
                let call = call(&format!("86138{asker:04}{added:04}"), now());
                store.accept_call(order(call)).await.unwrap();
                for claimed in claim(&*store, 1).await {
                    let end = ended(&claimed, Some(1), Outcome::Talked, now());
                    assert!(store.end_call(end).await.unwrap());
                    added += 1;
                }
            }
            added
        });
    }
    let lines = async |on| {
        let lines = store.bill_lines(&bill_of(on), None, 100_000).await;
        lines.unwrap().len()
    };
    support::eventually("the storm", async || lines("2026-11-15").await > 20).await;
    let closing = store.close_day(day("2026-11-15"), now());
    let closed = tokio::time::timeout(support::PATIENCE, closing).await;
    closed.expect("its turn comes").unwrap();
    let before = lines("2026-11-15").await;
    support::eventually("lines after it", async || lines("2026-11-16").await > 20).await;
    calm.store(true, Ordering::Relaxed);
    let added: usize = storm.join_all().await.into_iter().sum();
    assert_eq!(lines("2026-11-15").await, before);
    assert_eq!(before + lines("2026-11-16").await, added);
}

/// As a client does who asks for yesterday's bill before the server has made up the nights that it missed.
async fn closing_a_day_closes_those_before_it_and_they_owe_their_files(database: Database) {
    let store = with_account(&database).await;
    for hours in [24 * 5, 24 * 4, 24, 0] {
        let moment = now() - SignedDuration::from_hours(hours);
        let record = record(&format!("r{hours}"), moment, money("1"));
        store.import_records(vec![record], false).await.unwrap();
    }
    store.close_day(day("2026-11-10"), now()).await.unwrap();
    store.close_day(day("2026-11-14"), now()).await.unwrap();
    let closed = store.closed_days().await.unwrap();
    let days: Vec<_> = closed.iter().map(|closed| closed.day.to_string()).collect();
    assert_eq!(days, ["2026-11-10", "2026-11-11", "2026-11-14"]);
    assert!(closed.iter().all(|closed| closed.filed_at.is_none()));
    assert_eq!(store.first_open_day().await.unwrap(), day("2026-11-15"));
    // Days without lines are closed when somebody asks for them.
    store.close_day(day("2026-11-13"), now()).await.unwrap();
    assert_eq!(store.closed_days().await.unwrap().len(), 4);
    store
        .forget_bills(day("2026-11-14"), now(), 10)
        .await
        .unwrap();
    let kept = store.closed_days().await.unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

async fn a_duty_is_done_by_one_node_until_its_lease_ends(database: Database) {
    let store = with_account(&database).await;
    let (one, other) = (NodeId::new([1; 8]), NodeId::new([2; 8]));
    let take = async |node: &NodeId, seconds: i64| {
        let lease = SignedDuration::from_secs(seconds);
        store.take_duty("close-day", node, lease).await.unwrap()
    };
    assert!(take(&one, 60).await);
    assert!(take(&one, 60).await, "kept");
    assert!(!take(&other, 60).await);
    store.leave_duty("close-day", &other).await.unwrap();
    assert!(!take(&other, 60).await, "only its holder leaves it");
    store.leave_duty("close-day", &one).await.unwrap();
    assert!(take(&other, 0).await);
    assert!(take(&one, 60).await, "the lease has ended");
}
