//! Lanes, limits, and calls that wait for their callee.

use std::collections::HashMap;

use clarion::domain::call::{Priority, Queueing};
use clarion::domain::claim::{Claim, Lane};
use clarion::domain::customer_limits::{CallLimits, Customer};
use clarion::domain::route::RouteKey;
use clarion::store::Database;
use jiff::SignedDuration;

use super::{account, back, call, claim, claim_for, ended, node, now, pass, share};
use crate::store_contract::{lane, order, order_queued, queueing, with_account};
use crate::support::{app_id, eventually};

contract! {
    calls_wait_by_route_and_priority,
    a_call_for_later_is_not_due_and_says_how_long,
    calls_to_a_busy_callee_are_looked_at_once_and_follow_each_other_by_urgency,
    calls_that_are_over_do_not_keep_those_behind_them_waiting,
    limits_are_counted_over_all_nodes,
    starts_are_counted_a_second,
    a_call_without_room_keeps_its_place,
    a_claim_takes_all_that_it_has_room_for_in_their_order,
    what_the_limits_leave_goes_to_the_more_urgent,
}

fn on(route: &str, priority: u8) -> (Queueing, Lane) {
    let queueing = Queueing {
        route: RouteKey::from_stored(route.to_owned()),
        priority: Priority::new(priority).unwrap(),
        ..queueing()
    };
    let lane = Lane {
        route: queueing.route.clone(),
        priority: queueing.priority,
        ..lane()
    };
    (queueing, lane)
}

async fn calls_wait_by_route_and_priority(database: Database) {
    let store = with_account(&database).await;
    let lanes = [on("east", 5), on("east west", 5), on("east", 1)];
    for (place, (queueing, _)) in lanes.iter().enumerate() {
        for number in 0..3 {
            let call = call(&format!("8613800{place:03}{number:03}"));
            store
                .accept_call(order_queued(call, queueing.clone()))
                .await
                .unwrap();
        }
    }
    let due = store.queued_lanes().await.unwrap().due;
    let mut wanted: Vec<_> = lanes.iter().map(|(_, lane)| lane.clone()).collect();
    wanted.sort();
    let found: Vec<_> = due.iter().map(|due| due.lane.clone()).collect();
    assert_eq!(found, wanted);
    assert!(due.iter().all(|due| due.account == account()));
    let wish = Claim {
        shares: vec![share(lanes[2].1.clone(), 2), share(lanes[1].1.clone(), 9)],
        ..claim_for(&node(1), 0)
    };
    let claimed = store.claim_calls(wish).await.unwrap();
    let mut numbers: Vec<_> = claimed
        .iter()
        .map(|call| call.call.number.digits())
        .collect();
    numbers.sort_unstable();
    let wanted = ["001000", "001001", "001002", "002000", "002001"];
    assert_eq!(numbers, wanted.map(|end| format!("8613800{end}")));
}

async fn a_call_for_later_is_not_due_and_says_how_long(database: Database) {
    let store = with_account(&database).await;
    let later = Queueing {
        pause: SignedDuration::from_secs(100),
        ..queueing()
    };
    store
        .accept_call(order_queued(call("8613800000001"), later))
        .await
        .unwrap();
    let queued = store.queued_lanes().await.unwrap();
    assert_eq!(queued.due, []);
    let wait = queued.next_due.unwrap();
    assert!(wait > SignedDuration::from_secs(40) && wait <= SignedDuration::from_secs(100));
    assert!(claim(&store, &node(1), 9).await.is_empty());
    pass(&database, SignedDuration::from_secs(100)).await;
    assert_eq!(claim(&store, &node(1), 9).await.len(), 1);
}

