//! The verbs of the store that are about calls which have not ended: accepting them, taking them, and ending them.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;
use crate::domain::call::{CallSid, NewCall};
use crate::domain::call_state::CallState;
use crate::domain::claim::{
    CallUpdate, Claim, ClaimedCall, EndedCall, Lease, LeaseEnd, NodeId, NodeShare, OrphanedCall,
    Overdue, QueuedApp,
};

/// The queue: who takes which call, how far it has come, and its end. Every verb that writes about a call is guarded by its lease; `false`
/// means that the call is not ours any more, and that nothing was changed.
#[async_trait]
pub trait CallQueue: Send + Sync {
    /// Makes the call durable and queues it. When this returns `Ok`, a power cut loses nothing. Calling it again with the same
    /// call changes nothing.
    async fn accept_call(&self, call: NewCall) -> Result<(), StoreError>;
    /// Applications with calls waiting, and when the first of each is due.
    async fn queued_apps(&self) -> Result<Vec<QueuedApp>, StoreError>;
    /// Takes calls that are due, in their order, at most one for each callee and none for a callee that is being called.
    async fn claim_calls(&self, claim: Claim) -> Result<Vec<ClaimedCall>, StoreError>;
    /// Takes calls that shall end without being dialled.
    async fn claim_overdue(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
    ) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError>;
    async fn advance_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        step: CallUpdate,
    ) -> Result<bool, StoreError>;
    /// Back to the queue after so many attempts in all: nothing has rung, so it does not count for its callee either.
    async fn requeue_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        due_at: Timestamp,
        attempts: u32,
    ) -> Result<bool, StoreError>;
    /// Outcome, bill line and owed callback in one commit.
    async fn end_call(&self, ended: EndedCall) -> Result<bool, StoreError>;
    /// Takes calls over whose process is gone, and those of our own that nobody here works at any more (`abandoned`).
    async fn take_orphaned_calls(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
        abandoned: &[CallSid],
        limit: u32,
    ) -> Result<Vec<OrphanedCall>, StoreError>;
    /// What ends the leases of a node that says nothing.
    fn lease_end(&self) -> LeaseEnd;
    /// This process lives, and holds what it holds.
    async fn heartbeat(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<NodeShare, StoreError>;
    /// This process stops in good order: the others may use its part at once.
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError>;
    /// Calls that this node holds.
    async fn held_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError>;
    /// The operator wants the call ended. How far it has come, if it has not ended.
    async fn cancel_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError>;
    /// Calls that this node has under way and shall end.
    async fn cancelled_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError>;
    /// Calls waiting, and when the oldest of them was accepted.
    async fn queue_depth(&self) -> Result<(u64, Option<Timestamp>), StoreError>;
    /// How often a callee was called since then, of the last day.
    async fn calls_to(&self, callee: &str, since: Timestamp) -> Result<u32, StoreError>;
    /// Forgets calls that ended before, with their callbacks; at most so many, the oldest first. What is still owed is kept. How many went.
    async fn forget_calls(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
