//! Which calls are taken, in which order, and how often a callee is called.

use clarion::domain::account::{AccountChange, AccountState};
use clarion::domain::call::{NewCall, Queueing};
use clarion::domain::call_state::CallState;
use clarion::domain::claim::{CalleeCaps, Claim, DueLane, Lane, LaneShare, Overdue};
use clarion::store::Database;
use jiff::SignedDuration;

use super::{account, back, call, claim, claim_for, ended, node, now, pass, share};
use crate::calls::stage::register;
use crate::store_contract::{lane, order, order_queued, queueing, with_account};
use crate::support;

contract! {
    calls_are_claimed_in_their_order_and_once,
    one_callee_is_called_by_one_call_at_a_time,
    a_callee_is_not_called_more_often_than_allowed,
    calls_of_one_account_do_not_use_up_those_of_another,
    a_call_that_was_put_back_does_not_count_for_its_callee,
    what_counted_for_a_callee_is_forgotten_after_a_day,
    overdue_calls_are_claimed_for_their_end,
    a_number_that_is_held_back_for_longer_than_its_patience_loses_its_turn,
    who_is_held_back_again_and_again_loses_the_turn_at_last,
}

async fn calls_are_claimed_in_their_order_and_once(database: Database) {
    let store = with_account(&database).await;
    let mut sids = Vec::new();
    for number in 0..20 {
        let call = call(&format!("861380000{number:04}"));
        sids.push(call.sid.clone());
        store.accept_call(order(call)).await.unwrap();
    }
    sids.sort();
    let due = DueLane {
        account: account(),
        lane: lane(),
    };
    assert_eq!(store.queued_lanes().await.unwrap().due, [due]);
    assert_eq!(store.queue_depth().await.unwrap().0, 20);
    let first = claim(&store, &node(1), 7).await;
    let rest = claim(&store, &node(2), 100).await;
    let claimed: Vec<_> = first
        .iter()
        .chain(&rest)
        .map(|call| call.call.sid.clone())
        .collect();
    assert_eq!((first.len(), rest.len()), (7, 13));
    assert_eq!(claimed, sids);
    assert!(claim(&store, &node(1), 100).await.is_empty());
    assert_eq!(store.queue_depth().await.unwrap().0, 0);
}

async fn one_callee_is_called_by_one_call_at_a_time(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    for _ in 0..3 {
        store
            .accept_call(order(call("8613800000001")))
            .await
            .unwrap();
    }
    for turn in 0..3 {
        let claimed = claim(&store, &node(1), 10).await;
        assert_eq!(claimed.len(), 1, "turn {turn}");
        assert!(claim(&store, &node(2), 10).await.is_empty());
        assert!(store.end_call(ended(&claimed[0], now)).await.unwrap());
    }
    assert!(claim(&store, &node(1), 10).await.is_empty());
}

async fn a_callee_is_not_called_more_often_than_allowed(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let patient = Queueing {
        valid_for: SignedDuration::from_hours(9),
        ..queueing()
    };
    for _ in 0..3 {
        let call = call("8613800000001");
        store
            .accept_call(order_queued(call, patient.clone()))
            .await
            .unwrap();
    }
    let caps = CalleeCaps {
        per_minute: 1,
        per_hour: 2,
        per_day: 0,
    };
    let take_after = async |seconds| {
        pass(&database, SignedDuration::from_secs(seconds)).await;
        let wish = Claim {
            caps,
            ..claim_for(&node(1), 10)
        };
        let claimed = store.claim_calls(wish).await.unwrap();
        for call in &claimed {
            store.end_call(ended(call, now)).await.unwrap();
        }
        claimed.len()
    };
    assert_eq!(take_after(0).await, 1);
    assert_eq!(take_after(30).await, 0, "one a minute");
    assert_eq!(take_after(31).await, 1);
    assert_eq!(take_after(70).await, 0, "two an hour");
    assert_eq!(
        take_after(3500).await,
        1,
        "the first of them counts no more"
    );
}

