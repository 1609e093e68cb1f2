//! The queue in SQLite: who takes which call, how far it has come, and its end.
//!
//! One server serves from a file at a time (`ServeLock`), so a call that is held by another node is held by a process that is gone.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::query::Query;
use super::{SqliteStore, calls, claiming, ending};
use crate::domain::call::{CallSid, NewCall};
use crate::domain::call_state::CallState;
use crate::domain::claim::{
    CallUpdate, Claim, ClaimedCall, EndedCall, Lease, LeaseEnd, NodeId, NodeShare, OrphanedCall,
    Overdue, QueuedApp,
};
use crate::store::columns::Columns;
use crate::store::statements::{queue, sqlite};
use crate::store::{CallQueue, StoreError};

/// Each column of a moment has a statement of its own.
macro_rules! advance {
    ($column:literal) => {
        sqlite!(
            "UPDATE call_queue SET state = max(state, $1), ",
            $column,
            " = coalesce(",
            $column,
            ", $2), trunk = coalesce($3, trunk), dialog = coalesce($4, dialog), attempts = coalesce($5, attempts) WHERE call_sid = $6"
        )
    };
}

const DIALLED: &str = advance!("dialled_at");
const RANG: &str = advance!("rang_at");
const ANSWERED: &str = advance!("answered_at");
const REQUEUE: &str = sqlite!(
    "UPDATE call_queue SET state = {queued}, due_at = $1, node = NULL, lease_until = NULL, trunk = NULL, dialled_at = NULL, \
       dialog = NULL, seen_at = NULL, attempts = $3 WHERE call_sid = $2"
);
const UNCOUNT: &str = sqlite!(
    "DELETE FROM callee_calls WHERE callee = (SELECT callee FROM call_queue WHERE call_sid = $1) AND call_sid = $1"
);
const HEARTBEAT: &str = sqlite!(
    "INSERT INTO nodes (node, steady_since, heartbeat_at) VALUES ($1, $2, $2) ON CONFLICT (node) DO UPDATE SET heartbeat_at = $2"
);
/// Names of processes that are long gone, and hold nothing.
const FORGET_NODES: &str = sqlite!(
    "DELETE FROM nodes WHERE heartbeat_at < $1 - {day} AND node NOT IN (SELECT node FROM call_queue WHERE node IS NOT NULL)"
);
/// The oldest calls first: callSids sort by time. One whose callback is still owed is kept until that is settled.
const OLD_CALLS: &str = sqlite!(
    "SELECT call_sid FROM (SELECT call_sid, ended_at FROM calls ORDER BY call_sid LIMIT $1) AS oldest \
     LEFT JOIN callbacks USING (call_sid) WHERE ended_at < $2 AND coalesce(callbacks.state, {delivered}) >= {delivered}"
);
const FORGET_CALL: [&str; 3] = [
    sqlite!("DELETE FROM callback_attempts WHERE call_sid = $1"),
    sqlite!("DELETE FROM callbacks WHERE call_sid = $1"),
    sqlite!("DELETE FROM calls WHERE call_sid = $1"),
];

#[async_trait]
impl CallQueue for SqliteStore {
    async fn accept_call(&self, call: NewCall) -> Result<(), StoreError> {
        self.write(move |db| calls::accept(db, &call).map(drop))
            .await
    }

    async fn queued_apps(&self) -> Result<Vec<QueuedApp>, StoreError> {
        self.read(|db| {
            let apps = db.rows(queue::QUEUED_APPS.sqlite, [], |row| queue::queued_app(row))?;
            Ok(apps.into_iter().flatten().collect())
        })
        .await
    }

    async fn claim_calls(&self, claim: Claim) -> Result<Vec<ClaimedCall>, StoreError> {
        self.write(move |db| claiming::claim(db, &claim)).await
    }

    async fn claim_overdue(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
    ) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError> {
        let node = node.clone();
        self.write(move |db| claiming::claim_overdue(db, &node, now, lease_until, limit))
            .await
    }

