//! The queue in PostgreSQL, shared by any number of nodes. Leases run by the database's clock, so that nodes need not agree on the time.

use async_trait::async_trait;
use jiff::Timestamp;

use super::super::{CallQueue, StoreError};
use super::{PostgresStore, claiming, ending};
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::{
    CallUpdate, Claim, ClaimedCall, EndedCall, Lease, NodeId, NodeShare, OrphanedCall, Overdue,
    QueuedApp,
};

/// Milliseconds by the database's clock.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
/// No INVITE leaves with less than so many milliseconds left on the lease: whoever takes the call over must find that it was dialled.
const MARGIN: i64 = 500;

#[async_trait]
impl CallQueue for PostgresStore {
    async fn queued_apps(&self) -> Result<Vec<QueuedApp>, StoreError> {
        let rows = self.query(
                "WITH RECURSIVE waiting (app_id) AS (\
                   SELECT min(app_id) FROM call_queue WHERE state = 0 \
                   UNION ALL \
                   SELECT (SELECT min(app_id) FROM call_queue WHERE state = 0 AND app_id > waiting.app_id) \
                   FROM waiting WHERE waiting.app_id IS NOT NULL) \
                 SELECT account_sid, app_id, (SELECT min(due_at) FROM call_queue WHERE state = 0 AND call_queue.app_id = waiting.app_id) \
                 FROM waiting JOIN applications ON applications.id = app_id",
                &[],
            )
            .await?;
        rows.iter()
            // Between the two looks at the table another node may have taken the last one.
            .filter(|row| row.get::<_, Option<i64>>(2).is_some())
            .map(|row| {
                Ok(QueuedApp {
                    account: parsed(row.get(0))?,
                    app: parsed(row.get(1))?,
                    due_at: time(row.get(2))?,
                })
            })
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
        step: CallUpdate,
    ) -> Result<bool, StoreError> {
        let (column, at, trunk) = match &step {
            CallUpdate::Dialling { trunk, at } => ("dialled_at", at, Some(trunk.as_str())),
            CallUpdate::Sent { at, .. } => ("dialled_at", at, None),
            CallUpdate::Ringing { at, .. } => ("rang_at", at, None),
            CallUpdate::Answered { at, .. } => ("answered_at", at, None),
        };
        // It has left, or another trunk is tried before anything has rung.
        let from = states(|state| {
            state.may_become(step.state())
                || (state == CallState::Dialling && step.state() == CallState::Dialling)
        });
        let changed = self.execute(
                &format!(
                    "UPDATE call_queue SET state = $1, {column} = coalesce({column}, $2), trunk = coalesce($3, trunk), \
                       dialog = coalesce($4, dialog), attempts = attempts + $5 \
                     WHERE call_sid = $6 AND node = $7 AND fence = $8 AND state = ANY($9) \
                       AND (NOT $10 OR lease_until > {NOW} + {MARGIN})"
                ),
                &[
                    &step.state().number(),
                    &at.as_millisecond(),
                    &trunk,
                    &step.dialog(),
                    &i32::from(trunk.is_some()),
                    &sid.as_str(),
                    &lease.node.as_str(),
                    &lease.fence,
                    &from,
                    &matches!(step, CallUpdate::Dialling { .. }),
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
    ) -> Result<bool, StoreError> {
        let from = states(|state| state.may_become(CallState::Queued));
        let changed = self.execute(
                "WITH queued AS (UPDATE call_queue SET state = 0, due_at = $1, node = NULL, lease_until = NULL, trunk = NULL, \
                     dialled_at = NULL, dialog = NULL, seen_at = NULL \
                   WHERE call_sid = $2 AND node = $3 AND fence = $4 AND state = ANY($5) RETURNING call_sid, callee), \
                 uncounted AS (DELETE FROM callee_calls USING queued \
                   WHERE callee_calls.callee = queued.callee AND callee_calls.call_sid = queued.call_sid) \
                 SELECT call_sid FROM queued",
                &[
                    &due_at.as_millisecond(),
                    &sid.as_str(),
                    &lease.node.as_str(),
                    &lease.fence,
                    &from,
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
                &claiming::orphaned_calls(),
                &[&i64::from(limit), &node.as_str(), &lease, &abandoned],
            )
            .await?;
        rows.iter().map(|row| claiming::lost(row, node)).collect()
    }

    async fn heartbeat(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<NodeShare, StoreError> {
        let row = self.query_one(
                &format!(
                    "WITH renewed AS (UPDATE call_queue SET lease_until = {NOW} + $2 WHERE node = $1 AND state > 0), \
                     beat AS (INSERT INTO nodes (node, steady_since, heartbeat_at) VALUES ($1, {NOW}, {NOW}) \
                       ON CONFLICT (node) DO UPDATE SET heartbeat_at = {NOW}, \
                         steady_since = CASE WHEN nodes.heartbeat_at < {NOW} - $2 THEN {NOW} ELSE nodes.steady_since END), \
                     forgotten AS (DELETE FROM nodes WHERE heartbeat_at < {NOW} - 86400000 \
                       AND node NOT IN (SELECT node FROM call_queue WHERE node IS NOT NULL)) \
                     SELECT count(*) FILTER (WHERE node < $1), count(*) FROM nodes WHERE heartbeat_at > {NOW} - 2 * $2 AND node <> $1"
                ),
                &[&node.as_str(), &lease_millis(now, lease_until)],
            )
            .await?;
        let count = |column| u32::try_from(row.get::<_, i64>(column)).unwrap_or(0);
        Ok(NodeShare {
            rank: count(0),
            nodes: count(1) + 1,
        })
    }

    /// The name stays while calls are held by it: what becomes of them begins with when it was last seen.
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        let leave = "DELETE FROM nodes WHERE node = $1 AND NOT EXISTS (SELECT 1 FROM call_queue WHERE state > 0 AND node = $1)";
        self.execute(leave, &[&node.as_str()]).await?;
        Ok(())
    }

    async fn held_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let held = "SELECT call_sid FROM call_queue WHERE state > 0 AND node = $1";
        let rows = self.query(held, &[&node.as_str()]).await?;
        rows.iter().map(|row| parsed(row.get(0))).collect()
    }

    async fn cancel_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError> {
        let row = self
            .query_opt(
                "UPDATE call_queue SET cancelled = TRUE WHERE call_sid = $1 RETURNING state",
                &[&sid.as_str()],
            )
            .await?;
        Ok(row.and_then(|row| CallState::from_number(row.get(0))))
    }

    async fn cancelled_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let rows = self
            .query(
                "SELECT call_sid FROM call_queue WHERE cancelled AND state > 0 AND node = $1",
                &[&node.as_str()],
            )
            .await?;
        rows.iter().map(|row| parsed(row.get(0))).collect()
    }

    async fn queue_depth(&self) -> Result<(u64, Option<Timestamp>), StoreError> {
        let row = self.query_one(
                "SELECT count(*), min(calls.accepted_at) FROM call_queue JOIN calls USING (call_sid) WHERE state = 0",
                &[],
            )
            .await?;
        Ok((
            row.get::<_, i64>(0).unsigned_abs(),
            row.get::<_, Option<i64>>(1).map(time).transpose()?,
        ))
    }

    async fn calls_to(&self, callee: &str, since: Timestamp) -> Result<u32, StoreError> {
        let count = "SELECT count(*) FROM callee_calls WHERE callee = $1 AND claimed_at > $2";
        let row = self
            .query_one(count, &[&callee, &since.as_millisecond()])
            .await?;
        Ok(u32::try_from(row.get::<_, i64>(0)).unwrap_or(u32::MAX))
    }

    /// The oldest calls first: callSids sort by time. One whose callback is still owed is kept until that is settled.
    async fn forget_calls(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let forgotten = self.execute(
                "WITH old AS (SELECT call_sid FROM (SELECT call_sid, ended_at FROM calls ORDER BY call_sid LIMIT $1) AS oldest \
                   LEFT JOIN callbacks USING (call_sid) WHERE ended_at < $2 AND coalesce(callbacks.state, 2) >= 2), \
                 attempts AS (DELETE FROM callback_attempts USING old WHERE callback_attempts.call_sid = old.call_sid), \
                 settled AS (DELETE FROM callbacks USING old WHERE callbacks.call_sid = old.call_sid) \
                 DELETE FROM calls USING old WHERE calls.call_sid = old.call_sid",
                &[&i64::from(limit), &before.as_millisecond()],
            )
            .await?;
        Ok(forgotten)
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

pub(super) fn time(millis: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_millisecond(millis).map_err(StoreError::failed)
}

pub(super) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    text: &str,
) -> Result<T, StoreError> {
    text.parse().map_err(StoreError::failed)
}
