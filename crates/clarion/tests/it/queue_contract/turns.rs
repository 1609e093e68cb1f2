//! Whose turn it is: between accounts that wait for one callee, and between the numbers of a notice that cannot be reached.

use clarion::domain::call::{NewCall, Priority, Queueing};
use clarion::domain::claim::{Claim, ClaimedCall, DeadRoute, Lane, LaneShare, Overdue, Requeue};
use clarion::domain::route::RouteKey;
use clarion::store::{Database, Store};
use jiff::SignedDuration;

use super::{account, back, call, claim_for, ended, node, now, pass};
use crate::calls::stage::register;
use crate::store_contract::{order_queued, queueing, with_account};
use crate::support::APP;

contract! {
    urgent_calls_of_one_account_keep_no_other_waiting,
    where_no_trunk_can_be_used_a_number_loses_its_turn_by_its_patience,
    a_number_that_trunks_refuse_again_and_again_loses_its_turn_by_its_patience,
}

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// A call of an account, as urgent as it says, that has been due for so many seconds.
async fn waits(store: &dyn Store, of: &str, priority: u8, seconds: i64) -> NewCall {
    let mut call = call("8613800000001");
    if of != APP {
        (call.account, call.app) = (of.parse().unwrap(), of.parse().unwrap());
    }
    let queueing = Queueing {
        priority: Priority::new(priority).unwrap(),
        pause: SignedDuration::from_secs(-seconds),
        ..queueing()
    };
    let order = order_queued(call.clone(), queueing);
    store.accept_call(order).await.unwrap();
    call
}

/// Whatever is due, of both accounts.
async fn claim_all(store: &dyn Store) -> Vec<ClaimedCall> {
    let due = store.queued_lanes().await.unwrap().due;
    let shares = due.into_iter().map(|due| LaneShare {
        account: due.account,
        lane: due.lane,
        calls: 9,
    });
    let claim = Claim {
        shares: shares.collect(),
        ..claim_for(&node(1), 0)
    };
    store.claim_calls(claim).await.unwrap()
}

async fn urgent_calls_of_one_account_keep_no_other_waiting(database: Database) {
    let store = with_account(&database).await;
    let other = register(&*store, 7, |_| {}).await;
    store.heartbeat(&node(1), now(), MINUTE).await.unwrap();
    waits(&*store, APP, 5, 100).await;
    let mut talking = claim_all(&*store).await.remove(0);
    // Those of the other are not urgent, but for its last one; each has waited for longer than what is urgent to the first.
    let mut expected = Vec::new();
    for (priority, seconds) in [(5, 90), (5, 80), (2, 70)] {
        expected.push(waits(&*store, &other, priority, seconds).await.sid);
    }
    expected.rotate_right(1);
    let mut urgent = Vec::new();
    for place in 0..40 {
        let seconds = if place == 0 { 85 } else { 10 };
        urgent.push(waits(&*store, APP, 1, seconds).await.sid);
    }
    // By the most urgent one of each account, and of those by how long they have been due.
    expected.insert(0, urgent[0].clone());
    expected.extend(urgent[1..3].iter().cloned());
    assert!(claim_all(&*store).await.is_empty(), "the callee is busy");
    for sid in expected {
        assert!(store.end_call(ended(&talking, now())).await.unwrap());
        // The stream goes on.
        waits(&*store, APP, 1, 0).await;
        let claimed = claim_all(&*store).await;
        assert_eq!(claimed.len(), 1);
        talking = claimed.into_iter().next().unwrap();
        assert_eq!(talking.call.sid, sid);
    }
}

fn on_route(name: &str) -> RouteKey {
    RouteKey::from_stored(name.to_owned())
}

async fn patient(store: &dyn Store, number: &str, route: &str, patience: bool) -> NewCall {
    let queueing = Queueing {
        route: on_route(route),
        patience: patience.then_some(MINUTE),
        valid_for: SignedDuration::from_hours(9),
        ..queueing()
    };
    let call = call(number);
    let order = order_queued(call.clone(), queueing);
    store.accept_call(order).await.unwrap();
    call
}