async fn calls_of_one_account_do_not_use_up_those_of_another(database: Database) {
    let store = with_account(&database).await;
    let other = register(&*store, 7, |_| {}).await;
    let of_other = |call: NewCall| NewCall {
        account: other.parse().unwrap(),
        app: other.parse().unwrap(),
        ..call
    };
    let number = "8613800000001";
    let caps = CalleeCaps {
        per_day: 1,
        ..CalleeCaps::default()
    };
    let wish = || Claim {
        caps,
        shares: vec![
            share(lane(), 10),
            LaneShare {
                account: other.parse().unwrap(),
                lane: Lane {
                    app: other.parse().unwrap(),
                    ..lane()
                },
                calls: 10,
            },
        ],
        ..claim_for(&node(1), 10)
    };
    // Those of this account wait before those of the other one.
    for call in [
        call(number),
        call(number),
        of_other(call(number)),
        of_other(call(number)),
    ] {
        store.accept_call(order(call)).await.unwrap();
    }
    // One at a time, whoever may call.
    for turn in 0..2 {
        let claimed = store.claim_calls(wish()).await.unwrap();
        assert_eq!(claimed.len(), 1, "turn {turn}");
        assert!(store.end_call(ended(&claimed[0], now())).await.unwrap());
    }
    assert!(store.claim_calls(wish()).await.unwrap().is_empty());
    let day = SignedDuration::from_hours(24);
    for account in [account(), other.parse().unwrap()] {
        assert_eq!(store.calls_to(&account, number, day).await.unwrap(), 1);
    }
    // What a node of an earlier version has counted counts for everybody.
    support::execute(&database, "UPDATE callee_calls SET account_sid = ''").await;
    assert_eq!(store.calls_to(&account(), number, day).await.unwrap(), 2);
}

async fn a_call_that_was_put_back_does_not_count_for_its_callee(database: Database) {
    let store = with_account(&database).await;
    let call = call("8613800000001");
    store.accept_call(order(call.clone())).await.unwrap();
    let caps = CalleeCaps {
        per_day: 2,
        ..CalleeCaps::default()
    };
    let day = SignedDuration::from_hours(24);
    let count = async || {
        store
            .calls_to(&account(), "8613800000001", day)
            .await
            .unwrap()
    };
    for turn in 0..5 {
        let wish = Claim {
            caps,
            ..claim_for(&node(1), 1)
        };
        let claimed = store.claim_calls(wish).await.unwrap().remove(0);
        assert_eq!(count().await, 1, "turn {turn}");
        assert!(
            store
                .requeue_call(&claimed, back(SignedDuration::ZERO, 1))
                .await
                .unwrap()
        );
        assert_eq!(count().await, 0, "turn {turn}");
    }
    assert_eq!(
        store
            .calls_to(&account(), "8613800000002", day)
            .await
            .unwrap(),
        0
    );
}

async fn what_counted_for_a_callee_is_forgotten_after_a_day(database: Database) {
    let store = with_account(&database).await;
    let forget = async || store.forget_counted(2).await.unwrap();
    for number in 1..=3 {
        let call = call(&format!("861380000000{number}"));
        store.accept_call(order(call)).await.unwrap();
    }
    assert_eq!(claim(&store, &node(1), 10).await.len(), 3);
    let day = SignedDuration::from_hours(24);
    pass(&database, day - SignedDuration::from_mins(1)).await;
    assert_eq!(forget().await, 0, "they count still");
    assert_eq!(
        store
            .calls_to(&account(), "8613800000002", day)
            .await
            .unwrap(),
        1
    );
    pass(&database, SignedDuration::from_mins(2)).await;
    assert_eq!((forget().await, forget().await, forget().await), (2, 1, 0));
}

async fn a_number_that_is_held_back_for_longer_than_its_patience_loses_its_turn(
    database: Database,
) {
    let store = with_account(&database).await;
    let minute = SignedDuration::from_mins(1);
    let queued = |patience| Queueing {
        patience,
        valid_for: SignedDuration::from_hours(9),
        ..queueing()
    };
    let held_back = async || {
        let overdue = store.claim_overdue(&node(1), 10).await.unwrap();
        assert!(overdue.iter().all(|(_, why)| *why == Overdue::HeldBack));
        overdue
            .into_iter()
            .map(|(call, _)| call)
            .collect::<Vec<_>>()
    };
    let (first, patient, alone) = (
        call("8613800000001"),
        call("8613800000001"),
        call("8613800000001"),
    );
    store.accept_call(order(first)).await.unwrap();
    let talking = claim(&store, &node(1), 10).await.remove(0);
    for (call, patience) in [(&patient, Some(minute)), (&alone, None)] {
        let order = order_queued(call.clone(), queued(patience));
        store.accept_call(order).await.unwrap();
    }
    assert!(claim(&store, &node(1), 10).await.is_empty(), "it is busy");
    assert!(held_back().await.is_empty(), "not for long");
    pass(&database, SignedDuration::from_secs(59)).await;
    assert!(held_back().await.is_empty());
    pass(&database, SignedDuration::from_secs(2)).await;
    let found = held_back().await;
    assert_eq!(found.len(), 1, "the other has no patience to lose");
    assert_eq!(found[0].call.sid, patient.sid);
    // Where nobody else has a turn it goes on waiting, and nobody's calls are counted otherwise.
    let day = SignedDuration::from_hours(24);
    let back = back(SignedDuration::ZERO, 0);
    assert!(store.requeue_call(&found[0], back).await.unwrap());
    assert_eq!(
        store
            .calls_to(&account(), "8613800000001", day)
            .await
            .unwrap(),
        1
    );
    assert!(claim(&store, &node(1), 10).await.is_empty());
    assert!(held_back().await.is_empty(), "its patience begins anew");
    assert!(store.end_call(ended(&talking, now())).await.unwrap());
    assert_eq!(claim(&store, &node(1), 10).await.len(), 1);
    pass(&database, minute + minute).await;
    assert!(
        held_back().await.is_empty(),
        "who is called is not held back"
    );
    // The caps hold back as well.
    let capped = call("8613800000002");
    let caps = CalleeCaps {
        per_day: 1,
        ..CalleeCaps::default()
    };
    let wish = || Claim {
        caps,
        ..claim_for(&node(1), 10)
    };
    store
        .accept_call(order(call("8613800000002")))
        .await
        .unwrap();
    let only = store.claim_calls(wish()).await.unwrap().remove(0);
    assert!(store.end_call(ended(&only, now())).await.unwrap());
    let order = order_queued(capped.clone(), queued(Some(minute)));
    store.accept_call(order).await.unwrap();
    assert!(store.claim_calls(wish()).await.unwrap().is_empty());
    pass(&database, minute + minute).await;
    let found = held_back().await;
    assert!(found.iter().any(|one| one.call.sid == capped.sid));
}