async fn calls_to_a_busy_callee_are_looked_at_once_and_follow_each_other_by_urgency(
    database: Database,
) {
    let store = with_account(&database).await;
    let callee = "8613800000001";
    let mut sids = Vec::new();
    for _ in 0..300 {
        let call = call(callee);
        sids.push(call.sid.clone());
        store.accept_call(order(call)).await.unwrap();
    }
    let other = call("8613800000002");
    store.accept_call(order(other.clone())).await.unwrap();
    // The call to somebody else is found behind three hundred that have to wait.
    let first = claim(&store, &node(1), 2).await;
    let found: Vec<_> = first.iter().map(|call| call.call.sid.clone()).collect();
    assert_eq!(found, [sids[0].clone(), other.sid]);
    assert_eq!(
        store.queued_lanes().await.unwrap().due,
        [],
        "the others are parked"
    );
    assert_eq!(store.queue_depth().await.unwrap().0, 299);
    let (urgent, lane) = on("", 1);
    let alarm = call(callee);
    store
        .accept_call(order_queued(alarm.clone(), urgent))
        .await
        .unwrap();
    let wish = Claim {
        shares: vec![share(lane, 9)],
        ..claim_for(&node(2), 0)
    };
    assert!(store.claim_calls(wish.clone()).await.unwrap().is_empty());
    assert!(store.end_call(ended(&first[0], now())).await.unwrap());
    let next = store.claim_calls(wish).await.unwrap();
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].call.sid, alarm.sid, "the most urgent comes first");
    let requeue = back(SignedDuration::from_secs(60), 1);
    let requeued = store.requeue_call(&next[0], requeue).await;
    assert!(requeued.unwrap(), "the next one has its turn");
    for sid in &sids[1..5] {
        let claimed = claim(&store, &node(1), 9).await;
        assert_eq!(claimed.len(), 1);
        assert_eq!(&claimed[0].call.sid, sid);
        assert!(store.end_call(ended(&claimed[0], now())).await.unwrap());
    }
}

async fn calls_that_are_over_do_not_keep_those_behind_them_waiting(database: Database) {
    let store = with_account(&database).await;
    let short = Queueing {
        valid_for: SignedDuration::from_secs(100),
        ..queueing()
    };
    for _ in 0..50 {
        store
            .accept_call(order_queued(call("8613800000001"), short.clone()))
            .await
            .unwrap();
    }
    let good = call("8613800000001");
    store.accept_call(order(good.clone())).await.unwrap();
    let claimed = claim(&store, &node(1), 1).await;
    pass(&database, SignedDuration::from_secs(101)).await;
    assert!(store.end_call(ended(&claimed[0], now())).await.unwrap());
    let claimed = claim(&store, &node(1), 1).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].call.sid, good.sid);
    assert_eq!(store.claim_overdue(&node(1), 100).await.unwrap().len(), 49);
}

fn limited(limits: CallLimits, calls: u32, of: u8) -> Claim {
    let account = Customer::Account(account());
    Claim {
        limits: HashMap::from([
            (account, limits),
            (Customer::App(app_id()), CallLimits::NONE),
        ]),
        ..claim_for(&node(of), calls)
    }
}

async fn limits_are_counted_over_all_nodes(database: Database) {
    let store = with_account(&database).await;
    for number in 0..20 {
        let call = call(&format!("861380000{number:04}"));
        store.accept_call(order(call)).await.unwrap();
    }
    let limits = CallLimits {
        at_once: 7,
        per_second: u32::MAX,
    };
    let first = store.claim_calls(limited(limits, 5, 1)).await.unwrap();
    let second = store.claim_calls(limited(limits, 5, 2)).await.unwrap();
    assert_eq!((first.len(), second.len()), (5, 2));
    assert!(
        store
            .claim_calls(limited(limits, 5, 3))
            .await
            .unwrap()
            .is_empty()
    );
    assert!(store.end_call(ended(&first[0], now())).await.unwrap());
    assert_eq!(
        store
            .claim_calls(limited(limits, 5, 3))
            .await
            .unwrap()
            .len(),
        1
    );
    let of_app = Claim {
        limits: HashMap::from([
            (Customer::Account(account()), CallLimits::NONE),
            (
                Customer::App(app_id()),
                CallLimits {
                    at_once: 9,
                    ..limits
                },
            ),
        ]),
        ..claim_for(&node(1), 5)
    };
    assert_eq!(store.claim_calls(of_app).await.unwrap().len(), 2);
}

