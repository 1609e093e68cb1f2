//! Calls whose process is gone.

use std::sync::Arc;

use clarion::domain::call::CallSid;
use clarion::domain::call_state::CallState;
use clarion::domain::claim::{NodeId, OrphanedCall};
use clarion::store::{Database, Store};
use jiff::SignedDuration;

use super::{LEASE, back, call, claim, dialling, ended, node, now, pass};
use crate::store_contract::{order, with_account};
use crate::support::{self};

contract! {
    whoever_has_lost_a_call_changes_nothing_any_more,
    a_call_of_our_own_that_nobody_works_at_is_taken_over,
    what_a_node_claims_after_it_has_left_is_taken_over,
}

/// A claim may still be on its way to the database when its node says good-bye, and nobody hears what it got.
async fn what_a_node_claims_after_it_has_left_is_taken_over(database: Database) {
    let store = with_account(&database).await;
    let call = call("8613800000001");
    store.accept_call(order(call.clone())).await.unwrap();
    for number in [1, 2] {
        let node = node(number);
        store.heartbeat(&node, now(), LEASE).await.unwrap();
    }
    store.cancel_call(&call.sid).await.unwrap();
    store.leave(&node(1)).await.unwrap();
    assert_eq!(store.claim_overdue(&node(1), 10).await.unwrap().len(), 1);
    lose(&database, &store, &node(2)).await;
    let lost = take_orphaned(&store, &node(2), &[]).await;
    assert_eq!(lost.len(), 1);
    assert!(
        store
            .end_call(ended(&lost[0].claimed, now()))
            .await
            .unwrap()
    );
}

async fn whoever_has_lost_a_call_changes_nothing_any_more(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    let call = call("8613800000001");
    store.accept_call(order(call.clone())).await.unwrap();
    store.heartbeat(&node(2), now, LEASE).await.unwrap();
    let old = claim(&store, &node(1), 1).await.remove(0);
    assert_eq!(
        store.held_calls(&node(1)).await.unwrap(),
        std::slice::from_ref(&call.sid)
    );
    // The first node's lease runs out; for SQLite another process is another life.
    lose(&database, &store, &node(2)).await;
    let lost = take_orphaned(&store, &node(2), &[]).await;
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
            .advance_call(&call.sid, &old.lease, step.into())
            .await
            .unwrap()
    );
    assert!(
        !store
            .requeue_call(&old, back(SignedDuration::ZERO, 1))
            .await
            .unwrap()
    );
    assert!(!store.end_call(ended(&old, now)).await.unwrap());
    assert!(
        take_orphaned(&store, &node(2), &[]).await.is_empty(),
        "its own, and not abandoned"
    );
    // Whoever took it over may be lost too: the call was last known to go on while its first node lived.
    store.heartbeat(&node(3), now, LEASE).await.unwrap();
    lose(&database, &store, &node(3)).await;
    let again = take_orphaned(&store, &node(3), &[]).await;
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].last_seen, lost[0].last_seen);
    assert!(store.end_call(ended(&again[0].claimed, now)).await.unwrap());
}

/// Leases pass. This node has shown all the time that it lives, others have not.
async fn lose(database: &Database, store: &Arc<dyn Store>, node: &NodeId) {
    for _ in 0..3 {
        pass(database, LEASE * 2 / 3).await;
        store.heartbeat(node, now(), LEASE).await.unwrap();
    }
}

async fn take_orphaned(
    store: &Arc<dyn Store>,
    node: &NodeId,
    abandoned: &[CallSid],
) -> Vec<OrphanedCall> {
    store
        .take_orphaned_calls(node, LEASE, abandoned, 10)
        .await
        .unwrap()
}

async fn a_call_of_our_own_that_nobody_works_at_is_taken_over(database: Database) {
    let store = with_account(&database).await;
    let now = now();
    for number in ["8613800000001", "8613800000002"] {
        store.accept_call(order(call(number))).await.unwrap();
    }
    let claimed = claim(&store, &node(1), 2).await;
    let abandoned = claimed[0].call.sid.clone();
    let lost = take_orphaned(&store, &node(1), std::slice::from_ref(&abandoned)).await;
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].claimed.call.sid, abandoned);
    assert!(!store.end_call(ended(&claimed[0], now)).await.unwrap());
    assert!(store.end_call(ended(&claimed[1], now)).await.unwrap());
    assert!(
        store
            .requeue_call(&lost[0].claimed, back(SignedDuration::ZERO, 1))
            .await
            .unwrap()
    );
    assert_eq!(claim(&store, &node(1), 2).await.len(), 1);
}

/// On PostgreSQL: a node that saw the database only since a moment ago does not believe that others are gone, because they may not have seen
/// it either.
#[tokio::test]
async fn after_an_outage_nobody_is_taken_for_dead_at_once() {
    let database = support::postgres::empty().await;
    let store = with_account(&database).await;
    let now = now();
    store
        .accept_call(order(call("8613800000001")))
        .await
        .unwrap();
    let claimed = claim(&store, &node(1), 1).await.remove(0);
    pass(&database, LEASE * 3).await;
    assert!(take_orphaned(&store, &node(2), &[]).await.is_empty());
    let reply = store.heartbeat(&node(2), now, LEASE).await.unwrap();
    assert_eq!(reply.nodes, 1);
    assert!(take_orphaned(&store, &node(2), &[]).await.is_empty());
    // One that stops in good order is not waited for.
    store.heartbeat(&node(3), now, LEASE).await.unwrap();
    store.leave(&node(3)).await.unwrap();
    // The first one is back: what it holds is its own again, however late it is.
    let reply = store.heartbeat(&node(1), now, LEASE).await.unwrap();
    assert_eq!(reply.nodes, 2);
    let dialling = dialling(1, "first", now);
    let advanced = store.advance_call(&claimed.call.sid, &claimed.lease, dialling.into());
    assert!(advanced.await.unwrap());
    assert!(take_orphaned(&store, &node(2), &[]).await.is_empty());
}
