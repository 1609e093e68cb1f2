//! The queue in SQLite: who takes which call, how far it has come, and its end.
//!
//! One server serves from a file at a time (`ServeLock`), so a call that is held by another node is held by a process that is gone.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{SqliteStore, bills, callbacks};
use crate::domain::account::AppId;
use crate::domain::call::{CallSid, NewCall};
use crate::domain::call_state::CallState;
use crate::domain::callback::RespUrl;
use crate::domain::claim::{
    Claim, ClaimedCall, EndedCall, Lease, LostCall, NodeId, Overdue, QueuedApp, Standing, Step,
};
use crate::domain::phone_number::PhoneNumber;
use crate::store::{CallQueue, StoreError};

/// What a claimed call is read from; the fence is that of the lease which is given.
const CLAIMED: &str = "calls.call_sid, calls.account_sid, calls.app_id, calls.accepted_at, queue.expires_at, calls.called, calls.number, \
  calls.extension, calls.caller, calls.prompt, calls.max_talk, calls.resp_url, calls.user_data, queue.fence, queue.attempts";
/// Calls at the head of the queue that are looked at for expiry: callSids sort by time, so the oldest are there.
const OLDEST: u32 = 1000;

#[async_trait]
impl CallQueue for SqliteStore {
    async fn queued_apps(&self) -> Result<Vec<QueuedApp>, StoreError> {
        self.read(queued_apps).await
    }

    async fn claim_calls(&self, wish: Claim) -> Result<Vec<ClaimedCall>, StoreError> {
        self.write(move |db| claim(db, &wish)).await
    }

    async fn claim_overdue(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
        most: u32,
    ) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError> {
        let node = node.clone();
        self.write(move |db| claim_overdue(db, &node, now, lease_until, most))
            .await
    }

