//! Requests that have a name: the same name again is the same call.

use clarion::domain::call::NewCall;
use clarion::domain::request_key::{Accepted, AcceptedCall, KnownRequest, RequestId, RequestKey};
use clarion::store::Database;
use jiff::SignedDuration;
use tokio::task::JoinSet;

use super::{call, claim, ended, forget_calls, node, now};
use crate::store_contract::{order, with_account};
use crate::support::app_id;

contract! {
    a_request_of_the_same_name_is_the_same_call,
    of_many_at_once_one_becomes_a_call,
    a_repeated_commit_is_no_repetition_by_the_application,
    names_are_forgotten_a_while_after_the_end,
    a_name_is_remembered_for_longer_than_its_call,
    names_that_wait_do_not_hide_those_that_are_old,
}

fn id(name: &str) -> RequestId {
    RequestId::read(Some(name), None).unwrap().unwrap()
}

fn named(name: &str, digest: &str, call: NewCall) -> AcceptedCall {
    AcceptedCall {
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
    let forget = async |before| store.forget_requests(before, None, 10).await.unwrap();
    forget(now()).await;
    assert!(is_known("ended").await, "too early");
    let later = now() + SignedDuration::from_hours(1);
    forget(later).await;
    assert!(!is_known("ended").await && is_known("queued").await);
}

async fn a_name_is_remembered_for_longer_than_its_call(database: Database) {
    let store = with_account(&database).await;
    let silent = NewCall {
        resp_url: None,
        ..call("8613800000001")
    };
    store.accept_call(named("a", "x", silent)).await.unwrap();
    let claimed = claim(&store, &node(1), 1).await.remove(0);
    assert!(store.end_call(ended(&claimed, now())).await.unwrap());
    let is_known = async || {
        let found = store.find_request(&app_id(), &id("a")).await;
        found.unwrap().is_some()
    };
    let (before, later) = (
        now() - SignedDuration::from_hours(1),
        now() + SignedDuration::from_hours(1),
    );
    assert_eq!(forget_calls(&*store, later).await, 1);
    store.forget_requests(before, None, 10).await.unwrap();
    assert!(is_known().await, "its call ended a moment ago");
    store.forget_requests(later, None, 10).await.unwrap();
    assert!(!is_known().await);
}

async fn names_that_wait_do_not_hide_those_that_are_old(database: Database) {
    let store = with_account(&database).await;
    for number in 0..8 {
        let call = call(&format!("861380000000{number}"));
        let order = named(&number.to_string(), "x", call);
        store.accept_call(order).await.unwrap();
    }
    let claimed = claim(&store, &node(1), 10).await;
    let last = claimed.iter().max_by_key(|one| one.call.sid.clone());
    assert!(store.end_call(ended(last.unwrap(), now())).await.unwrap());
    let later = now() + SignedDuration::from_hours(1);
    let (mut after, mut forgotten) = (None, 0);
    loop {
        let step = store.forget_requests(later, after, 3).await.unwrap();
        forgotten += step.forgotten;
        after = step.stopped_at;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(forgotten, 1);
}