async fn stranded(store: &dyn Store, dead: &[(&str, i64)]) -> Vec<ClaimedCall> {
    let dead = dead.iter().map(|(route, seconds)| DeadRoute {
        route: on_route(route),
        time: SignedDuration::from_secs(*seconds),
    });
    let dead: Vec<_> = dead.collect();
    store.claim_stranded(&node(1), &dead, 10).await.unwrap()
}

async fn held_back(store: &dyn Store) -> Vec<ClaimedCall> {
    let overdue = store.claim_overdue(&node(1), 10).await.unwrap();
    assert!(overdue.iter().all(|(_, why)| *why == Overdue::HeldBack));
    overdue.into_iter().map(|(call, _)| call).collect()
}

fn held(pause: SignedDuration) -> Requeue {
    Requeue {
        is_held_back: true,
        ..back(pause, 0)
    }
}

async fn where_no_trunk_can_be_used_a_number_loses_its_turn_by_its_patience(database: Database) {
    let store = with_account(&database).await;
    let store = &*store;
    store.heartbeat(&node(1), now(), MINUTE).await.unwrap();
    let first = patient(store, "8613800000001", "east", true).await;
    patient(store, "8613800000002", "east", false).await;
    let other = patient(store, "8613800000003", "west", true).await;
    assert!(stranded(store, &[("east", 3600)]).await.is_empty());
    pass(&database, SignedDuration::from_secs(61)).await;
    assert!(held_back(store).await.is_empty());
    // It may have waited for other reasons before.
    assert!(stranded(store, &[("east", 59)]).await.is_empty());
    let found = stranded(store, &[("east", 61), ("north", 61)]).await;
    let sids: Vec<_> = found.iter().map(|one| &one.call.sid).collect();
    assert_eq!(sids, [&first.sid], "the others wait");
    assert!(!found[0].is_counted);
    assert!(
        store
            .requeue_call(&found[0], held(SignedDuration::ZERO))
            .await
            .unwrap()
    );
    // Where nobody else has a turn it waits for as long again.
    assert!(stranded(store, &[("east", 3600)]).await.is_empty());
    assert!(held_back(store).await.is_empty());
    pass(&database, SignedDuration::from_secs(61)).await;
    let found = held_back(store).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].call.sid, first.sid);
    let found = stranded(store, &[("west", 3600), ("east", 3600)]).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].call.sid, other.sid);
}

async fn a_number_that_trunks_refuse_again_and_again_loses_its_turn_by_its_patience(
    database: Database,
) {
    let store = with_account(&database).await;
    let store = &*store;
    store.heartbeat(&node(1), now(), MINUTE).await.unwrap();
    let waiting = patient(store, "8613800000001", "east", true).await;
    let lane = Lane {
        app: APP.parse().unwrap(),
        route: on_route("east"),
        priority: Priority::USUAL,
    };
    let tried = async || {
        let share = LaneShare {
            account: account(),
            lane: lane.clone(),
            calls: 1,
        };
        let claim = Claim {
            shares: vec![share],
            ..claim_for(&node(1), 0)
        };
        store.claim_calls(claim).await.unwrap().remove(0)
    };
    let half = SignedDuration::from_secs(25);
    // Each time for less than its patience, and in all for longer.
    for _ in 0..2 {
        assert!(
            store
                .requeue_call(&tried().await, held(half))
                .await
                .unwrap()
        );
        pass(&database, half).await;
        assert!(held_back(store).await.is_empty());
    }
    assert!(
        store
            .requeue_call(&tried().await, held(half))
            .await
            .unwrap()
    );
    pass(&database, SignedDuration::from_secs(11)).await;
    let found = held_back(store).await;
    assert_eq!(found.len(), 1, "before it is due again");
    assert_eq!(found[0].call.sid, waiting.sid);
    // What is put back for another reason is not held back any more.
    assert!(
        store
            .requeue_call(&found[0], held(SignedDuration::ZERO))
            .await
            .unwrap()
    );
    pass(&database, half).await;
    let plain = back(SignedDuration::ZERO, 0);
    assert!(store.requeue_call(&tried().await, plain).await.unwrap());
    pass(&database, MINUTE + MINUTE).await;
    assert!(held_back(store).await.is_empty());
    assert!(
        store
            .requeue_call(&tried().await, held(SignedDuration::ZERO))
            .await
            .unwrap()
    );
    assert!(held_back(store).await.is_empty(), "its patience begins now");
}