/// Each time for less than its patience, and in all for longer; what is due and waits for a trunk is not held back.
async fn who_is_held_back_again_and_again_loses_the_turn_at_last(database: Database) {
    let store = with_account(&database).await;
    let half = SignedDuration::from_secs(40);
    let queued = Queueing {
        patience: Some(SignedDuration::from_secs(100)),
        valid_for: SignedDuration::from_hours(9),
        ..queueing()
    };
    let wish = || Claim {
        caps: CalleeCaps {
            per_minute: 1,
            ..CalleeCaps::default()
        },
        ..claim_for(&node(1), 1)
    };
    let claimed = async || store.claim_calls(wish()).await.unwrap();
    let overdue = async || store.claim_overdue(&node(1), 10).await.unwrap();
    let dial_other = async || {
        // Another call to the same number comes first each time.
        let urgent = Queueing {
            pause: -SignedDuration::from_hours(1),
            ..queueing()
        };
        let order = order_queued(call("8613800000001"), urgent);
        store.accept_call(order).await.unwrap();
        let other = claimed().await.remove(0);
        assert!(store.end_call(ended(&other, now())).await.unwrap());
    };
    dial_other().await;
    let waiting = call("8613800000001");
    let order = order_queued(waiting.clone(), queued);
    store.accept_call(order).await.unwrap();
    assert!(claimed().await.is_empty(), "for a minute");
    pass(&database, SignedDuration::from_secs(61)).await;
    assert!(overdue().await.is_empty(), "it is due, and not held back");
    dial_other().await;
    assert!(claimed().await.is_empty(), "for another minute");
    assert!(overdue().await.is_empty());
    pass(&database, half).await;
    let found = overdue().await;
    assert_eq!(found.len(), 1, "after a hundred seconds");
    assert_eq!(
        (&found[0].0.call.sid, found[0].1),
        (&waiting.sid, Overdue::HeldBack)
    );
}

async fn overdue_calls_are_claimed_for_their_end(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let (old, unwanted) = (call("8613800000001"), call("8613800000002"));
    let good = call("8613800000003");
    let at_once = Queueing {
        valid_for: SignedDuration::ZERO,
        ..queueing()
    };
    store
        .accept_call(order_queued(old.clone(), at_once))
        .await
        .unwrap();
    for call in [&unwanted, &good] {
        store.accept_call(order(call.clone())).await.unwrap();
    }
    assert_eq!(
        store.cancel_call(&unwanted.sid).await.unwrap(),
        Some(CallState::Queued)
    );
    let mut overdue = store.claim_overdue(&node(1), 10).await.unwrap();
    overdue.sort_by(|a, b| a.0.call.number.digits().cmp(b.0.call.number.digits()));
    let found: Vec<_> = overdue
        .iter()
        .map(|(call, why)| (call.call.sid.clone(), *why))
        .collect();
    assert_eq!(
        found,
        [
            (old.sid, Overdue::Expired),
            (unwanted.sid, Overdue::Cancelled)
        ]
    );
    for (call, _) in &overdue {
        assert!(store.end_call(ended(call, now)).await.unwrap());
    }
    let suspended = AccountChange {
        state: Some(AccountState::Suspended),
        ..AccountChange::default()
    };
    store.change_account(&account(), suspended).await.unwrap();
    let rest = store.claim_overdue(&node(1), 10).await.unwrap();
    assert_eq!(
        (rest.len(), rest[0].1, &rest[0].0.call.sid),
        (1, Overdue::Cancelled, &good.sid)
    );
}
