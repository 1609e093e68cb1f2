//! What every store promises about the queue: leases, fences, one end. One suite, run on SQLite and on PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use clarion::domain::account::{AccountChange, AccountSid, AccountState};
use clarion::domain::call::{CallSid, NewCall};
use clarion::domain::call_state::CallState;
use clarion::domain::callback::{OwedCallback, RespUrl};
use clarion::domain::claim::{
    CallUpdate, CalleeCaps, Claim, ClaimedCall, EndedCall, NodeId, NodeShare, OrphanedCall, Overdue,
};
use clarion::domain::outcome::Outcome;
use clarion::domain::phone_number::PhoneNumber;
use clarion::store::{Database, Store};
use jiff::{SignedDuration, Timestamp};

use crate::store_contract::{call as any_call, with_account};
use crate::support::{self, APP, SID};

contract! {
    calls_are_claimed_in_their_order_and_once,
    one_callee_is_called_by_one_call_at_a_time,
    a_callee_is_not_called_more_often_than_allowed,
    a_call_goes_through_its_states_and_ends_once,
    a_call_goes_back_to_the_queue_only_while_nothing_has_rung,
    whoever_has_lost_a_call_changes_nothing_any_more,
    a_call_of_our_own_that_nobody_works_at_is_taken_over,
    a_call_that_was_put_back_does_not_count_for_its_callee,
    old_calls_are_forgotten_but_not_what_is_still_owed,
    overdue_calls_are_claimed_for_their_end,
    a_running_call_is_cancelled_by_name,
    what_ends_after_its_day_was_closed_is_billed_on_the_first_open_day,
}

/// A second after the calls were accepted.
fn now() -> Timestamp {
    "2026-11-15T02:35:10.123Z".parse().unwrap()
}

fn new_call() -> NewCall {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    any_call(NUMBER.fetch_add(1, Ordering::Relaxed).into())
}

fn node(number: u8) -> NodeId {
    NodeId::new([number; 8])
}

fn call(number: &str) -> NewCall {
    NewCall {
        number: PhoneNumber::from_stored(number.to_owned(), None),
        resp_url: Some(RespUrl::from_stored("http://example.com/cb".to_owned())),
        ..new_call()
    }
}

fn account() -> AccountSid {
    SID.parse().unwrap()
}

fn claim_for(node: &NodeId, now: Timestamp, limit: u32) -> Claim {
    Claim {
        node: node.clone(),
        now,
        lease_until: now + SignedDuration::from_secs(30),
        shares: vec![(APP.parse().unwrap(), limit)],
        caps: CalleeCaps::default(),
    }
}

async fn claim(
    store: &Arc<dyn Store>,
    node: &NodeId,
    now: Timestamp,
    limit: u32,
) -> Vec<ClaimedCall> {
    store
        .claim_calls(claim_for(node, now, limit))
        .await
        .unwrap()
}

fn ended(claimed: &ClaimedCall, at: Timestamp) -> EndedCall {
    EndedCall {
        claimed: claimed.clone(),
        outcome: Outcome::Talked,
        trunk: Some("first".to_owned()),
        attempts: 1,
        dialled_at: Some(at),
        rang_at: None,
        answered_at: Some(at),
        ended_at: at + SignedDuration::from_millis(1500),
        sip_code: Some(200),
        reason: None,
        bill_day: "2026-11-15".parse().unwrap(),
        callback: claimed.call.resp_url.clone().map(|url| OwedCallback {
            call: claimed.call.sid.clone(),
            app: claimed.call.app.clone(),
            webhook_id: "msg_1".to_owned(),
            url,
            body: "<request/>".to_owned(),
            owed_at: at,
        }),
    }
}