    async fn advance_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        step: Step,
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
        self.write(move |db| end(db, &ended)).await
    }

    async fn take_lost_calls(
        &self,
        node: &NodeId,
        _now: Timestamp,
        lease_until: Timestamp,
        abandoned: &[CallSid],
        most: u32,
    ) -> Result<Vec<LostCall>, StoreError> {
        let (node, abandoned) = (node.clone(), abandoned.to_vec());
        self.write(move |db| take_lost(db, &node, lease_until, &abandoned, most))
            .await
    }

    async fn heartbeat(
        &self,
        node: &NodeId,
        now: Timestamp,
        _lease_until: Timestamp,
    ) -> Result<Standing, StoreError> {
        let node = node.clone();
        self.write(move |db| heartbeat(db, &node, now)).await
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

    async fn forget_calls(&self, before: Timestamp, most: u32) -> Result<u64, StoreError> {
        self.write(move |db| forget(db, before, most)).await
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

/// Reads the columns of `CLAIMED`, and gives the next fence to `node`.
fn claimed(row: &Row<'_>, node: &NodeId) -> rusqlite::Result<ClaimedCall> {
    let text = |column: usize| row.get::<_, String>(column);
    let call = NewCall {
        sid: parsed(&text(0)?)?,
        account: parsed(&text(1)?)?,
        app: parsed(&text(2)?)?,
        accepted_at: time(row.get(3)?)?,
        expires_at: time(row.get(4)?)?,
        called: text(5)?,
        number: PhoneNumber::from_stored(text(6)?, row.get(7)?),
        caller: row.get(8)?,
        prompt: serde_json::from_str(&text(9)?).map_err(|error| conversion(&error))?,
        max_talk: row.get(10)?,
        resp_url: row.get::<_, Option<String>>(11)?.map(RespUrl::from_stored),
        user_data: row.get(12)?,
    };
    Ok(ClaimedCall {
        call,
        lease: Lease {
            node: node.clone(),
            fence: row.get::<_, i64>(13)? + 1,
        },
        attempts: row.get(14)?,
    })
}

/// Every application that has a call in the queue, found by leaping through the index from one to the next.
fn queued_apps(db: &Connection) -> rusqlite::Result<Vec<QueuedApp>> {
    db.prepare_cached(
        "WITH RECURSIVE waiting (app_id) AS (\
           SELECT min(app_id) FROM call_queue WHERE state = 0 \
           UNION ALL \
           SELECT (SELECT min(app_id) FROM call_queue WHERE state = 0 AND app_id > waiting.app_id) \
           FROM waiting WHERE waiting.app_id IS NOT NULL) \
         SELECT account_sid, app_id, (SELECT min(due_at) FROM call_queue WHERE state = 0 AND call_queue.app_id = waiting.app_id) \
         FROM waiting JOIN applications ON applications.id = app_id",
    )?
    .query_map([], |row| {
        Ok(QueuedApp {
            account: parsed(&row.get::<_, String>(0)?)?,
            app: parsed(&row.get::<_, String>(1)?)?,
            due_at: time(row.get(2)?)?,
        })
    })?
    .collect()
}

fn claim(db: &Connection, claim: &Claim) -> rusqlite::Result<Vec<ClaimedCall>> {
    let now = claim.now.as_millisecond();
    let mut taken = Vec::new();
    for (app, share) in &claim.shares {
        taken.extend(claim_of(db, claim, app, *share, now)?);
    }
    if !taken.is_empty() {
        db.prepare_cached("DELETE FROM callee_calls WHERE claimed_at < ?")?
            .execute([now - 86_400_000])?;
    }
    Ok(taken)
}

fn claim_of(
    db: &Connection,
    claim: &Claim,
    app: &AppId,
    share: u32,
    now: i64,
) -> rusqlite::Result<Vec<ClaimedCall>> {
    let [minute, hour, day] = claim.caps.windows();
    let mut statement = db.prepare_cached(&format!(
        "SELECT {CLAIMED}, queue.callee FROM call_queue AS queue JOIN calls USING (call_sid) \
         WHERE queue.app_id = ?1 AND queue.state = 0 AND queue.due_at <= ?2 AND queue.expires_at > ?2 AND queue.cancelled = 0 \
           AND NOT EXISTS (SELECT 1 FROM call_queue AS busy WHERE busy.callee = queue.callee AND busy.state > 0) \
           AND (?3 = 0 OR (SELECT count(*) FROM callee_calls WHERE callee = queue.callee AND claimed_at > ?2 - ?4) < ?3) \
           AND (?5 = 0 OR (SELECT count(*) FROM callee_calls WHERE callee = queue.callee AND claimed_at > ?2 - ?6) < ?5) \
           AND (?7 = 0 OR (SELECT count(*) FROM callee_calls WHERE callee = queue.callee AND claimed_at > ?2 - ?8) < ?7) \
         ORDER BY queue.due_at, queue.call_sid"
    ))?;
    let mut rows = statement.query(params![
        app.as_str(),
        now,
        minute.0,
        minute.1,
        hour.0,
        hour.1,
        day.0,
        day.1
    ])?;
    let mut callees = HashSet::new();
    let mut found = Vec::new();
    while found.len() < share as usize {
        let Some(row) = rows.next()? else { break };
        let callee: String = row.get(15)?;
        // Two calls to one callee at once are never made; the second waits for its turn.
        if callees.insert(callee.clone()) {
            found.push((claimed(row, &claim.node)?, callee));
        }
    }
    drop(rows);
    let mut calls = Vec::with_capacity(found.len());
    for (call, callee) in found {
        take(db, &call, claim.lease_until)?;
        db.prepare_cached(
            "INSERT INTO callee_calls (callee, claimed_at, call_sid) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        )?
        .execute(params![callee, now, call.call.sid.as_str()])?;
        calls.push(call);
    }
    Ok(calls)
}

fn take(db: &Connection, call: &ClaimedCall, lease_until: Timestamp) -> rusqlite::Result<()> {
    db.prepare_cached(
        "UPDATE call_queue SET state = ?, node = ?, fence = ?, lease_until = ? WHERE call_sid = ?",
    )?
    .execute(params![
        CallState::Claimed.number(),
        call.lease.node.as_str(),
        call.lease.fence,
        lease_until.as_millisecond(),
        call.call.sid.as_str()
    ])?;
    Ok(())
}

fn claim_overdue(
    db: &Connection,
    node: &NodeId,
    now: Timestamp,
    lease_until: Timestamp,
    most: u32,
) -> rusqlite::Result<Vec<(ClaimedCall, Overdue)>> {
    let sources = [
        (
            Overdue::Expired,
            format!(
                "SELECT {CLAIMED} FROM (SELECT * FROM call_queue ORDER BY call_sid LIMIT {OLDEST}) AS queue JOIN calls USING (call_sid) \
                 WHERE queue.state = 0 AND queue.expires_at <= ?1 LIMIT ?2"
            ),
        ),
        (
            Overdue::Cancelled,
            format!(
                "SELECT {CLAIMED} FROM call_queue AS queue JOIN calls USING (call_sid) \
                 WHERE queue.cancelled = 1 AND queue.state = 0 AND ?1 > 0 LIMIT ?2"
            ),
        ),
        (
            Overdue::Cancelled,
            format!(
                "SELECT {CLAIMED} FROM accounts JOIN applications ON applications.account_sid = accounts.sid \
                   JOIN call_queue AS queue ON queue.app_id = applications.id JOIN calls USING (call_sid) \
                 WHERE accounts.state <> 'active' AND queue.state = 0 AND ?1 > 0 LIMIT ?2"
            ),
        ),
    ];
    let mut found = Vec::new();
    for (why, query) in sources {
        let calls: Vec<ClaimedCall> = db
            .prepare_cached(&query)?
            .query_map(params![now.as_millisecond(), most], |row| {
                claimed(row, node)
            })?
            .collect::<rusqlite::Result<_>>()?;
        for call in calls {
            take(db, &call, lease_until)?;
            found.push((call, why));
        }
    }
    Ok(found)
}

/// False if the call is not ours any more, or cannot go there from where it is.
fn advance(db: &Connection, sid: &CallSid, lease: &Lease, step: &Step) -> rusqlite::Result<bool> {
    let Some(state) = held_state(db, sid, lease)? else {
        return Ok(false);
    };
    // It has left, or another trunk is tried before anything has rung.
    let again = state == CallState::Dialling && step.state() == CallState::Dialling;
    if !again && !state.may_become(step.state()) {
        return Ok(false);
    }
    let (column, at, trunk) = match step {
        Step::Dialling { trunk, at } => ("dialled_at", at, Some(trunk)),
        Step::Sent { at, .. } => ("dialled_at", at, None),
        Step::Ringing { at, .. } => ("rang_at", at, None),
        Step::Answered { at, .. } => ("answered_at", at, None),
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
        i32::from(matches!(step, Step::Dialling { .. })),
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
        "UPDATE call_queue SET state = 0, due_at = ?, node = NULL, lease_until = NULL, trunk = NULL, dialled_at = NULL, dialog = NULL \
         WHERE call_sid = ?",
    )?
    .execute(params![due_at.as_millisecond(), sid.as_str()])?;
    db.prepare_cached(
        "DELETE FROM callee_calls WHERE callee = (SELECT callee FROM call_queue WHERE call_sid = ?1) AND call_sid = ?1",
    )?
    .execute([sid.as_str()])?;
    Ok(true)
}

/// Outcome, bill line and owed callback, or nothing of it if the call is not ours any more.
fn end(db: &Connection, ended: &EndedCall) -> rusqlite::Result<bool> {
    let (call, lease) = (&ended.claimed.call, &ended.claimed.lease);
    let gone = db
        .prepare_cached("DELETE FROM call_queue WHERE call_sid = ? AND node = ? AND fence = ?")?
        .execute(params![call.sid.as_str(), lease.node.as_str(), lease.fence])?;
    if gone == 0 {
        return Ok(false);
    }
    let millis = |time: Option<Timestamp>| time.map(Timestamp::as_millisecond);
    db.prepare_cached(
        "UPDATE calls SET outcome = ?, trunk = ?, attempts = ?, dialled_at = ?, rang_at = ?, answered_at = ?, ended_at = ?, \
           sip_code = ?, reason = ? WHERE call_sid = ?",
    )?
    .execute(params![
        ended.outcome.number(),
        ended.trunk,
        ended.attempts,
        millis(ended.dialled_at),
        millis(ended.rang_at),
        millis(ended.answered_at),
        ended.ended_at.as_millisecond(),
        ended.sip_code,
        ended.reason,
        call.sid.as_str()
    ])?;
    bills::bill_call(db, ended)?;
    if let Some(owed) = &ended.callback {
        callbacks::owe(db, owed)?;
    }
    Ok(true)
}

/// Calls of processes that are gone, and those that nobody works at, now ours.
fn take_lost(
    db: &Connection,
    node: &NodeId,
    lease_until: Timestamp,
    abandoned: &[CallSid],
    most: u32,
) -> rusqlite::Result<Vec<LostCall>> {
    let abandoned: Vec<_> = abandoned.iter().map(CallSid::as_str).collect();
    let abandoned = serde_json::json!(abandoned).to_string();
    let lost: Vec<LostCall> = db
        .prepare_cached(&format!(
            "SELECT {CLAIMED}, queue.state, queue.trunk, queue.dialled_at, queue.rang_at, queue.answered_at, queue.dialog, \
               coalesce(nodes.heartbeat_at, queue.answered_at, queue.rang_at, queue.dialled_at, calls.accepted_at) \
             FROM call_queue AS queue JOIN calls USING (call_sid) LEFT JOIN nodes ON nodes.node = queue.node \
             WHERE queue.state > 0 AND (queue.node <> ?1 OR call_sid IN (SELECT value FROM json_each(?2))) LIMIT ?3"
        ))?
        .query_map(params![node.as_str(), abandoned, most], |row| {
            Ok(LostCall {
                claimed: claimed(row, node)?,
                state: CallState::from_number(row.get(15)?).unwrap_or(CallState::Dialling),
                trunk: row.get(16)?,
                dialled_at: optional_time(row.get(17)?)?,
                rang_at: optional_time(row.get(18)?)?,
                answered_at: optional_time(row.get(19)?)?,
                dialog: row.get(20)?,
                last_seen: time(row.get(21)?)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    for call in &lost {
        db.prepare_cached(
            "UPDATE call_queue SET node = ?, fence = ?, lease_until = ? WHERE call_sid = ?",
        )?
        .execute(params![
            node.as_str(),
            call.claimed.lease.fence,
            lease_until.as_millisecond(),
            call.claimed.call.sid.as_str()
        ])?;
    }
    Ok(lost)
}

/// This process lives. What it holds needs no renewing: it is held until the process is gone.
fn heartbeat(db: &Connection, node: &NodeId, now: Timestamp) -> rusqlite::Result<Standing> {
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
    Ok(Standing::ALONE)
}

fn held_by(db: &Connection, node: &NodeId) -> rusqlite::Result<Vec<CallSid>> {
    db.prepare_cached("SELECT call_sid FROM call_queue WHERE state > 0 AND node = ?")?
        .query_map([node.as_str()], |row| parsed(&row.get::<_, String>(0)?))?
        .collect()
}

/// The oldest calls first: callSids sort by time. One whose callback is still owed is kept until that is settled.
fn forget(db: &Connection, before: Timestamp, most: u32) -> rusqlite::Result<u64> {
    let old: Vec<String> = db
        .prepare_cached(
            "SELECT call_sid FROM (SELECT call_sid, ended_at FROM calls ORDER BY call_sid LIMIT ?1) AS oldest \
             LEFT JOIN callbacks USING (call_sid) WHERE ended_at < ?2 AND coalesce(callbacks.state, 2) >= 2",
        )?
        .query_map(params![most, before.as_millisecond()], |row| row.get(0))?
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
