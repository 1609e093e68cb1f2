//! The do-not-call list of an account: its numbers stay as they were first added, and are found quickly however many they are.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use clarion::domain::account::AccountSid;
use clarion::domain::do_not_call::{DoNotCallEntry, DoNotCallSource};
use clarion::store::{Database, Store};
use jiff::Timestamp;

use super::with_account;
use crate::support::{SID, app_id};

contract! {
    a_number_is_added_found_and_removed,
    the_account_says_whether_there_is_a_list,
    a_hundred_thousand_are_added_in_batches_and_read_in_pages,
    the_same_numbers_added_at_once_are_each_new_once,
}

fn number(place: u32) -> String {
    format!("86138{place:08}")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn account() -> AccountSid {
    SID.parse().unwrap()
}

async fn a_number_is_added_found_and_removed(database: Database) {
    let (store, account) = (with_account(&database).await, account());
    let call = DoNotCallSource::Callee("20261115103509000000000000000001".parse().unwrap());
    let add = async |numbers: &[u32], source: &DoNotCallSource, second| {
        let numbers = numbers.iter().map(|place| number(*place)).collect();
        let added = store.add_do_not_call(&account, numbers, source.clone(), at(second));
        added.await.unwrap()
    };
    assert_eq!(add(&[1], &call, 1).await, 1);
    assert_eq!(add(&[3, 2, 1, 3], &DoNotCallSource::Import, 2).await, 2);
    assert_eq!(add(&[1], &DoNotCallSource::Operator, 3).await, 0);
    assert_eq!(add(&[], &DoNotCallSource::Import, 3).await, 0);
    let entry = |place, second, source: &DoNotCallSource| DoNotCallEntry {
        digits: number(place),
        added_at: at(second),
        source: source.clone(),
    };
    let first = store.do_not_call_entry(&account, &number(1)).await;
    assert_eq!(first.unwrap(), Some(entry(1, 1, &call)), "as it was first");
    let page = store.do_not_call_page(&account, &number(1), 1).await;
    let import = DoNotCallSource::Import;
    assert_eq!(page.unwrap(), [entry(2, 2, &import)]);
    let (one, two, nine) = (number(1), number(2), number(9));
    let among = async |account, digits: &[&str]| store.on_do_not_call(account, digits).await;
    assert_eq!(
        among(&account, &[&nine, &one, &two]).await.unwrap(),
        HashSet::from([one.clone(), two])
    );
    assert!(among(&account, &[]).await.unwrap().is_empty());
    let other = "f".repeat(32).parse().unwrap();
    assert!(among(&other, &[&one]).await.unwrap().is_empty());
    assert!(store.remove_do_not_call(&account, &one).await.unwrap());
    assert!(!store.remove_do_not_call(&account, &one).await.unwrap());
    assert!(among(&account, &[&one]).await.unwrap().is_empty());
    let gone = store.do_not_call_entry(&account, &one).await.unwrap();
    assert_eq!(gone, None);
}

async fn the_account_says_whether_there_is_a_list(database: Database) {
    let (store, account) = (with_account(&database).await, account());
    let has_one = async || {
        let account = store.account(&account).await.unwrap().unwrap();
        let app = app_id();
        let terms = store.customer_rules(&account.sid, &app).await.unwrap();
        assert_eq!(terms.has_do_not_call, account.has_do_not_call);
        account.has_do_not_call
    };
    assert!(!has_one().await);
    let source = DoNotCallSource::Operator;
    let added = store.add_do_not_call(&account, vec![number(1)], source, at(1));
    added.await.unwrap();
    assert!(has_one().await);
    store
        .remove_do_not_call(&account, &number(1))
        .await
        .unwrap();
    assert!(!has_one().await);
}

async fn a_hundred_thousand_are_added_in_batches_and_read_in_pages(database: Database) {
    let (store, account) = (with_account(&database).await, account());
    let all: Vec<_> = (0..100_000).map(number).collect();
    let began = Instant::now();
    for batch in all.rchunks(5_000) {
        let source = DoNotCallSource::Import;
        let added = store.add_do_not_call(&account, batch.to_vec(), source, at(1));
        assert_eq!(added.await.unwrap(), 5_000);
    }
    println!("100,000 numbers were added in {:.1?}", began.elapsed());
    let (mut read, mut after) = (Vec::new(), String::new());
    loop {
        let page = store.do_not_call_page(&account, &after, 30_000).await;
        let page = page.unwrap();
        let Some(last) = page.last() else { break };
        after.clone_from(&last.digits);
        read.extend(page.into_iter().map(|entry| entry.digits));
    }
    assert_eq!(read, all);
}

async fn the_same_numbers_added_at_once_are_each_new_once(database: Database) {
    let store = with_account(&database).await;
    let writers = (0..4).map(|writer| {
        let store: Arc<dyn Store> = Arc::clone(&store);
        tokio::spawn(async move {
            let mut numbers: Vec<_> = (0..500).map(number).collect();
            if writer % 2 == 0 {
                numbers.reverse();
            }
            let source = DoNotCallSource::Import;
            let account = account();
            let added = store.add_do_not_call(&account, numbers, source, at(writer));
            added.await.unwrap()
        })
    });
    let mut added = 0;
    for writer in writers.collect::<Vec<_>>() {
        added += writer.await.unwrap();
    }
    assert_eq!(added, 500);
}