async fn calls_are_claimed_in_their_order_and_once(database: Database) {
    let store = with_account(&database).await;
    let mut sids = Vec::new();
    for number in 0..20 {
        let call = call(&format!("861380000{number:04}"));
        sids.push(call.sid.clone());
        store.accept_call(call).await.unwrap();
    }
    sids.sort();
    let now = now();
    let queued = store.queued_apps().await.unwrap();
    assert_eq!(queued.len(), 1);
    assert_eq!(queued[0].account, account());
    assert_eq!(queued[0].app.as_str(), APP);
    assert_eq!(store.queue_depth().await.unwrap().0, 20);
    let first = claim(&store, &node(1), now, 7).await;
    let rest = claim(&store, &node(2), now, 100).await;
    let claimed: Vec<_> = first
        .iter()
        .chain(&rest)
        .map(|call| call.call.sid.clone())
        .collect();
    assert_eq!((first.len(), rest.len()), (7, 13));
    assert_eq!(claimed, sids);
    assert!(claim(&store, &node(1), now, 100).await.is_empty());
    assert_eq!(store.queue_depth().await.unwrap().0, 0);
}

async fn one_callee_is_called_by_one_call_at_a_time(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    for _ in 0..3 {
        store.accept_call(call("8613800000001")).await.unwrap();
    }
    for turn in 0..3 {
        let claimed = claim(&store, &node(1), now, 10).await;
        assert_eq!(claimed.len(), 1, "turn {turn}");
        assert!(claim(&store, &node(2), now, 10).await.is_empty());
        assert!(store.end_call(ended(&claimed[0], now)).await.unwrap());
    }
    assert!(claim(&store, &node(1), now, 10).await.is_empty());
}

async fn a_callee_is_not_called_more_often_than_allowed(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    for _ in 0..3 {
        store.accept_call(call("8613800000001")).await.unwrap();
    }
    let caps = CalleeCaps {
        per_minute: 1,
        per_hour: 2,
        per_day: 0,
    };
    let take = async |now: Timestamp| {
        let wish = Claim {
            caps,
            ..claim_for(&node(1), now, 10)
        };
        let claimed = store.claim_calls(wish).await.unwrap();
        for call in &claimed {
            store.end_call(ended(call, now)).await.unwrap();
        }
        claimed.len()
    };
    let later = |seconds| now + SignedDuration::from_secs(seconds);
    assert_eq!(take(now).await, 1);
    assert_eq!(take(later(59)).await, 0, "one a minute");
    assert_eq!(take(later(61)).await, 1);
    assert_eq!(take(later(130)).await, 0, "two an hour");
}

async fn a_call_goes_through_its_states_and_ends_once(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let call = call("8613800000001");
    store.accept_call(call.clone()).await.unwrap();
    let claimed = claim(&store, &node(1), now, 1).await.remove(0);
    assert_eq!(claimed.call.called, call.called);
    assert_eq!(claimed.call.prompt, call.prompt);
    let state = async || {
        let progress = store.call_progress(&account(), &call.sid).await.unwrap();
        progress.unwrap().state
    };
    assert_eq!(state().await, CallState::Claimed);
    let dialog = "{}".to_owned();
    for step in [
        CallUpdate::Dialling {
            trunk: "first".to_owned(),
            at: now,
        },
        CallUpdate::Dialling {
            trunk: "second".to_owned(),
            at: now,
        },
        CallUpdate::Ringing {
            at: now,
            dialog: Some(dialog.clone()),
        },
        CallUpdate::Answered {
            at: now,
            dialog: Some(dialog),
        },
    ] {
        let wanted = step.state();
        assert!(
            store
                .advance_call(&call.sid, &claimed.lease, step)
                .await
                .unwrap()
        );
        assert_eq!(state().await, wanted);
    }
    let back = CallUpdate::Ringing {
        at: now,
        dialog: None,
    };
    assert!(
        !store
            .advance_call(&call.sid, &claimed.lease, back)
            .await
            .unwrap()
    );
    assert!(store.end_call(ended(&claimed, now)).await.unwrap());
    assert!(!store.end_call(ended(&claimed, now)).await.unwrap());
    let progress = store
        .call_progress(&account(), &call.sid)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (progress.state, progress.outcome),
        (CallState::Ended, Some(Outcome::Talked))
    );
    assert_eq!(progress.seconds(), 2);
}