    async fn advance_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        update: CallUpdate,
    ) -> Result<bool, StoreError> {
        let (sid, lease) = (sid.clone(), lease.clone());
        self.write(move |db| advance(db, &sid, &lease, &update))
            .await
    }

    async fn requeue_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        due_at: Timestamp,
        attempts: u32,
    ) -> Result<bool, StoreError> {
        let (sid, lease) = (sid.clone(), lease.clone());
        self.write(move |db| requeue(db, &sid, &lease, due_at, attempts))
            .await
    }

    async fn end_call(&self, ended: EndedCall) -> Result<bool, StoreError> {
        self.write(move |db| ending::end(db, &ended)).await
    }

    async fn take_orphaned_calls(
        &self,
        node: &NodeId,
        _now: Timestamp,
        lease_until: Timestamp,
        abandoned: &[CallSid],
        limit: u32,
    ) -> Result<Vec<OrphanedCall>, StoreError> {
        let (node, abandoned) = (node.clone(), abandoned.to_vec());
        self.write(move |db| claiming::take_orphaned(db, &node, lease_until, &abandoned, limit))
            .await
    }

    /// One server serves from a file at a time, and what it holds is its own until its process is gone.
    fn lease_end(&self) -> LeaseEnd {
        LeaseEnd::Process
    }

    /// This process lives. What it holds needs no renewing: it is held until the process is gone.
    async fn heartbeat(
        &self,
        node: &NodeId,
        now: Timestamp,
        _lease_until: Timestamp,
    ) -> Result<NodeShare, StoreError> {
        let (node, now) = (node.clone(), now.as_millisecond());
        self.write(move |db| {
            db.run(HEARTBEAT, params![node.as_str(), now])?;
            db.run(FORGET_NODES, [now])?;
            Ok(NodeShare::ALONE)
        })
        .await
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        let node = node.clone();
        self.write(move |db| db.run(queue::LEAVE.sqlite, [node.as_str()]).map(drop))
            .await
    }

    async fn held_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let node = node.clone();
        self.read(move |db| {
            db.rows(queue::HELD_BY.sqlite, [node.as_str()], |row| {
                queue::call_sid(row)
            })
        })
        .await
    }

    async fn cancel_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError> {
        let sid = sid.clone();
        self.write(move |db| {
            db.row(queue::CANCEL.sqlite, [sid.as_str()], |row| {
                queue::call_state(row)
            })
        })
        .await
    }

    async fn cancelled_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let node = node.clone();
        self.read(move |db| {
            db.rows(queue::CANCELLED_OF.sqlite, [node.as_str()], |row| {
                queue::call_sid(row)
            })
        })
        .await
    }

    async fn queue_depth(&self) -> Result<(u64, Option<Timestamp>), StoreError> {
        self.read(|db| db.only_row(queue::DEPTH.sqlite, [], |row| queue::depth(row)))
            .await
    }

    async fn calls_to(&self, callee: &str, since: Timestamp) -> Result<u32, StoreError> {
        let callee = callee.to_owned();
        self.read(move |db| {
            let values = params![callee, since.as_millisecond()];
            db.only_row(queue::CALLS_TO.sqlite, values, |row| row.number(0))
        })
        .await
    }

    async fn forget_calls(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write(move |db| forget(db, before, limit)).await
    }
}

/// False if the call is not ours any more, or cannot go there from where it is.
fn advance(
    db: &Connection,
    sid: &CallSid,
    lease: &Lease,
    update: &CallUpdate,
) -> Result<bool, StoreError> {
    match held_state(db, sid, lease)? {
        Some(state) if queue::may_follow(state, update) => {}
        _ => return Ok(false),
    }
    let statement = match update {
        CallUpdate::Dialling { .. } => DIALLED,
        CallUpdate::Ringing { .. } => RANG,
        CallUpdate::Answered { .. } => ANSWERED,
    };
    let (attempt, trunk) = queue::attempt_and_trunk(update);
    let values = params![
        update.state().number(),
        queue::moment(update).as_millisecond(),
        trunk,
        update.dialog(),
        attempt,
        sid.as_str()
    ];
    db.run(statement, values)?;
    Ok(true)
}

/// The state of a call that this lease still holds.
pub(super) fn held_state(
    db: &Connection,
    sid: &CallSid,
    lease: &Lease,
) -> Result<Option<CallState>, StoreError> {
    let values = params![sid.as_str(), lease.node.as_str(), lease.fence];
    db.row(queue::HELD_STATE.sqlite, values, |row| {
        queue::call_state(row)
    })
}

fn requeue(
    db: &Connection,
    sid: &CallSid,
    lease: &Lease,
    due_at: Timestamp,
    attempts: u32,
) -> Result<bool, StoreError> {
    match held_state(db, sid, lease)? {
        Some(state) if state.may_become(CallState::Queued) => {}
        _ => return Ok(false),
    }
    let attempts = queue::stored_attempts(attempts);
    let values = params![due_at.as_millisecond(), sid.as_str(), attempts];
    db.run(REQUEUE, values)?;
    db.run(UNCOUNT, [sid.as_str()])?;
    Ok(true)
}

fn forget(db: &Connection, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    let values = params![limit, before.as_millisecond()];
    let old = db.rows(OLD_CALLS, values, |row| row.string(0))?;
    for sid in &old {
        for forget in FORGET_CALL {
            db.run(forget, [sid])?;
        }
    }
    Ok(old.len() as u64)
}
