//! What every store promises about events: in the queue of the final callbacks, in order, one of a call at a time, for a minute.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use clarion::domain::callback::{
    CallbackAttempt, CallbackKey, CallbackState, ClaimedCallback, DeliveryResult, EndedAttempt,
    NextDelivery,
};
use clarion::store::{CallbackFilter, Database, Store};
use jiff::SignedDuration;

use super::{open, with_account};
use crate::support::PATIENCE;
use crate::support::owed::{self, Claiming, call, event_to, key, now, owe, owed_to, pass};

contract! {
    events_of_a_call_are_claimed_in_order_one_at_a_time,
    a_later_event_does_not_wait_for_one_that_failed_and_supersedes_it,
    final_callbacks_and_events_do_not_wait_for_each_other,
    an_event_may_be_tried_for_a_minute,
    events_that_had_no_place_for_long_are_given_up_and_final_callbacks_never,
    two_events_of_a_call_are_never_under_way_at_once,
    events_are_listed_and_sent_again,
}

const URL: &str = "http://a/";
const AGAIN: NextDelivery = NextDelivery::RetryAfter(SignedDuration::from_secs(5));

fn event(number: u32, seq: i32) -> CallbackKey {
    event_to(URL, number, seq).key
}

async fn owing(database: &Database, events: &[(u32, i32)]) -> Arc<dyn Store> {
    let store = with_account(database).await;
    owe_events(database, events).await;
    store
}

async fn owe_events(database: &Database, events: &[(u32, i32)]) {
    let events = events.iter().map(|(call, seq)| event_to(URL, *call, *seq));
    owe(database, events.collect()).await;
    // Due for every clock: whoever writes has one of its own, and may be a millisecond ahead of whoever claims.
    pass(database, SignedDuration::from_secs(1)).await;
}

async fn claim(store: &dyn Store) -> Vec<ClaimedCallback> {
    owed::claim(store, &Claiming::default()).await.0
}

/// What may be delivered now.
async fn claimed(store: &dyn Store) -> (Vec<ClaimedCallback>, Vec<CallbackKey>) {
    let found = claim(store).await;
    let mut keys: Vec<_> = found.iter().map(|one| one.lease.key.clone()).collect();
    keys.sort();
    (found, keys)
}

async fn record(store: &dyn Store, callback: &ClaimedCallback, next: NextDelivery) {
    let verdict = match next {
        NextDelivery::Delivered => DeliveryResult::Delivered,
        _ => DeliveryResult::BadStatus,
    };
    let ended = EndedAttempt {
        lease: callback.lease.clone(),
        attempt: CallbackAttempt {
            started_at: now(),
            milliseconds: 1,
            verdict,
            status: None,
            error: None,
            answer: None,
        },
        ended_at: now(),
        next,
    };
    let recorded = store.record_attempts(vec![ended]).await.unwrap();
    assert_eq!(recorded, std::slice::from_ref(&callback.lease.key));
}

async fn state(store: &dyn Store, key: &CallbackKey) -> CallbackState {
    store.callback(key).await.unwrap().unwrap().0.state
}

async fn events_of_a_call_are_claimed_in_order_one_at_a_time(database: Database) {
    // Owed in any order: what counts is their number.
    let store = owing(&database, &[(1, 2), (1, 1), (1, 3), (2, 1)]).await;
    let (found, keys) = claimed(&*store).await;
    assert_eq!(keys, [event(1, 1), event(2, 1)]);
    assert!(found[0].webhook_id != found[1].webhook_id);
    assert_eq!(claimed(&*store).await.1, [], "one of a call is under way");
    for next in 2..=3 {
        let under_way = store
            .callback(&event(1, next - 1))
            .await
            .unwrap()
            .unwrap()
            .0;
        assert_eq!(under_way.state, CallbackState::Delivering);
        let mut first = found[0].clone();
        first.lease.key = event(1, next - 1);
        record(&*store, &first, NextDelivery::Delivered).await;
        assert_eq!(claimed(&*store).await.1, [event(1, next)]);
    }
}