async fn a_call_goes_back_to_the_queue_only_while_nothing_has_rung(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let call = call("8613800000001");
    store.accept_call(call.clone()).await.unwrap();
    let claimed = claim(&store, &node(1), now, 1).await.remove(0);
    let dial = CallUpdate::Dialling {
        trunk: "first".to_owned(),
        at: now,
    };
    assert!(
        store
            .advance_call(&call.sid, &claimed.lease, dial.clone())
            .await
            .unwrap()
    );
    let later = now + SignedDuration::from_secs(10);
    assert!(
        store
            .requeue_call(&call.sid, &claimed.lease, later)
            .await
            .unwrap()
    );
    assert!(
        claim(&store, &node(1), now, 1).await.is_empty(),
        "not due yet"
    );
    let again = claim(&store, &node(1), later, 1).await.remove(0);
    assert_eq!(again.attempts, 1);
    assert!(
        store
            .advance_call(&call.sid, &again.lease, dial)
            .await
            .unwrap()
    );
    let ring = CallUpdate::Ringing {
        at: later,
        dialog: Some("{}".to_owned()),
    };
    assert!(
        store
            .advance_call(&call.sid, &again.lease, ring)
            .await
            .unwrap()
    );
    assert!(
        !store
            .requeue_call(&call.sid, &again.lease, later)
            .await
            .unwrap()
    );
}

async fn whoever_has_lost_a_call_changes_nothing_any_more(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let call = call("8613800000001");
    store.accept_call(call.clone()).await.unwrap();
    // Leases that are over as soon as they are given; for SQLite another process is another life.
    let over = now;
    for node in [node(1), node(2)] {
        store.heartbeat(&node, now, over).await.unwrap();
    }
    let wish = Claim {
        lease_until: over,
        ..claim_for(&node(1), now, 1)
    };
    let old = store.claim_calls(wish).await.unwrap().remove(0);
    assert_eq!(
        store.held_calls(&node(1)).await.unwrap(),
        std::slice::from_ref(&call.sid)
    );
    let lost = take_orphaned(&store, &node(2), over, &[]).await;
    assert_eq!(lost.len(), 1);
    assert_eq!(
        (lost[0].state, &lost[0].claimed.call.sid),
        (CallState::Claimed, &call.sid)
    );
    assert!(lost[0].claimed.lease.fence > old.lease.fence);
    assert!(store.held_calls(&node(1)).await.unwrap().is_empty());
    let step = CallUpdate::Dialling {
        trunk: "first".to_owned(),
        at: now,
    };
    assert!(
        !store
            .advance_call(&call.sid, &old.lease, step)
            .await
            .unwrap()
    );
    assert!(
        !store
            .requeue_call(&call.sid, &old.lease, now)
            .await
            .unwrap()
    );
    assert!(!store.end_call(ended(&old, now)).await.unwrap());
    assert!(
        take_orphaned(&store, &node(2), over, &[]).await.is_empty(),
        "its own, and not abandoned"
    );
    // Whoever took it over may be lost too: the call was last known to go on while its first node lived.
    let later = now + SignedDuration::from_secs(3600);
    for node in [node(2), node(3)] {
        store.heartbeat(&node, later, later).await.unwrap();
    }
    let again = take_orphaned(&store, &node(3), over, &[]).await;
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].last_seen, lost[0].last_seen);
    assert!(store.end_call(ended(&again[0].claimed, now)).await.unwrap());
}

async fn take_orphaned(
    store: &Arc<dyn Store>,
    node: &NodeId,
    lease_until: Timestamp,
    abandoned: &[CallSid],
) -> Vec<OrphanedCall> {
    store
        .take_orphaned_calls(node, now(), lease_until, abandoned, 10)
        .await
        .unwrap()
}

