//! Taking calls from the queue in SQLite: those that are due, those that shall end without being dialled, and those of processes that are gone.

use std::collections::HashSet;

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::query::Query;
use crate::domain::account::AppId;
use crate::domain::call::CallSid;
use crate::domain::claim::{Claim, ClaimedCall, NodeId, OrphanedCall, Overdue};
use crate::store::StoreError;
use crate::store::columns::Columns;
use crate::store::statements::queue::{self, CLAIMED, CLAIMED_COLUMNS, ORPHANED};
use crate::store::statements::sqlite;

const DUE_CALLS: &str = sqlite!(
    "SELECT ",
    CLAIMED,
    ", queue.callee FROM call_queue AS queue JOIN calls USING (call_sid) \
     WHERE queue.app_id = $1 AND queue.state = {queued} AND queue.due_at <= $2 AND queue.expires_at > $2 AND queue.cancelled = 0 \
       AND NOT EXISTS (SELECT 1 FROM call_queue AS busy WHERE busy.callee = queue.callee AND busy.state > {queued}) \
       AND ($3 = 0 OR (SELECT count(*) FROM callee_calls WHERE callee = queue.callee AND claimed_at > $2 - {minute}) < $3) \
       AND ($4 = 0 OR (SELECT count(*) FROM callee_calls WHERE callee = queue.callee AND claimed_at > $2 - {hour}) < $4) \
       AND ($5 = 0 OR (SELECT count(*) FROM callee_calls WHERE callee = queue.callee AND claimed_at > $2 - {day}) < $5) \
     ORDER BY queue.due_at, queue.call_sid"
);
const TAKE: &str = sqlite!(
    "UPDATE call_queue SET state = {claimed}, node = $1, fence = $2, lease_until = $3 WHERE call_sid = $4"
);
const COUNT: &str = sqlite!(
    "INSERT INTO callee_calls (callee, claimed_at, call_sid) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
);
const FORGET_COUNTED: &str = sqlite!("DELETE FROM callee_calls WHERE claimed_at < $1 - {day}");

/// Why a call is overdue, and which ones are. All of them are asked with the same values.
const OVERDUE: [(Overdue, &str); 3] = [
    (
        Overdue::Expired,
        sqlite!(
            "SELECT ",
            CLAIMED,
            " FROM (SELECT * FROM call_queue ORDER BY call_sid LIMIT {oldest}) AS queue JOIN calls USING (call_sid) \
             WHERE queue.state = {queued} AND queue.expires_at <= $1 LIMIT $2"
        ),
    ),
    (
        Overdue::Cancelled,
        sqlite!(
            "SELECT ",
            CLAIMED,
            " FROM call_queue AS queue JOIN calls USING (call_sid) \
             WHERE queue.cancelled = 1 AND queue.state = {queued} AND $1 > 0 LIMIT $2"
        ),
    ),
    (
        Overdue::Cancelled,
        sqlite!(
            "SELECT ",
            CLAIMED,
            " FROM accounts JOIN applications ON applications.account_sid = accounts.sid \
               JOIN call_queue AS queue ON queue.app_id = applications.id JOIN calls USING (call_sid) \
             WHERE accounts.state <> '{active}' AND queue.state = {queued} AND $1 > 0 LIMIT $2"
        ),
    ),
];
const ORPHANED_CALLS: &str = sqlite!(
    "SELECT ",
    CLAIMED,
    ", ",
    ORPHANED,
    ", coalesce(queue.seen_at, nodes.heartbeat_at, queue.answered_at, queue.rang_at, queue.dialled_at, calls.accepted_at) \
     FROM call_queue AS queue JOIN calls USING (call_sid) LEFT JOIN nodes ON nodes.node = queue.node \
     WHERE queue.state > {queued} AND (queue.node <> $1 OR call_sid IN (SELECT value FROM json_each($2))) LIMIT $3"
);
const TAKE_OVER: &str = sqlite!(
    "UPDATE call_queue SET node = $1, fence = $2, lease_until = $3, seen_at = $4 WHERE call_sid = $5"
);

/// The row is read before it is changed: the lease has the next fence.
fn claimed(row: &Row<'_>, node: &NodeId) -> Result<ClaimedCall, StoreError> {
    let mut claimed = queue::claimed(row, node)?;
    claimed.lease.fence += 1;
    Ok(claimed)
}

pub(super) fn claim(db: &Connection, claim: &Claim) -> Result<Vec<ClaimedCall>, StoreError> {
    let mut taken = Vec::new();
    for (app, share) in &claim.shares {
        taken.extend(claim_of(db, claim, app, *share)?);
    }
    if !taken.is_empty() {
        db.run(FORGET_COUNTED, [claim.now.as_millisecond()])?;
    }
    Ok(taken)
}

fn claim_of(
    db: &Connection,
    claim: &Claim,
    app: &AppId,
    share: u32,
) -> Result<Vec<ClaimedCall>, StoreError> {
    let now = claim.now.as_millisecond();
    let caps = claim.caps;
    let mut statement = db.prepare_cached(DUE_CALLS)?;
    let mut rows = statement.query(params![
        app.as_str(),
        now,
        caps.per_minute,
        caps.per_hour,
        caps.per_day
    ])?;
    let mut callees = HashSet::new();
    let mut found = Vec::new();
    while found.len() < share as usize {
        let Some(row) = rows.next()? else { break };
        let callee = row.string(CLAIMED_COLUMNS)?;
        // Two calls to one callee at once are never made; the second waits for its turn.
        if callees.insert(callee.clone()) {
            found.push((claimed(row, &claim.node)?, callee));
        }
    }
    drop(rows);
    let mut calls = Vec::with_capacity(found.len());
    for (call, callee) in found {
        take(db, &call, claim.lease_until)?;
        db.run(COUNT, params![callee, now, call.call.sid.as_str()])?;
        calls.push(call);
    }
    Ok(calls)
}

fn take(db: &Connection, call: &ClaimedCall, lease_until: Timestamp) -> Result<(), StoreError> {
    let values = params![
        call.lease.node.as_str(),
        call.lease.fence,
        lease_until.as_millisecond(),
        call.call.sid.as_str()
    ];
    db.run(TAKE, values)?;
    Ok(())
}

pub(super) fn claim_overdue(
    db: &Connection,
    node: &NodeId,
    now: Timestamp,
    lease_until: Timestamp,
    limit: u32,
) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError> {
    let mut found = Vec::new();
    for (why, overdue) in OVERDUE {
        let values = params![now.as_millisecond(), limit];
        for call in db.rows(overdue, values, |row| claimed(row, node))? {
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
) -> Result<Vec<OrphanedCall>, StoreError> {
    let abandoned: Vec<_> = abandoned.iter().map(CallSid::as_str).collect();
    let abandoned = serde_json::json!(abandoned).to_string();
    let values = params![node.as_str(), abandoned, limit];
    let orphaned = db.rows(ORPHANED_CALLS, values, |row| {
        let mut orphaned = queue::orphaned(row, node)?;
        orphaned.claimed.lease.fence += 1;
        Ok(orphaned)
    })?;
    for call in &orphaned {
        let values = params![
            node.as_str(),
            call.claimed.lease.fence,
            lease_until.as_millisecond(),
            call.last_seen.as_millisecond(),
            call.claimed.call.sid.as_str()
        ];
        db.run(TAKE_OVER, values)?;
    }
    Ok(orphaned)
}
