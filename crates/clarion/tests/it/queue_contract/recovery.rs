//! Calls whose process is gone.

use std::sync::Arc;

use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::claim::{Claim, NodeId, NodeShare, OrphanedCall};
use clarion::store::{Database, Store};
use jiff::{SignedDuration, Timestamp};

use super::{call, claim, claim_for, dialling, ended, node, now};
use crate::store_contract::with_account;
use crate::support::{self};

contract! {
    whoever_has_lost_a_call_changes_nothing_any_more,
    a_call_of_our_own_that_nobody_works_at_is_taken_over,
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
    let step = dialling(1, "first", now);
    assert!(
        !store
            .advance_call(&call.sid, &old.lease, step)
            .await
            .unwrap()
    );
    assert!(
        !store
            .requeue_call(&call.sid, &old.lease, now, 1)
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
            .requeue_call(&abandoned, &lost[0].claimed.lease, now, 1)
            .await
            .unwrap()
    );
    assert_eq!(claim(&store, &node(1), now, 2).await.len(), 1);
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
    let dialling = dialling(1, "first", now);
    let advanced = store.advance_call(&claimed.call.sid, &claimed.lease, dialling);
    assert!(advanced.await.unwrap());
    assert!(take_orphaned(&store, &node(2), now, &[]).await.is_empty());
}