async fn a_call_of_our_own_that_nobody_works_at_is_taken_over(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let until = now + SignedDuration::from_secs(30);
    for number in ["8613800000001", "8613800000002"] {
        store.accept_call(call(number)).await.unwrap();
    }
    store.heartbeat(&node(1), now, until).await.unwrap();
    let claimed = claim(&store, &node(1), now, 2).await;
    let abandoned = claimed[0].call.sid.clone();
    let lost = take_orphaned(&store, &node(1), until, std::slice::from_ref(&abandoned)).await;
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].claimed.call.sid, abandoned);
    assert!(!store.end_call(ended(&claimed[0], now)).await.unwrap());
    assert!(store.end_call(ended(&claimed[1], now)).await.unwrap());
    assert!(
        store
            .requeue_call(&abandoned, &lost[0].claimed.lease, now)
            .await
            .unwrap()
    );
    assert_eq!(claim(&store, &node(1), now, 2).await.len(), 1);
}

async fn a_call_that_was_put_back_does_not_count_for_its_callee(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let call = call("8613800000001");
    store.accept_call(call.clone()).await.unwrap();
    let caps = CalleeCaps {
        per_day: 2,
        ..CalleeCaps::default()
    };
    let day_before = now - SignedDuration::from_hours(24);
    let count = async || store.calls_to("8613800000001", day_before).await.unwrap();
    for turn in 0..5 {
        let now = now + SignedDuration::from_millis(turn);
        let wish = Claim {
            caps,
            ..claim_for(&node(1), now, 1)
        };
        let claimed = store.claim_calls(wish).await.unwrap().remove(0);
        assert_eq!(count().await, 1, "turn {turn}");
        assert!(
            store
                .requeue_call(&call.sid, &claimed.lease, now)
                .await
                .unwrap()
        );
        assert_eq!(count().await, 0, "turn {turn}");
    }
    assert_eq!(
        store.calls_to("8613800000002", day_before).await.unwrap(),
        0
    );
}

async fn old_calls_are_forgotten_but_not_what_is_still_owed(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let silent = NewCall {
        resp_url: None,
        ..call("8613800000001")
    };
    let (owing, alive) = (call("8613800000002"), call("8613800000003"));
    for call in [&silent, &owing, &alive] {
        store.accept_call(call.clone()).await.unwrap();
    }
    for claimed in claim(&store, &node(1), now, 2).await {
        assert!(store.end_call(ended(&claimed, now)).await.unwrap());
    }
    let later = now + SignedDuration::from_hours(1);
    assert_eq!(store.forget_calls(now, 10).await.unwrap(), 0, "too early");
    assert_eq!(store.forget_calls(later, 10).await.unwrap(), 1);
    let is_there = async |sid: &CallSid| store.call_record(sid).await.unwrap().is_some();
    assert!(!is_there(&silent.sid).await);
    assert!(is_there(&owing.sid).await && is_there(&alive.sid).await);
    support::settle_callback(&database, &owing.sid).await;
    assert_eq!(store.forget_calls(later, 10).await.unwrap(), 1);
    assert!(store.callback(&owing.sid).await.unwrap().is_none());
    assert!(is_there(&alive.sid).await, "it has not ended");
}

async fn overdue_calls_are_claimed_for_their_end(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let until = now + SignedDuration::from_secs(30);
    let old = NewCall {
        expires_at: now,
        ..call("8613800000001")
    };
    let (unwanted, good) = (call("8613800000002"), call("8613800000003"));
    for call in [&old, &unwanted, &good] {
        store.accept_call(call.clone()).await.unwrap();
    }
    assert_eq!(
        store.cancel_call(&unwanted.sid).await.unwrap(),
        Some(CallState::Queued)
    );
    let mut overdue = store.claim_overdue(&node(1), now, until, 10).await.unwrap();
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
    let rest = store.claim_overdue(&node(1), now, until, 10).await.unwrap();
    assert_eq!(
        (rest.len(), rest[0].1, &rest[0].0.call.sid),
        (1, Overdue::Cancelled, &good.sid)
    );
}

