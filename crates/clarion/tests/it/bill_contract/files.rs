//! Bill files, the tokens for them, and how they are forgotten.

use clarion::domain::bill::{BillFile, Totals};
use clarion::store::Database;
use clarion::store::bills::BillToken;
use jiff::SignedDuration;

use super::now;
use crate::store_contract::with_account;
use crate::support::bills::{add_records, bill_of, day};

contract! {
    a_token_opens_its_file_until_it_expires,
    what_has_had_its_time_is_forgotten,
}

fn file(id: &str, on: &str, keywords: &str) -> BillFile {
    BillFile {
        id: id.repeat(32),
        of: bill_of(on),
        keywords: keywords.to_owned(),
        object: format!("{on}/{id}.csv"),
        bytes: 1,
        totals: Totals::default(),
        sha256: "0".repeat(64),
        made_at: now(),
        expires_at: (!keywords.is_empty()).then(|| now() + SignedDuration::from_hours(1)),
    }
}

fn token(hash: &str, file: &BillFile, hours: i64) -> BillToken {
    BillToken {
        hash: hash.to_owned(),
        file_id: file.id.clone(),
        account: file.of.account.clone(),
        expires_at: now() + SignedDuration::from_hours(hours),
    }
}

async fn a_token_opens_its_file_until_it_expires(database: Database) {
    let store = with_account(&database).await;
    let whole = store
        .record_bill_file(file("a", "2026-11-14", ""))
        .await
        .unwrap();
    let second = store
        .record_bill_file(file("b", "2026-11-14", ""))
        .await
        .unwrap();
    assert_eq!(second, whole, "the first one stays");
    assert_eq!(
        store.bill_file(&whole.of, "").await.unwrap(),
        Some(whole.clone())
    );
    assert!(store.add_bill_token(token("h", &whole, 24)).await.unwrap());
    assert!(
        !store
            .add_bill_token(token("x", &file("c", "2026-11-14", ""), 24))
            .await
            .unwrap()
    );
    let opens = async |hash: &str, hours| {
        let later = now() + SignedDuration::from_hours(hours);
        store
            .file_of_token(hash, later)
            .await
            .unwrap()
            .map(|file| file.id)
    };
    assert_eq!(opens("h", 23).await, Some(whole.id.clone()));
    assert_eq!(opens("h", 24).await, None);
    assert_eq!(opens("x", 0).await, None);
    let mut stranger = token("s", &whole, 24);
    stranger.account = "f".repeat(32).parse().unwrap();
    store.add_bill_token(stranger).await.unwrap();
    assert_eq!(opens("s", 0).await, None, "of another account");
}

async fn what_has_had_its_time_is_forgotten(database: Database) {
    let store = with_account(&database).await;
    add_records(&*store, now(), 25).await;
    let old = store
        .record_bill_file(file("a", "2026-11-15", ""))
        .await
        .unwrap();
    let filtered = store
        .record_bill_file(file("b", "2026-11-16", "x"))
        .await
        .unwrap();
    store.add_bill_token(token("h", &old, 24)).await.unwrap();
    store
        .add_bill_token(token("f", &filtered, 24))
        .await
        .unwrap();
    let forget = async |before: &str, hours| {
        let later = now() + SignedDuration::from_hours(hours);
        let step = store.forget_bills(day(before), later, 10).await.unwrap();
        (
            step.lines,
            step.files
                .into_iter()
                .map(|file| file.id)
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(
        forget("2026-11-15", 23).await,
        (0, vec![]),
        "the token keeps its file"
    );
    assert_eq!(forget("2026-11-15", 24).await, (0, vec![filtered.id]));
    assert_eq!(forget("2026-11-16", 24).await, (10, vec![old.id]));
    assert_eq!(forget("2026-11-16", 24).await, (10, vec![]));
    assert_eq!(forget("2026-11-16", 24).await, (5, vec![]));
    assert_eq!(forget("2026-11-16", 24).await, (0, vec![]));
}
