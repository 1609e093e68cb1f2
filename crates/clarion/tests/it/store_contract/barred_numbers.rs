//! Barred numbers are read by what has changed.

use std::sync::Arc;

use clarion::barred_numbers::BarredNumbers;
use clarion::store::{BarredChange, Database, Store};
use jiff::Timestamp;

use super::open;

contract! {
    only_what_has_changed_is_read,
    changes_made_at_once_are_seen_by_whoever_reads_meanwhile,
    a_server_knows_them_before_its_first_request,
}

fn number(place: u32) -> String {
    format!("86138{place:08}")
}

fn applied(mut numbers: Vec<String>, changes: &[BarredChange]) -> Vec<String> {
    for change in changes {
        numbers.retain(|number| *number != change.digits);
        if change.is_barred {
            numbers.push(change.digits.clone());
        }
    }
    numbers.sort();
    numbers
}

async fn only_what_has_changed_is_read(database: Database) {
    let (store, now) = (open(&database).await, Timestamp::UNIX_EPOCH);
    let bar = async |place, barred| store.bar_number(&number(place), barred, now).await.unwrap();
    assert!(bar(1, true).await && !bar(1, true).await && bar(2, true).await);
    let revision = store.barred_revision().await.unwrap();
    assert!(store.barred_changes(revision).await.unwrap().is_empty());
    assert!(bar(1, false).await && !bar(1, false).await && bar(3, true).await);
    let changes = store.barred_changes(revision).await.unwrap();
    let told: Vec<_> = changes
        .iter()
        .map(|change| (change.digits.clone(), change.is_barred))
        .collect();
    assert_eq!(told, [(number(1), false), (number(3), true)]);
    let known = applied(vec![number(1), number(2)], &changes);
    assert_eq!(known, store.barred_numbers().await.unwrap());
}

async fn changes_made_at_once_are_seen_by_whoever_reads_meanwhile(database: Database) {
    let (store, now) = (open(&database).await, Timestamp::UNIX_EPOCH);
    let writers = (0..8).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for place in 0..25 {
                let digits = number(writer * 100 + place);
                store.bar_number(&digits, true, now).await.unwrap();
                if place % 3 == 0 {
                    store.bar_number(&digits, false, now).await.unwrap();
                }
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let (mut known, mut revision) = (Vec::new(), 0);
    loop {
        let is_last = writers.iter().all(tokio::task::JoinHandle::is_finished);
        let changes = store.barred_changes(revision).await.unwrap();
        revision = changes.last().map_or(revision, |change| change.revision);
        known = applied(known, &changes);
        if is_last {
            break;
        }
    }
    assert_eq!(known, store.barred_numbers().await.unwrap());
    assert_eq!(known.len(), 8 * 16);
}

async fn a_server_knows_them_before_its_first_request(database: Database) {
    let store = open(&database).await;
    let now = Timestamp::UNIX_EPOCH;
    store.bar_number(&number(1), true, now).await.unwrap();
    let barred = BarredNumbers::open(&*store as &dyn Store).await.unwrap();
    assert!(barred.contains(&number(1)) && !barred.contains(&number(2)));
}
