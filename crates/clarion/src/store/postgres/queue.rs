//! The queue in PostgreSQL, shared by any number of nodes. Leases run by the database's clock, so that nodes need not agree on the time.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{PostgresStore, claiming, ending};
use crate::domain::call::{CallSid, NewCall};
use crate::domain::call_state::CallState;
use crate::domain::claim::{
    CallUpdate, Claim, ClaimedCall, EndedCall, Lease, LeaseEnd, NodeId, NodeShare, OrphanedCall,
    Overdue, QueuedApp,
};
use crate::store::columns::Columns;
use crate::store::statements::{postgres, queue};
use crate::store::{CallQueue, StoreError};

/// Each column of a moment has a statement of its own. What is dialled must leave while the lease still has its margin.
macro_rules! advance {
    ($column:literal) => {
        postgres!(
            "UPDATE call_queue SET state = greatest(state, $1), ",
            $column,
            " = coalesce(",
            $column,
            ", $2), trunk = coalesce($3, trunk), dialog = coalesce($4, dialog), attempts = coalesce($5, attempts) \
             WHERE call_sid = $6 AND node = $7 AND fence = $8 AND state = ANY($9) AND (NOT $10 OR lease_until > {now} + {margin})"
        )
    };
}

const DIALLED: &str = advance!("dialled_at");
const RANG: &str = advance!("rang_at");
const ANSWERED: &str = advance!("answered_at");
const REQUEUE: &str = postgres!(
    "WITH queued AS (UPDATE call_queue SET state = {queued}, due_at = $1, node = NULL, lease_until = NULL, trunk = NULL, \
         dialled_at = NULL, dialog = NULL, seen_at = NULL, attempts = $6 \
       WHERE call_sid = $2 AND node = $3 AND fence = $4 AND state = ANY($5) RETURNING call_sid, callee), \
     uncounted AS (DELETE FROM callee_calls USING queued \
       WHERE callee_calls.callee = queued.callee AND callee_calls.call_sid = queued.call_sid) \
     SELECT call_sid FROM queued"
);
const HEARTBEAT: &str = postgres!(
    "WITH renewed AS (UPDATE call_queue SET lease_until = {now} + $2 WHERE node = $1 AND state > {queued}), \
     seen AS (INSERT INTO nodes (node, steady_since, heartbeat_at) VALUES ($1, {now}, {now}) \
       ON CONFLICT (node) DO UPDATE SET heartbeat_at = {now}, \
         steady_since = CASE WHEN nodes.heartbeat_at < {now} - $2 THEN {now} ELSE nodes.steady_since END), \
     forgotten AS (DELETE FROM nodes WHERE heartbeat_at < {now} - {day} \
       AND node NOT IN (SELECT node FROM call_queue WHERE node IS NOT NULL)) \
     SELECT count(*) FILTER (WHERE node < $1), count(*) FROM nodes WHERE heartbeat_at > {now} - 2 * $2 AND node <> $1"
);
/// The oldest calls first: callSids sort by time. One whose callback is still owed is kept until that is settled.
const FORGET_CALLS: &str = postgres!(
    "WITH old AS (SELECT call_sid FROM (SELECT call_sid, ended_at FROM calls ORDER BY call_sid LIMIT $1) AS oldest \
       LEFT JOIN callbacks USING (call_sid) WHERE ended_at < $2 AND coalesce(callbacks.state, {delivered}) >= {delivered}), \
     attempts AS (DELETE FROM callback_attempts USING old WHERE callback_attempts.call_sid = old.call_sid), \
     settled AS (DELETE FROM callbacks USING old WHERE callbacks.call_sid = old.call_sid) \
     DELETE FROM calls USING old WHERE calls.call_sid = old.call_sid"
);

#[async_trait]
impl CallQueue for PostgresStore {
    async fn accept_call(&self, call: NewCall) -> Result<(), StoreError> {
        self.accepter.accept(call).await
    }

    async fn queued_apps(&self) -> Result<Vec<QueuedApp>, StoreError> {
        let rows = self.query(queue::QUEUED_APPS.postgres, &[]).await?;
        rows.iter()
            .filter_map(|row| queue::queued_app(row).transpose())
            .collect()
    }

    async fn claim_calls(&self, claim: Claim) -> Result<Vec<ClaimedCall>, StoreError> {
        claiming::claim(&mut self.client().await?, &claim).await
    }

