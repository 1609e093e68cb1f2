//! Taking calls from the queue in PostgreSQL: those that are due, those that shall end without being dialled, and those of nodes that are gone.

use jiff::Timestamp;

use super::query_in;
use super::queue::lease_millis;
use super::session::{Session, Transaction};
use crate::domain::claim::{Claim, ClaimedCall, NodeId, Overdue};
use crate::store::StoreError;
use crate::store::columns::Columns;
use crate::store::statements::postgres;
use crate::store::statements::queue::{self, CLAIMED, CLAIMED_COLUMNS, ORPHANED};

/// One node claims at a time: limits are then exact, and two nodes never wait for each other's rows. A claim takes milliseconds.
const CLAIM_LOCK: i64 = 0x0063_6c61_7269_6f6e;
const LOCK_CLAIMS: &str = postgres!("SELECT pg_advisory_xact_lock($1)");

/// Of each application as many as it has room for, in their order; one for each callee, and none for one that is being called or was called
/// too often.
const DUE_CALLS: &str = postgres!(
    "WITH found AS (\
       SELECT queue.call_sid, queue.callee, \
         row_number() OVER (PARTITION BY queue.callee ORDER BY queue.due_at, queue.call_sid) AS turn \
       FROM unnest($1::text[], $2::bigint[]) AS share (app_id, room) CROSS JOIN LATERAL (\
         SELECT call_sid, callee, due_at FROM call_queue \
         WHERE app_id = share.app_id AND state = {queued} AND due_at <= $3 AND expires_at > $3 AND NOT cancelled \
           AND NOT EXISTS (SELECT 1 FROM call_queue AS busy WHERE busy.callee = call_queue.callee AND busy.state > {queued}) \
           AND ($4::bigint = 0 OR (SELECT count(*) FROM callee_calls WHERE callee = call_queue.callee AND claimed_at > $3 - {minute}) < $4) \
           AND ($5::bigint = 0 OR (SELECT count(*) FROM callee_calls WHERE callee = call_queue.callee AND claimed_at > $3 - {hour}) < $5) \
           AND ($6::bigint = 0 OR (SELECT count(*) FROM callee_calls WHERE callee = call_queue.callee AND claimed_at > $3 - {day}) < $6) \
         ORDER BY due_at, call_sid LIMIT share.room) AS queue), \
     counted AS (INSERT INTO callee_calls (callee, claimed_at, call_sid) \
       SELECT callee, $3, call_sid FROM found WHERE turn = 1 ON CONFLICT DO NOTHING), \
     forgotten AS (DELETE FROM callee_calls WHERE claimed_at < $3 - {day}), \
     queue AS (UPDATE call_queue SET state = {claimed}, node = $7, fence = fence + 1, lease_until = {now} + $8 \
       FROM found WHERE call_queue.call_sid = found.call_sid AND found.turn = 1 RETURNING call_queue.*) \
     SELECT ",
    CLAIMED,
    " FROM queue JOIN calls USING (call_sid) ORDER BY queue.due_at, queue.call_sid"
);
const OVERDUE_CALLS: &str = postgres!(
    "WITH overdue AS (\
       SELECT call_sid, FALSE AS cancelled FROM (SELECT * FROM call_queue ORDER BY call_sid LIMIT {oldest}) AS oldest \
         WHERE state = {queued} AND expires_at <= $1 \
       UNION SELECT call_sid, TRUE FROM call_queue WHERE cancelled AND state = {queued} \
       UNION SELECT call_sid, TRUE FROM accounts JOIN applications ON applications.account_sid = accounts.sid \
         JOIN call_queue ON call_queue.app_id = applications.id \
         WHERE accounts.state <> '{active}' AND call_queue.state = {queued}), \
     one AS (SELECT call_sid, bool_and(cancelled) AS cancelled FROM overdue GROUP BY call_sid LIMIT $2), \
     queue AS (UPDATE call_queue SET state = {claimed}, node = $3, fence = fence + 1, lease_until = {now} + $4 \
       FROM one WHERE call_queue.call_sid = one.call_sid RETURNING call_queue.*, one.cancelled AS wanted) \
     SELECT ",
    CLAIMED,
    ", queue.wanted FROM queue JOIN calls USING (call_sid)"
);
/// Calls of nodes whose leases have run out, and those that nobody works at. A node that has not itself been steady for a lease takes none of
/// the former: the others may have missed the database as it did.
pub(super) const ORPHANED_CALLS: &str = postgres!(
    "WITH orphaned AS (SELECT call_sid, node FROM call_queue WHERE state > {queued} AND (node = $2 AND call_sid = ANY($4) \
         OR node <> $2 AND lease_until <= {now} \
           AND EXISTS (SELECT 1 FROM nodes AS own WHERE own.node = $2 AND own.steady_since <= {now} - $3)) \
       LIMIT $1 FOR UPDATE SKIP LOCKED), \
     queue AS (UPDATE call_queue SET node = $2, fence = fence + 1, lease_until = {now} + $3, \
         seen_at = coalesce(seen_at, (SELECT heartbeat_at FROM nodes WHERE nodes.node = orphaned.node)) \
       FROM orphaned WHERE call_queue.call_sid = orphaned.call_sid RETURNING call_queue.*) \
     SELECT ",
    CLAIMED,
    ", ",
    ORPHANED,
    ", coalesce(queue.seen_at, queue.answered_at, queue.rang_at, queue.dialled_at, calls.accepted_at) \
     FROM queue JOIN calls USING (call_sid)"
);

pub(super) async fn claim(
    client: &mut Session,
    claim: &Claim,
) -> Result<Vec<ClaimedCall>, StoreError> {
    let transaction = client.transaction().await?;
    lock_claims(&transaction).await?;
    let apps: Vec<_> = claim.shares.iter().map(|share| share.0.as_str()).collect();
    let rooms: Vec<_> = claim
        .shares
        .iter()
        .map(|share| i64::from(share.1))
        .collect();
    let caps = claim.caps;
    let rows = query_in(
        &transaction,
        DUE_CALLS,
        &[
            &apps,
            &rooms,
            &claim.now.as_millisecond(),
            &i64::from(caps.per_minute),
            &i64::from(caps.per_hour),
            &i64::from(caps.per_day),
            &claim.node.as_str(),
            &lease_millis(claim.now, claim.lease_until),
        ],
    )
    .await?;
    let calls = rows
        .iter()
        .map(|row| queue::claimed(row, &claim.node))
        .collect::<Result<_, _>>()?;
    transaction.commit().await?;
    Ok(calls)
}

pub(super) async fn claim_overdue(
    client: &mut Session,
    node: &NodeId,
    now: Timestamp,
    lease: i64,
    limit: u32,
) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError> {
    let transaction = client.transaction().await?;
    lock_claims(&transaction).await?;
    let rows = query_in(
        &transaction,
        OVERDUE_CALLS,
        &[
            &now.as_millisecond(),
            &i64::from(limit),
            &node.as_str(),
            &lease,
        ],
    )
    .await?;
    let calls = rows
        .iter()
        .map(|row| {
            let why = if row.flag(CLAIMED_COLUMNS)? {
                Overdue::Cancelled
            } else {
                Overdue::Expired
            };
            Ok((queue::claimed(row, node)?, why))
        })
        .collect::<Result<_, StoreError>>()?;
    transaction.commit().await?;
    Ok(calls)
}

async fn lock_claims(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    query_in(transaction, LOCK_CLAIMS, &[&CLAIM_LOCK]).await?;
    Ok(())
}