async fn a_running_call_is_cancelled_by_name(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let call = call("8613800000001");
    store.accept_call(call.clone()).await.unwrap();
    claim(&store, &node(1), now, 1).await;
    assert!(store.cancelled_calls(&node(1)).await.unwrap().is_empty());
    assert_eq!(
        store.cancel_call(&call.sid).await.unwrap(),
        Some(CallState::Claimed)
    );
    assert_eq!(store.cancelled_calls(&node(1)).await.unwrap(), [call.sid]);
    assert!(store.cancelled_calls(&node(2)).await.unwrap().is_empty());
    assert_eq!(store.cancel_call(&new_call().sid).await.unwrap(), None);
}

async fn what_ends_after_its_day_was_closed_is_billed_on_the_first_open_day(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let call = call("8613800000001");
    store.accept_call(call.clone()).await.unwrap();
    let claimed = claim(&store, &node(1), now, 1).await.remove(0);
    support::close_day(&database, "2026-11-15").await;
    assert!(store.end_call(ended(&claimed, now)).await.unwrap());
    assert_eq!(support::bill_day(&database, &call.sid).await, "2026-11-16");
}

/// On PostgreSQL: a node that saw the database only since a moment ago does not believe that others are gone, because they may not have seen
/// it either.
#[tokio::test]
async fn after_an_outage_nobody_is_taken_for_dead_at_once() {
    let database = Database::Postgres(support::postgres::empty_database().await);
    let store = with_account(&database).await;
    let now = now();
    let until = now + SignedDuration::from_secs(30);
    store.accept_call(call("8613800000001")).await.unwrap();
    let wish = Claim {
        lease_until: now,
        ..claim_for(&node(1), now, 1)
    };
    let claimed = store.claim_calls(wish).await.unwrap().remove(0);
    assert!(take_orphaned(&store, &node(2), until, &[]).await.is_empty());
    let standing = store.heartbeat(&node(2), now, until).await.unwrap();
    assert_eq!(standing, NodeShare::ALONE);
    assert!(take_orphaned(&store, &node(2), until, &[]).await.is_empty());
    // One that stops in good order is not waited for.
    store.heartbeat(&node(3), now, until).await.unwrap();
    store.leave(&node(3)).await.unwrap();
    // The first one is back: what it holds is its own again, however late it is.
    let standing = store.heartbeat(&node(1), now, until).await.unwrap();
    assert_eq!(standing, NodeShare { rank: 0, nodes: 2 });
    let dialling = CallUpdate::Dialling {
        trunk: "first".to_owned(),
        at: now,
    };
    let advanced = store.advance_call(&claimed.call.sid, &claimed.lease, dialling);
    assert!(advanced.await.unwrap());
    assert!(take_orphaned(&store, &node(2), now, &[]).await.is_empty());
}

/// On PostgreSQL: with hardly anything left on the lease nothing is sent any more.
#[tokio::test]
async fn a_call_whose_lease_is_nearly_over_is_not_dialled() {
    let database = Database::Postgres(support::postgres::empty_database().await);
    let store = with_account(&database).await;
    let now = now();
    store.accept_call(call("8613800000001")).await.unwrap();
    let wish = Claim {
        lease_until: now + SignedDuration::from_millis(300),
        ..claim_for(&node(1), now, 1)
    };
    let claimed = store.claim_calls(wish).await.unwrap().remove(0);
    let dialling = CallUpdate::Dialling {
        trunk: "first".to_owned(),
        at: now,
    };
    let advanced = store.advance_call(&claimed.call.sid, &claimed.lease, dialling);
    assert!(!advanced.await.unwrap());
}