async fn starts_are_counted_a_second(database: Database) {
    let store = with_account(&database).await;
    for number in 0..20 {
        let call = call(&format!("861380000{number:04}"));
        store.accept_call(order(call)).await.unwrap();
    }
    // So slowly that no wait of the test brings another one.
    let limits = CallLimits {
        at_once: u32::MAX,
        per_second: 4,
    };
    let first = store.claim_calls(limited(limits, 9, 1)).await.unwrap();
    assert_eq!(first.len(), 4);
    let more = store.claim_calls(limited(limits, 9, 2)).await.unwrap();
    assert!(more.len() < 4, "{}", more.len());
}

async fn a_call_without_room_keeps_its_place(database: Database) {
    let store = with_account(&database).await;
    for _ in 0..2 {
        let call = call("8613800000001");
        store.accept_call(order(call)).await.unwrap();
    }
    let limits = CallLimits {
        at_once: 1,
        per_second: u32::MAX,
    };
    let first = store.claim_calls(limited(limits, 9, 1)).await.unwrap();
    assert_eq!(first.len(), 1);
    for of in [1, 2] {
        let more = store.claim_calls(limited(limits, 9, of)).await.unwrap();
        assert!(more.is_empty(), "{more:?}");
        // It is not parked behind the first: its callee is not what it waits for.
        assert_eq!(store.queued_lanes().await.unwrap().due.len(), 1);
    }
    assert!(store.end_call(ended(&first[0], now())).await.unwrap());
    let second = store.claim_calls(limited(limits, 9, 2)).await.unwrap();
    assert_eq!(second.len(), 1);
}

async fn a_claim_takes_all_that_it_has_room_for_in_their_order(database: Database) {
    let store = with_account(&database).await;
    let mut accepted = Vec::new();
    for number in 0..120 {
        let call = call(&format!("861380000{number:04}"));
        accepted.push(call.sid.clone());
        store.accept_call(order(call)).await.unwrap();
    }
    // Wider than the first look, and no multiple of it.
    let first = claim(&store, &node(1), 100).await;
    let rest = claim(&store, &node(1), 100).await;
    assert_eq!((first.len(), rest.len()), (100, 20));
    let claimed: Vec<_> = first
        .into_iter()
        .chain(rest)
        .map(|claimed| claimed.call.sid)
        .collect();
    assert_eq!(claimed, accepted);
}

async fn what_the_limits_leave_goes_to_the_more_urgent(database: Database) {
    let store = with_account(&database).await;
    let lanes = [on("east", 1), on("west", 5)];
    for (place, (queueing, _)) in lanes.iter().enumerate() {
        for number in 0..60 {
            let call = call(&format!("86138000{place:02}{number:03}"));
            store
                .accept_call(order_queued(call, queueing.clone()))
                .await
                .unwrap();
        }
    }
    let limits = CallLimits {
        at_once: 40,
        per_second: u32::MAX,
    };
    let wish = Claim {
        shares: lanes
            .iter()
            .map(|(_, lane)| share(lane.clone(), 60))
            .collect(),
        ..limited(limits, 0, 1)
    };
    let claimed = store.claim_calls(wish).await.unwrap();
    let urgent = claimed
        .iter()
        .filter(|it| it.call.number.digits().starts_with("8613800000"));
    assert_eq!((urgent.count(), claimed.len()), (40, 40));
}

/// What a claim in vain has looked at is there for the next one, of whatever node.
#[tokio::test]
async fn a_claim_without_room_holds_nothing_back() {
    let database = crate::support::postgres::empty().await;
    let store = with_account(&database).await;
    let supervisor = supervisor::Supervisor::new();
    let other = database.open(&supervisor).await.unwrap();
    let no_room = CallLimits {
        at_once: 0,
        per_second: u32::MAX,
    };
    for number in 0..200 {
        let call = call(&format!("861380000{number:04}"));
        store.accept_call(order(call)).await.unwrap();
        let none = store.claim_calls(limited(no_room, 5, 1)).await.unwrap();
        assert!(none.is_empty(), "{none:?}");
        assert_eq!(claim(&other, &node(2), 5).await.len(), 1, "{number}");
    }
}