async fn a_later_event_does_not_wait_for_one_that_failed_and_supersedes_it(database: Database) {
    let store = owing(&database, &[(1, 1), (1, 2), (1, 3)]).await;
    let (found, _) = claimed(&*store).await;
    record(&*store, &found[0], AGAIN).await;
    let (found, keys) = claimed(&*store).await;
    assert_eq!(keys, [event(1, 2)], "the first one is not due yet");
    record(&*store, &found[0], NextDelivery::Delivered).await;
    assert_eq!(
        state(&*store, &event(1, 1)).await,
        CallbackState::Superseded
    );
    assert_eq!(state(&*store, &event(1, 2)).await, CallbackState::Delivered);
    pass(&database, SignedDuration::from_secs(10)).await;
    assert_eq!(claimed(&*store).await.1, [event(1, 3)]);
    // The earlier one has its turn if it is due before the later one was tried.
    let other = (2, 1);
    owe_events(&database, &[other]).await;
    let (found, _) = claimed(&*store).await;
    record(&*store, &found[0], AGAIN).await;
    pass(&database, SignedDuration::from_secs(10)).await;
    owe_events(&database, &[(2, 2)]).await;
    assert_eq!(claimed(&*store).await.1, [event(2, 1)]);
}

async fn final_callbacks_and_events_do_not_wait_for_each_other(database: Database) {
    let store = owing(&database, &[(1, 1), (1, 2), (1, 3)]).await;
    owe(&database, vec![owed_to(URL, 1, now())]).await;
    // One place for each kind at this receiver.
    let narrow = Claiming {
        per_receiver: 1,
        ..Claiming::default()
    };
    let (found, _) = owed::claim(&*store, &narrow).await;
    let mut keys: Vec<_> = found.iter().map(|one| &one.lease.key).collect();
    keys.sort();
    assert_eq!(keys, [&key(1), &event(1, 1)]);
    for callback in &found {
        record(&*store, callback, AGAIN).await;
    }
    let (found, keys) = claimed(&*store).await;
    assert_eq!(keys, [event(1, 2)]);
    record(&*store, &found[0], NextDelivery::Delivered).await;
    assert_eq!(
        state(&*store, &key(1)).await,
        CallbackState::Waiting,
        "no event supersedes it"
    );
    pass(&database, SignedDuration::from_secs(10)).await;
    let (found, keys) = claimed(&*store).await;
    assert_eq!(keys, [key(1), event(1, 3)]);
    let last = found.iter().find(|one| !one.lease.key.is_event()).unwrap();
    record(&*store, last, NextDelivery::Delivered).await;
    assert_eq!(
        state(&*store, &event(1, 3)).await,
        CallbackState::Delivering,
        "nor does it supersede an event"
    );
}

async fn an_event_may_be_tried_for_a_minute(database: Database) {
    let store = owing(&database, &[(1, 1)]).await;
    owe(&database, vec![owed_to(URL, 1, now())]).await;
    pass(&database, SignedDuration::from_secs(20)).await;
    for callback in claim(&*store).await {
        match callback.time_left {
            None => assert!(!callback.lease.key.is_event()),
            Some(left) => {
                assert!(callback.lease.key.is_event());
                assert!((1..=40).contains(&left.as_secs()), "{left}");
            }
        }
    }
}

async fn events_that_had_no_place_for_long_are_given_up_and_final_callbacks_never(
    database: Database,
) {
    let store = owing(&database, &[(1, 1), (1, 2), (2, 1)]).await;
    owe(&database, vec![owed_to(URL, 3, now())]).await;
    let patience = SignedDuration::from_mins(5);
    let give_up = async |limit| {
        let given_up = store.give_up_late_events(patience, now(), limit).await;
        given_up.unwrap()
    };
    assert_eq!(give_up(10).await, 0);
    pass(&database, patience).await;
    owe_events(&database, &[(4, 1)]).await;
    // What an operator sends again waits anew.
    assert_eq!(give_up(1).await, 1, "the oldest first, so many at a time");
    let first = event(1, 1);
    assert_eq!(state(&*store, &first).await, CallbackState::GivenUp);
    store.replay_callback(&first).await.unwrap();
    assert_eq!(give_up(10).await, 2);
    let mut left = claimed(&*store).await.1;
    left.sort();
    let mut expected = vec![first, key(3), event(4, 1)];
    expected.sort();
    assert_eq!(left, expected);
}

