//! Lists of numbers belong to an account, keep their order, and are replaced as a whole.

use clarion::domain::call_list::CallList;
use clarion::store::{Database, StoreError};
use jiff::Timestamp;

use super::{open, with_account};
use crate::support::{SID, call_list};

contract! {
    a_list_is_kept_replaced_and_removed,
    lists_are_found_by_their_names,
}

fn list(name: &str, numbers: &[&str], second: i64) -> CallList {
    call_list(name, numbers, Timestamp::from_second(second).unwrap())
}

async fn a_list_is_kept_replaced_and_removed(database: Database) {
    let account = SID.parse().unwrap();
    let first = list("oncall", &["13800000002=王 <&>'", "01052823298-36=Li"], 1);
    let nobody = open(&database).await.add_list(first.clone()).await;
    assert!(matches!(nobody, Err(StoreError::Missing(_))), "no account");
    let store = with_account(&database).await;
    let unknown = store.set_list(first.clone()).await;
    assert!(matches!(unknown, Err(StoreError::Missing(_))));
    store.add_list(first.clone()).await.unwrap();
    let kept = std::slice::from_ref(&first);
    assert_eq!(store.lists(&account).await.unwrap(), kept);
    let again = store.add_list(list("oncall", &["13800000009"], 2)).await;
    assert!(matches!(again, Err(StoreError::Exists(_))));
    assert_eq!(store.lists(&account).await.unwrap(), kept);
    let changed = list("oncall", &["13800000003", "13800000002"], 3);
    store.set_list(changed.clone()).await.unwrap();
    assert_eq!(store.lists(&account).await.unwrap(), [changed]);
    store.remove_list(&account, &first.name).await.unwrap();
    assert!(store.lists(&account).await.unwrap().is_empty());
    let gone = store.remove_list(&account, &first.name).await;
    assert!(matches!(gone, Err(StoreError::Missing(_))));
}

async fn lists_are_found_by_their_names(database: Database) {
    let store = with_account(&database).await;
    let (night, day) = (
        list("night", &["13800000001"], 1),
        list("Day", &["13800000002"], 1),
    );
    for list in [&night, &day] {
        store.add_list(list.clone()).await.unwrap();
    }
    let (account, other) = (SID.parse().unwrap(), "f".repeat(32).parse().unwrap());
    let named = async |account, names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| name.parse().unwrap()).collect();
        let mut found = store.lists_named(account, &names).await.unwrap();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    };
    let both = [day.clone(), night.clone()];
    assert_eq!(named(&account, &["night", "Day", "x"]).await, both);
    assert_eq!(named(&account, &["night"]).await, [night]);
    assert!(named(&account, &["day"]).await.is_empty());
    assert!(named(&account, &[]).await.is_empty());
    assert!(named(&other, &["night"]).await.is_empty());
    let names = store.lists(&account).await.unwrap();
    assert_eq!(names, both, "in the order of their names");
}
