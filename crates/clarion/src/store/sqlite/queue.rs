//! The queue in SQLite: who takes which call, how far it has come, and its end.
//!
//! One server serves from a file at a time (`ServeLock`), so a call that is held by another node is held by a process that is gone.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::{SqliteStore, claiming, ending};
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::{
    CallUpdate, Claim, ClaimedCall, EndedCall, Lease, NodeId, NodeShare, OrphanedCall, Overdue,
    QueuedApp,
};
use crate::store::{CallQueue, StoreError};

#[async_trait]
impl CallQueue for SqliteStore {
    async fn queued_apps(&self) -> Result<Vec<QueuedApp>, StoreError> {
        self.read(claiming::queued_apps).await
    }

    async fn claim_calls(&self, wish: Claim) -> Result<Vec<ClaimedCall>, StoreError> {
        self.write(move |db| claiming::claim(db, &wish)).await
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
        step: CallUpdate,
    ) -> Result<bool, StoreError> {
        let (sid, lease) = (sid.clone(), lease.clone());
        self.write(move |db| advance(db, &sid, &lease, &step)).await
    }

    async fn requeue_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        due_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let (sid, lease) = (sid.clone(), lease.clone());
        self.write(move |db| requeue(db, &sid, &lease, due_at))
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

    async fn heartbeat(
        &self,
        node: &NodeId,
        now: Timestamp,
        _lease_until: Timestamp,
    ) -> Result<NodeShare, StoreError> {
        let node = node.clone();
        self.write(move |db| heartbeat(db, &node, now)).await
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        let node = node.clone();
        self.write(move |db| leave(db, &node)).await
    }

    async fn held_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let node = node.clone();
        self.read(move |db| held_by(db, &node)).await
    }

    async fn cancel_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError> {
        let sid = sid.clone();
        self.write(move |db| cancel(db, &sid)).await
    }

    async fn cancelled_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let node = node.clone();
        self.read(move |db| cancelled_of(db, &node)).await
    }

    async fn queue_depth(&self) -> Result<(u64, Option<Timestamp>), StoreError> {
        self.read(depth).await
    }

    async fn calls_to(&self, callee: &str, since: Timestamp) -> Result<u32, StoreError> {
        let callee = callee.to_owned();
        self.read(move |db| {
            db.prepare_cached(
                "SELECT count(*) FROM callee_calls WHERE callee = ? AND claimed_at > ?",
            )?
            .query_row(params![callee, since.as_millisecond()], |row| row.get(0))
        })
        .await
    }

    async fn forget_calls(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.write(move |db| forget(db, before, limit)).await
    }
}

pub(super) fn time(millis: i64) -> rusqlite::Result<Timestamp> {
    Timestamp::from_millisecond(millis).map_err(|error| conversion(&error))
}

pub(super) fn optional_time(millis: Option<i64>) -> rusqlite::Result<Option<Timestamp>> {
    millis.map(time).transpose()
}

pub(super) fn conversion(error: &dyn std::fmt::Display) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.to_string().into())
}

pub(super) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    text: &str,
) -> rusqlite::Result<T> {
    text.parse().map_err(|error: T::Err| conversion(&error))
}

/// False if the call is not ours any more, or cannot go there from where it is.
fn advance(
    db: &Connection,
    sid: &CallSid,
    lease: &Lease,
    step: &CallUpdate,
) -> rusqlite::Result<bool> {
    let Some(state) = held_state(db, sid, lease)? else {
        return Ok(false);
    };
    // It has left, or another trunk is tried before anything has rung.
    let again = state == CallState::Dialling && step.state() == CallState::Dialling;
    if !again && !state.may_become(step.state()) {
        return Ok(false);
    }
    let (column, at, trunk) = match step {
        CallUpdate::Dialling { trunk, at } => ("dialled_at", at, Some(trunk)),
        CallUpdate::Sent { at, .. } => ("dialled_at", at, None),
        CallUpdate::Ringing { at, .. } => ("rang_at", at, None),
        CallUpdate::Answered { at, .. } => ("answered_at", at, None),
    };
    db.prepare_cached(&format!(
        "UPDATE call_queue SET state = ?, {column} = coalesce({column}, ?), trunk = coalesce(?, trunk), dialog = coalesce(?, dialog), \
           attempts = attempts + ? WHERE call_sid = ?"
    ))?
    .execute(params![
        step.state().number(),
        at.as_millisecond(),
        trunk,
        step.dialog(),
        i32::from(matches!(step, CallUpdate::Dialling { .. })),
        sid.as_str()
    ])?;
    Ok(true)
}

/// The state of a call that this lease still holds.
pub(super) fn held_state(
    db: &Connection,
    sid: &CallSid,
    lease: &Lease,
) -> rusqlite::Result<Option<CallState>> {
    let state = db
        .prepare_cached(
            "SELECT state FROM call_queue WHERE call_sid = ? AND node = ? AND fence = ?",
        )?
        .query_row(
            params![sid.as_str(), lease.node.as_str(), lease.fence],
            |row| row.get::<_, i16>(0),
        )
        .optional()?;
    Ok(state.and_then(CallState::from_number))
}