/// Nodes that claim, deliver and fail beside each other, on PostgreSQL by connections of their own.
async fn two_events_of_a_call_are_never_under_way_at_once(database: Database) {
    let events: Vec<_> = (1..=10)
        .flat_map(|call| (1..=5).map(move |seq| (call, seq)))
        .collect();
    let store = owing(&database, &events).await;
    let other = open(&database).await;
    let under_way: Arc<Mutex<HashMap<_, i32>>> = Arc::default();
    let delivered: Arc<Mutex<Vec<CallbackKey>>> = Arc::default();
    let mut nodes = tokio::task::JoinSet::new();
    for number in 0..6 {
        let store = Arc::clone(if number % 2 == 0 { &store } else { &other });
        let (under_way, delivered) = (Arc::clone(&under_way), Arc::clone(&delivered));
        nodes.spawn(async move {
            while store.callback_backlog().await.unwrap().waiting > 0 {
                for callback in claim(&*store).await {
                    let key = callback.lease.key.clone();
                    let before = under_way.lock().unwrap().insert(key.call.clone(), key.seq);
                    assert_eq!(before, None, "beside {key}");
                    tokio::task::yield_now().await;
                    // Odd ones fail at first, and are due again at once.
                    let fails = key.seq % 2 == 1 && callback.failures == 0;
                    under_way.lock().unwrap().remove(&key.call);
                    let next = if fails {
                        NextDelivery::RetryAfter(SignedDuration::ZERO)
                    } else {
                        delivered.lock().unwrap().push(key);
                        NextDelivery::Delivered
                    };
                    record(&*store, &callback, next).await;
                }
            }
        });
    }
    let all = tokio::time::timeout(PATIENCE, nodes.join_all()).await;
    all.expect("every event comes to its end");
    let delivered = delivered.lock().unwrap();
    for number in 1..=10 {
        let of_call = delivered.iter().filter(|key| key.call == call(number));
        let seqs: Vec<_> = of_call.map(|key| key.seq).collect();
        assert!(seqs.is_sorted() && seqs.last() == Some(&5), "{seqs:?}");
    }
}

async fn events_are_listed_and_sent_again(database: Database) {
    let store = owing(&database, &[(1, 1), (1, 2), (2, 1)]).await;
    owe(&database, vec![owed_to(URL, 1, now())]).await;
    let listed = async |filter: CallbackFilter| {
        let found = store.callbacks(filter).await.unwrap();
        found
            .callbacks
            .into_iter()
            .map(|one| one.key)
            .collect::<Vec<_>>()
    };
    let all = CallbackFilter {
        host: Some("a:80".to_owned()),
        limit: 100,
        ..CallbackFilter::default()
    };
    let newest_first = [event(2, 1), event(1, 2), event(1, 1), key(1)];
    assert_eq!(listed(all.clone()).await, newest_first);
    let page = CallbackFilter {
        before: Some(event(1, 2)),
        ..all
    };
    assert_eq!(listed(page).await, newest_first[2..]);

    let (found, _) = claimed(&*store).await;
    let first = found.iter().find(|one| one.lease.key == event(1, 1));
    record(&*store, first.unwrap(), NextDelivery::GivenUp).await;
    let (callback, attempts) = store.callback(&event(1, 1)).await.unwrap().unwrap();
    assert_eq!(
        (callback.state, attempts.len()),
        (CallbackState::GivenUp, 1)
    );
    let (_, attempts) = store.callback(&key(1)).await.unwrap().unwrap();
    assert_eq!(attempts, [], "those of an event are its own");
    store.replay_callback(&event(1, 1)).await.unwrap();
    assert_eq!(claimed(&*store).await.1, [event(1, 1)]);
}