    async fn claim_overdue(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
    ) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError> {
        let lease = lease_millis(now, lease_until);
        claiming::claim_overdue(&mut self.client().await?, node, now, lease, limit).await
    }

    async fn advance_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        update: CallUpdate,
    ) -> Result<bool, StoreError> {
        let statement = match &update {
            CallUpdate::Dialling { .. } => DIALLED,
            CallUpdate::Ringing { .. } => RANG,
            CallUpdate::Answered { .. } => ANSWERED,
        };
        let (attempt, trunk) = queue::attempt_and_trunk(&update);
        let from = states(|state| queue::may_follow(state, &update));
        let changed = self
            .execute(
                statement,
                &[
                    &update.state().number(),
                    &queue::moment(&update).as_millisecond(),
                    &trunk,
                    &update.dialog(),
                    &attempt,
                    &sid.as_str(),
                    &lease.node.as_str(),
                    &lease.fence,
                    &from,
                    &matches!(update, CallUpdate::Dialling { .. }),
                ],
            )
            .await?;
        Ok(changed == 1)
    }

    async fn requeue_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        due_at: Timestamp,
        attempts: u32,
    ) -> Result<bool, StoreError> {
        let from = states(|state| state.may_become(CallState::Queued));
        let changed = self
            .execute(
                REQUEUE,
                &[
                    &due_at.as_millisecond(),
                    &sid.as_str(),
                    &lease.node.as_str(),
                    &lease.fence,
                    &from,
                    &queue::stored_attempts(attempts),
                ],
            )
            .await?;
        Ok(changed == 1)
    }

    async fn end_call(&self, ended: EndedCall) -> Result<bool, StoreError> {
        ending::end(&self.client().await?, &ended).await
    }

    async fn take_orphaned_calls(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
        abandoned: &[CallSid],
        limit: u32,
    ) -> Result<Vec<OrphanedCall>, StoreError> {
        let abandoned: Vec<_> = abandoned.iter().map(CallSid::as_str).collect();
        let lease = lease_millis(now, lease_until);
        let rows = self
            .query(
                claiming::ORPHANED_CALLS,
                &[&i64::from(limit), &node.as_str(), &lease, &abandoned],
            )
            .await?;
        rows.iter().map(|row| queue::orphaned(row, node)).collect()
    }

    fn lease_end(&self) -> LeaseEnd {
        LeaseEnd::Time
    }

    async fn heartbeat(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<NodeShare, StoreError> {
        let lease = lease_millis(now, lease_until);
        let row = self.query_one(HEARTBEAT, &[&node.as_str(), &lease]).await?;
        Ok(NodeShare {
            rank: row.number(0)?,
            nodes: row.number::<u32>(1)? + 1,
        })
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.execute(queue::LEAVE.postgres, &[&node.as_str()])
            .await?;
        Ok(())
    }

    async fn held_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let rows = self
            .query(queue::HELD_BY.postgres, &[&node.as_str()])
            .await?;
        rows.iter().map(queue::call_sid).collect()
    }

    async fn cancel_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError> {
        let row = self
            .query_opt(queue::CANCEL.postgres, &[&sid.as_str()])
            .await?;
        row.as_ref().map(queue::call_state).transpose()
    }

    async fn cancelled_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let rows = self
            .query(queue::CANCELLED_OF.postgres, &[&node.as_str()])
            .await?;
        rows.iter().map(queue::call_sid).collect()
    }

    async fn queue_depth(&self) -> Result<(u64, Option<Timestamp>), StoreError> {
        queue::depth(&self.query_one(queue::DEPTH.postgres, &[]).await?)
    }

    async fn calls_to(&self, callee: &str, since: Timestamp) -> Result<u32, StoreError> {
        let values: super::Values<'_> = &[&callee, &since.as_millisecond()];
        let row = self.query_one(queue::CALLS_TO.postgres, values).await?;
        row.number(0)
    }

    async fn forget_calls(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let values: super::Values<'_> = &[&i64::from(limit), &before.as_millisecond()];
        self.execute(FORGET_CALLS, values).await
    }
}

/// Numbers of the states for which something holds.
fn states(holds: impl Fn(CallState) -> bool) -> Vec<i16> {
    CallState::ALL
        .into_iter()
        .filter(|state| holds(*state))
        .map(CallState::number)
        .collect()
}

pub(super) fn lease_millis(now: Timestamp, until: Timestamp) -> i64 {
    until.as_millisecond() - now.as_millisecond()
}