fn requeue(
    db: &Connection,
    sid: &CallSid,
    lease: &Lease,
    due_at: Timestamp,
) -> rusqlite::Result<bool> {
    match held_state(db, sid, lease)? {
        Some(state) if state.may_become(CallState::Queued) => {}
        _ => return Ok(false),
    }
    db.prepare_cached(
        "UPDATE call_queue SET state = 0, due_at = ?, node = NULL, lease_until = NULL, trunk = NULL, dialled_at = NULL, dialog = NULL, seen_at = NULL \
         WHERE call_sid = ?",
    )?
    .execute(params![due_at.as_millisecond(), sid.as_str()])?;
    db.prepare_cached(
        "DELETE FROM callee_calls WHERE callee = (SELECT callee FROM call_queue WHERE call_sid = ?1) AND call_sid = ?1",
    )?
    .execute([sid.as_str()])?;
    Ok(true)
}

/// This process lives. What it holds needs no renewing: it is held until the process is gone.
fn heartbeat(db: &Connection, node: &NodeId, now: Timestamp) -> rusqlite::Result<NodeShare> {
    let now = now.as_millisecond();
    db.prepare_cached(
        "INSERT INTO nodes (node, steady_since, heartbeat_at) VALUES (?1, ?2, ?2) ON CONFLICT (node) DO UPDATE SET heartbeat_at = ?2",
    )?
    .execute(params![node.as_str(), now])?;
    // Names of processes that are long gone, and hold nothing.
    db.prepare_cached(
        "DELETE FROM nodes WHERE heartbeat_at < ? AND node NOT IN (SELECT node FROM call_queue WHERE node IS NOT NULL)",
    )?
    .execute([now - 86_400_000])?;
    Ok(NodeShare::ALONE)
}

/// The name stays while calls are held by it: what becomes of them begins with when it was last seen.
fn leave(db: &Connection, node: &NodeId) -> rusqlite::Result<()> {
    db.prepare_cached(
        "DELETE FROM nodes WHERE node = ?1 AND NOT EXISTS (SELECT 1 FROM call_queue WHERE state > 0 AND node = ?1)",
    )?
    .execute([node.as_str()])?;
    Ok(())
}

fn held_by(db: &Connection, node: &NodeId) -> rusqlite::Result<Vec<CallSid>> {
    db.prepare_cached("SELECT call_sid FROM call_queue WHERE state > 0 AND node = ?")?
        .query_map([node.as_str()], |row| parsed(&row.get::<_, String>(0)?))?
        .collect()
}

/// The oldest calls first: callSids sort by time. One whose callback is still owed is kept until that is settled.
fn forget(db: &Connection, before: Timestamp, limit: u32) -> rusqlite::Result<u64> {
    let old: Vec<String> = db
        .prepare_cached(
            "SELECT call_sid FROM (SELECT call_sid, ended_at FROM calls ORDER BY call_sid LIMIT ?1) AS oldest \
             LEFT JOIN callbacks USING (call_sid) WHERE ended_at < ?2 AND coalesce(callbacks.state, 2) >= 2",
        )?
        .query_map(params![limit, before.as_millisecond()], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for sid in &old {
        for table in ["callback_attempts", "callbacks", "calls"] {
            db.prepare_cached(&format!("DELETE FROM {table} WHERE call_sid = ?"))?
                .execute([sid])?;
        }
    }
    Ok(old.len() as u64)
}

/// The operator wants the call ended. How far it has come, if it has not ended.
fn cancel(db: &Connection, sid: &CallSid) -> rusqlite::Result<Option<CallState>> {
    let state = db
        .prepare_cached("UPDATE call_queue SET cancelled = 1 WHERE call_sid = ? RETURNING state")?
        .query_row([sid.as_str()], |row| row.get::<_, i16>(0))
        .optional()?;
    Ok(state.and_then(CallState::from_number))
}

/// Calls that this node has under way and shall end.
fn cancelled_of(db: &Connection, node: &NodeId) -> rusqlite::Result<Vec<CallSid>> {
    db.prepare_cached(
        "SELECT call_sid FROM call_queue WHERE cancelled = 1 AND state > 0 AND node = ?",
    )?
    .query_map([node.as_str()], |row| parsed(&row.get::<_, String>(0)?))?
    .collect()
}

/// Calls waiting, and when the oldest of them was accepted.
fn depth(db: &Connection) -> rusqlite::Result<(u64, Option<Timestamp>)> {
    db.prepare_cached(
        "SELECT count(*), min(calls.accepted_at) FROM call_queue JOIN calls USING (call_sid) WHERE state = 0",
    )?
    .query_row([], |row| {
        Ok((row.get::<_, i64>(0)?.unsigned_abs(), optional_time(row.get(1)?)?))
    })
}
