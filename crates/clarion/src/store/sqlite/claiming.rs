//! Taking calls from the queue in SQLite: those that are due, those that shall end without being dialled, and those of processes that are gone.

use std::collections::HashSet;

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::queue::{conversion, optional_time, parsed, time};
use crate::domain::account::AppId;
use crate::domain::call::{CallSid, NewCall};
use crate::domain::call_state::CallState;
use crate::domain::callback::RespUrl;
use crate::domain::claim::{Claim, ClaimedCall, Lease, NodeId, OrphanedCall, Overdue, QueuedApp};
use crate::domain::phone_number::PhoneNumber;

/// What a claimed call is read from; the fence is that of the lease which is given.
const CLAIMED: &str = "calls.call_sid, calls.account_sid, calls.app_id, calls.accepted_at, queue.expires_at, calls.called, calls.number, \
  calls.extension, calls.caller, calls.prompt, calls.max_talk, calls.resp_url, calls.user_data, queue.fence, queue.attempts";

/// Calls at the head of the queue that are looked at for expiry: callSids sort by time, so the oldest are there.
const OLDEST: u32 = 1000;

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
pub(super) fn queued_apps(db: &Connection) -> rusqlite::Result<Vec<QueuedApp>> {
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

pub(super) fn claim(db: &Connection, claim: &Claim) -> rusqlite::Result<Vec<ClaimedCall>> {
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

pub(super) fn claim_overdue(
    db: &Connection,
    node: &NodeId,
    now: Timestamp,
    lease_until: Timestamp,
    limit: u32,
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
            .query_map(params![now.as_millisecond(), limit], |row| {
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

/// Calls of processes that are gone, and those that nobody works at, now ours.
pub(super) fn take_orphaned(
    db: &Connection,
    node: &NodeId,
    lease_until: Timestamp,
    abandoned: &[CallSid],
    limit: u32,
) -> rusqlite::Result<Vec<OrphanedCall>> {
    let abandoned: Vec<_> = abandoned.iter().map(CallSid::as_str).collect();
    let abandoned = serde_json::json!(abandoned).to_string();
    let lost: Vec<OrphanedCall> = db
        .prepare_cached(&format!(
            "SELECT {CLAIMED}, queue.state, queue.trunk, queue.dialled_at, queue.rang_at, queue.answered_at, queue.dialog, \
               coalesce(queue.seen_at, nodes.heartbeat_at, queue.answered_at, queue.rang_at, queue.dialled_at, calls.accepted_at) \
             FROM call_queue AS queue JOIN calls USING (call_sid) LEFT JOIN nodes ON nodes.node = queue.node \
             WHERE queue.state > 0 AND (queue.node <> ?1 OR call_sid IN (SELECT value FROM json_each(?2))) LIMIT ?3"
        ))?
        .query_map(params![node.as_str(), abandoned, limit], |row| {
            Ok(OrphanedCall {
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
            "UPDATE call_queue SET node = ?, fence = ?, lease_until = ?, seen_at = ? WHERE call_sid = ?",
        )?
        .execute(params![
            node.as_str(),
            call.claimed.lease.fence,
            lease_until.as_millisecond(),
            call.last_seen.as_millisecond(),
            call.claimed.call.sid.as_str()
        ])?;
    }
    Ok(lost)
}