/// A call that goes back while a claim parks another one behind it is told of that one. With a pause of an hour nobody else would be.
#[tokio::test]
async fn a_call_that_goes_back_waits_for_a_claim_that_parks_behind_it() {
    let database = crate::support::postgres::empty().await;
    let store = with_account(&database).await;
    let callee = "8613800000001";
    store.accept_call(order(call(callee))).await.unwrap();
    let talking = claim(&store, &node(1), 5).await.remove(0);
    let next = call(callee);
    store.accept_call(order(next.clone())).await.unwrap();

    let Database::Postgres(config) = &database else {
        panic!("it is a PostgreSQL");
    };
    // As a claim that has found the callee busy, and is not committed yet.
    let mut claiming = clarion::store::postgres::connect(config).await.unwrap();
    let claiming = claiming.transaction().await.unwrap();
    let busy = "SELECT 1 FROM call_queue WHERE call_sid = $1 FOR KEY SHARE";
    claiming
        .query_one(busy, &[&talking.call.sid.as_str()])
        .await
        .unwrap();
    let park = "UPDATE call_queue SET parked = 1 WHERE call_sid = $1 RETURNING 1";
    claiming
        .query_one(park, &[&next.sid.as_str()])
        .await
        .unwrap();

    let requeue = back(SignedDuration::from_hours(1), 1);
    let (went_back, ()) = tokio::join!(store.requeue_call(&talking, requeue), async {
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually("it waits for the claim", async || {
            claiming
                .query_one("SELECT pg_stat_clear_snapshot()::text", &[])
                .await
                .unwrap();
            let row = claiming.query_one(waits, &[]).await.unwrap();
            row.get::<_, i64>(0) == 1
        })
        .await;
        claiming.commit().await.unwrap();
    });
    assert!(went_back.unwrap());
    let claimed = claim(&store, &node(2), 5).await;
    assert_eq!(claimed.len(), 1, "its turn has come");
    assert_eq!(claimed[0].call.sid, next.sid);
}

/// An end that is being committed holds its row. Whoever waited for it, with other rows held, could meet an end that waits for those.
#[tokio::test]
async fn a_claim_does_not_wait_for_an_end_that_is_being_committed() {
    let database = crate::support::postgres::empty().await;
    let store = with_account(&database).await;
    let (busy, free) = ("8613800000001", "8613800000002");
    store.accept_call(order(call(busy))).await.unwrap();
    let talking = claim(&store, &node(1), 5).await.remove(0);
    let next = call(busy);
    store.accept_call(order(next.clone())).await.unwrap();
    store.accept_call(order(call(free))).await.unwrap();

    let Database::Postgres(config) = &database else {
        panic!("it is a PostgreSQL");
    };
    let mut ending = clarion::store::postgres::connect(config).await.unwrap();
    let transaction = ending.transaction().await.unwrap();
    let held = "SELECT 1 FROM call_queue WHERE call_sid = $1 FOR UPDATE";
    let sid = talking.call.sid.as_str();
    transaction.query_one(held, &[&sid]).await.unwrap();
    let claimed = claim(&store, &node(1), 5).await;
    let callees: Vec<_> = claimed
        .iter()
        .map(|claimed| claimed.call.callee.as_str())
        .collect();
    assert_eq!(callees, [free], "what waits for the end is left alone");
    transaction.roll_back().await.unwrap();

    // Not ended after all: now it waits behind the talk, and comes when that is over.
    assert!(claim(&store, &node(1), 5).await.is_empty());
    assert!(store.end_call(ended(&talking, now())).await.unwrap());
    let then = claim(&store, &node(1), 5).await;
    assert_eq!(then.len(), 1);
    assert_eq!(then[0].call.sid, next.sid);
}
