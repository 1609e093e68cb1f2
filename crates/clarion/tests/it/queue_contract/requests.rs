//! Requests that have a name: the same name again is the same call.

use clarion::domain::call::NewCall;
use clarion::domain::request_key::{Accepted, CallOrder, KnownRequest, RequestId, RequestKey};
use clarion::store::Database;
use jiff::SignedDuration;
use tokio::task::JoinSet;

use super::{call, claim, ended, node, now};
use crate::store_contract::{order, with_account};
use crate::support::app_id;

contract! {
    a_request_of_the_same_name_is_the_same_call,
    of_many_at_once_one_becomes_a_call,
    a_repeated_commit_is_no_repetition_by_the_application,
    names_are_forgotten_a_while_after_the_end,
}

fn id(name: &str) -> RequestId {
    RequestId::read(Some(name), None).unwrap().unwrap()
}

fn named(name: &str, digest: &str, call: NewCall) -> CallOrder {
    CallOrder {
        event: None,
        request: Some(RequestKey {
            id: id(name),
            digest: digest.to_owned(),
        }),
        ..order(call)
    }
}

async fn a_request_of_the_same_name_is_the_same_call(database: Database) {
    let store = with_account(&database).await;
    let first = call("8613800000001");
    let accepted = store.accept_call(named("a", "x", first.clone())).await;
    assert_eq!(accepted.unwrap(), Accepted::New);
    let known = KnownRequest {
        call: first.sid.clone(),
        accepted_at: first.accepted_at,
        digest: "x".to_owned(),
    };
    let again = named("a", "y", call("8613800000002"));
    let accepted = store.accept_call(again).await.unwrap();
    assert_eq!(accepted, Accepted::Before(known.clone()));
    let paid = named("a", "x", call("8613800000003"));
    let accepted = store.accept_call_within_limits(paid, 60).await.unwrap();
    assert_eq!(accepted, Ok(Accepted::Before(known.clone())));
    assert_eq!(store.queue_depth().await.unwrap().0, 1);
    let found = store.find_request(&app_id(), &id("a")).await.unwrap();
    assert_eq!(found, Some(known));
    assert_eq!(store.find_request(&app_id(), &id("b")).await.unwrap(), None);
}

async fn of_many_at_once_one_becomes_a_call(database: Database) {
    let store = with_account(&database).await;
    let mut accepting = JoinSet::new();
    for number in 0..40 {
        let (store, order) = (
            store.clone(),
            named("a", "x", call(&format!("86138{number:08}"))),
        );
        accepting.spawn(async move { store.accept_call(order).await.unwrap() });
    }
    let accepted = accepting.join_all().await;
    let new = accepted
        .iter()
        .filter(|accepted| **accepted == Accepted::New);
    assert_eq!(new.count(), 1);
    assert_eq!(store.queue_depth().await.unwrap().0, 1);
}

async fn a_repeated_commit_is_no_repetition_by_the_application(database: Database) {
    let store = with_account(&database).await;
    let order = named("a", "x", call("8613800000001"));
    for _ in 0..2 {
        let accepted = store.accept_call(order.clone()).await.unwrap();
        assert_eq!(accepted, Accepted::New);
    }
    assert_eq!(store.queue_depth().await.unwrap().0, 1);
}

async fn names_are_forgotten_a_while_after_the_end(database: Database) {
    let store = with_account(&database).await;
    for (name, number) in [("ended", "8613800000001"), ("queued", "8613800000002")] {
        let order = named(name, "x", call(number));
        store.accept_call(order).await.unwrap();
    }
    let claimed = claim(&store, &node(1), 1).await.remove(0);
    assert!(store.end_call(ended(&claimed, now())).await.unwrap());
    let is_known = async |name: &str| {
        let found = store.find_request(&app_id(), &id(name)).await;
        found.unwrap().is_some()
    };
    store.forget_requests(now(), 10).await.unwrap();
    assert!(is_known("ended").await, "too early");
    let later = now() + SignedDuration::from_hours(1);
    store.forget_requests(later, 10).await.unwrap();
    assert!(!is_known("ended").await && is_known("queued").await);
}
