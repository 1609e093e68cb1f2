//! The verbs of the store that are about calls which have not ended: accepting them, taking them, and ending them.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::StoreError;
use crate::domain::account::{AccountSid, AppId};
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::{
    CancelledCall, Claim, ClaimedCall, DeadRoute, HeartbeatReply, Lease, LeaseEnd, NodeId,
    OrphanedCall, Overdue, QueuedLanes, Requeue, WatchedUpdate,
};
use crate::domain::ended_call::{EndedCall, GoingOn, WentOn};
use crate::domain::request_key::{Accepted, AcceptedCall, KnownRequest, RequestId};
use crate::domain::trunk_grants::{GrantRequest, TrunkGrant};

/// The queue: who takes which call, how far it has come, and its end. Every verb that writes about a call is guarded by its lease; `false`
/// means that the call is not ours any more, and that nothing was changed.
///
/// Due, expiry and leases are by the store's own clock, so verbs are told how long, never when: on PostgreSQL that is the server's clock,
/// which all nodes share, on SQLite one that no change of the machine's clock moves.
#[async_trait]
pub trait CallQueue: Send + Sync {
    /// Makes the call durable and queues it. When this returns `Ok`, a power cut loses nothing. Calling it again with the same
    /// call changes nothing, and so does a request whose name was used before.
    async fn accept_call(&self, order: AcceptedCall) -> Result<Accepted, StoreError>;
    /// The call that a request of this name became.
    async fn find_request(
        &self,
        app: &AppId,
        id: &RequestId,
    ) -> Result<Option<KnownRequest>, StoreError>;
    /// The lanes in which a call is due.
    async fn queued_lanes(&self) -> Result<QueuedLanes, StoreError>;
    /// Takes calls that are due, in their order, at most one for each callee and none for a callee that is being called. A call whose
    /// callee is being called is parked until that call is over, so that it is looked at once and not at every claim.
    async fn claim_calls(&self, claim: Claim) -> Result<Vec<ClaimedCall>, StoreError>;
    /// Takes calls that shall end without being dialled.
    async fn claim_overdue(
        &self,
        node: &NodeId,
        limit: u32,
    ) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError>;

    /// Takes attempts of notices that are due on these routes and have no patience left for them.
    async fn claim_stranded(
        &self,
        node: &NodeId,
        routes: &[DeadRoute],
        limit: u32,
    ) -> Result<Vec<ClaimedCall>, StoreError>;
    async fn advance_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        step: WatchedUpdate,
    ) -> Result<bool, StoreError>;
    /// Back to the queue, with the legs that it has had.
    async fn requeue_call(
        &self,
        claimed: &ClaimedCall,
        requeue: Requeue,
    ) -> Result<bool, StoreError>;
    /// Outcome, attempt, legs, bill line and owed callback in one commit.
    async fn end_call(&self, ended: EndedCall) -> Result<bool, StoreError>;
    /// The end of an attempt and the birth of the next one of its notice, in one commit.
    async fn go_on(&self, going: GoingOn) -> Result<WentOn, StoreError>;
    /// Takes calls over whose process is gone, and those of our own that nobody here works at any more (`abandoned`).
    async fn take_orphaned_calls(
        &self,
        node: &NodeId,
        lease: SignedDuration,
        abandoned: &[CallSid],
        limit: u32,
    ) -> Result<Vec<OrphanedCall>, StoreError>;
    /// What ends the leases of a node that says nothing.
    fn lease_end(&self) -> LeaseEnd;
    /// This process lives, and holds what it holds for as long as the lease lasts. `now` is what people read when they ask when it was last seen.
    async fn heartbeat(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease: SignedDuration,
    ) -> Result<HeartbeatReply, StoreError>;
    /// Agrees with the other nodes on what this one may use of each trunk. A trunk that another node is just asking about is left out: it stays
    /// as it was.
    async fn share_trunks(
        &self,
        node: &NodeId,
        requests: Vec<GrantRequest>,
    ) -> Result<Vec<(String, TrunkGrant)>, StoreError>;
    /// This process stops in good order: the others may use its part at once.
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError>;
    /// Calls that this node holds.
    async fn held_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError>;
    /// The operator wants the call ended. How far it has come, if it has not ended.
    async fn cancel_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError>;
    /// Calls that this node has under way and shall end.
    async fn cancelled_calls(&self, node: &NodeId) -> Result<Vec<CancelledCall>, StoreError>;
    /// Calls waiting, and how long the one that has been due the longest has been so, by the queue's clock.
    async fn queue_depth(&self) -> Result<(u64, Option<SignedDuration>), StoreError>;
    /// How often an account has called a callee within this time, of the last day.
    async fn calls_to(
        &self,
        account: &AccountSid,
        callee: &str,
        within: SignedDuration,
    ) -> Result<u32, StoreError>;
    /// Forgets that callees were called more than a day ago; at most so many times, the oldest first. How many went.
    async fn forget_counted(&self, limit: u32) -> Result<u64, StoreError>;
    /// Forgets calls that ended before, with their attempts, legs and callbacks. What is still owed is kept. It looks at so many calls, the oldest first,
    /// and after the one at which the last step stopped.
    async fn forget_calls(
        &self,
        before: Timestamp,
        after: Option<CallSid>,
        limit: u32,
    ) -> Result<ForgetStep, StoreError>;
    /// Forgets the names of requests whose calls ended before, whether those are known or not, in the same steps.
    async fn forget_requests(
        &self,
        before: Timestamp,
        after: Option<CallSid>,
        limit: u32,
    ) -> Result<ForgetStep, StoreError>;
}

/// A step through what may be old enough to be forgotten: what waits for its turn for weeks must not hide what came after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgetStep {
    pub forgotten: u64,
    /// The next step begins after this one. None: what follows is too young, and the next one begins anew.
    pub stopped_at: Option<CallSid>,
}
