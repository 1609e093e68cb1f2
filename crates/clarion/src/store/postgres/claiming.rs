//! Taking calls from the queue in PostgreSQL: those that are due, those that shall end without being dialled, and those of nodes that are gone.

use deadpool_postgres::{Client, Transaction};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::super::StoreError;
use super::query_in;
use super::queue::{NOW, lease_millis, parsed, time};
use crate::domain::call::NewCall;
use crate::domain::call_state::CallState;
use crate::domain::callback::RespUrl;
use crate::domain::claim::{Claim, ClaimedCall, Lease, NodeId, OrphanedCall, Overdue};
use crate::domain::phone_number::PhoneNumber;

/// What a claimed call is read from; the fence is that of the lease which was given.
const CLAIMED: &str = "calls.call_sid, calls.account_sid, calls.app_id, calls.accepted_at, queue.expires_at, calls.called, calls.number, \
  calls.extension, calls.caller, calls.prompt, calls.max_talk, calls.resp_url, calls.user_data, queue.fence, queue.attempts";

/// One node claims at a time: limits are then exact, and two nodes never wait for each other's rows. A claim takes milliseconds.
const CLAIM_LOCK: i64 = 0x0063_6c61_7269_6f6e;

/// Calls at the head of the queue that are looked at for expiry: callSids sort by time, so the oldest are there.
const OLDEST: i64 = 1000;

pub(super) async fn claim(
    client: &mut Client,
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
    let [minute, hour, day] = claim.caps.windows().map(|(limit, _)| i64::from(limit));
    let rows = query_in(
        &transaction,
        &due_calls(),
        &[
            &apps,
            &rooms,
            &claim.now.as_millisecond(),
            &minute,
            &hour,
            &day,
            &claim.node.as_str(),
            &lease_millis(claim.now, claim.lease_until),
        ],
    )
    .await?;
    let calls = rows
        .iter()
        .map(|row| claimed(row, &claim.node))
        .collect::<Result<_, _>>()?;
    transaction.commit().await?;
    Ok(calls)
}

/// Of each application as many as it has room for, in their order; one for each callee, and none for one that is being called or was called
/// too often.
fn due_calls() -> String {
    format!(
        "WITH found AS (\
               SELECT queue.call_sid, queue.callee, \
                 row_number() OVER (PARTITION BY queue.callee ORDER BY queue.due_at, queue.call_sid) AS turn \
               FROM unnest($1::text[], $2::bigint[]) AS share (app_id, room) CROSS JOIN LATERAL (\
                 SELECT call_sid, callee, due_at FROM call_queue \
                 WHERE app_id = share.app_id AND state = 0 AND due_at <= $3 AND expires_at > $3 AND NOT cancelled \
                   AND NOT EXISTS (SELECT 1 FROM call_queue AS busy WHERE busy.callee = call_queue.callee AND busy.state > 0) \
                   AND ($4::bigint = 0 OR (SELECT count(*) FROM callee_calls WHERE callee = call_queue.callee AND claimed_at > $3 - 60000) < $4) \
                   AND ($5::bigint = 0 OR (SELECT count(*) FROM callee_calls WHERE callee = call_queue.callee AND claimed_at > $3 - 3600000) < $5) \
                   AND ($6::bigint = 0 OR (SELECT count(*) FROM callee_calls WHERE callee = call_queue.callee AND claimed_at > $3 - 86400000) < $6) \
                 ORDER BY due_at, call_sid LIMIT share.room) AS queue), \
             counted AS (INSERT INTO callee_calls (callee, claimed_at, call_sid) \
               SELECT callee, $3, call_sid FROM found WHERE turn = 1 ON CONFLICT DO NOTHING), \
             forgotten AS (DELETE FROM callee_calls WHERE claimed_at < $3 - 86400000), \
             queue AS (UPDATE call_queue SET state = 1, node = $7, fence = fence + 1, lease_until = {NOW} + $8 \
               FROM found WHERE call_queue.call_sid = found.call_sid AND found.turn = 1 RETURNING call_queue.*) \
             SELECT {CLAIMED} FROM queue JOIN calls USING (call_sid) ORDER BY queue.due_at, queue.call_sid"
    )
}

pub(super) async fn claim_overdue(
    client: &mut Client,
    node: &NodeId,
    now: Timestamp,
    lease: i64,
    limit: u32,
) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError> {
    let transaction = client.transaction().await?;
    lock_claims(&transaction).await?;
    let rows = query_in(
        &transaction,
        &overdue_calls(),
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
            let why = if row.get(15) {
                Overdue::Cancelled
            } else {
                Overdue::Expired
            };
            Ok((claimed(row, node)?, why))
        })
        .collect::<Result<_, StoreError>>()?;
    transaction.commit().await?;
    Ok(calls)
}

fn overdue_calls() -> String {
    format!(
        "WITH overdue AS (\
               SELECT call_sid, FALSE AS cancelled FROM (SELECT * FROM call_queue ORDER BY call_sid LIMIT {OLDEST}) AS oldest \
                 WHERE state = 0 AND expires_at <= $1 \
               UNION SELECT call_sid, TRUE FROM call_queue WHERE cancelled AND state = 0 \
               UNION SELECT call_sid, TRUE FROM accounts JOIN applications ON applications.account_sid = accounts.sid \
                 JOIN call_queue ON call_queue.app_id = applications.id \
                 WHERE accounts.state <> 'active' AND call_queue.state = 0), \
             one AS (SELECT call_sid, bool_and(cancelled) AS cancelled FROM overdue GROUP BY call_sid LIMIT $2), \
             queue AS (UPDATE call_queue SET state = 1, node = $3, fence = fence + 1, lease_until = {NOW} + $4 \
               FROM one WHERE call_queue.call_sid = one.call_sid RETURNING call_queue.*, one.cancelled AS wanted) \
             SELECT {CLAIMED}, queue.wanted FROM queue JOIN calls USING (call_sid)"
    )
}

/// Calls of nodes whose leases have run out, and those that nobody works at. A node that has not itself been steady for a lease takes none of
/// the former: the others may have missed the database as it did.
pub(super) fn orphaned_calls() -> String {
    format!(
        "WITH lost AS (SELECT call_sid, node FROM call_queue WHERE state > 0 AND (node = $2 AND call_sid = ANY($4) \
                 OR node <> $2 AND lease_until <= {NOW} \
                   AND EXISTS (SELECT 1 FROM nodes AS own WHERE own.node = $2 AND own.steady_since <= {NOW} - $3)) \
               LIMIT $1 FOR UPDATE SKIP LOCKED), \
             queue AS (UPDATE call_queue SET node = $2, fence = fence + 1, lease_until = {NOW} + $3, \
                 seen_at = coalesce(seen_at, (SELECT heartbeat_at FROM nodes WHERE nodes.node = lost.node)) \
               FROM lost WHERE call_queue.call_sid = lost.call_sid RETURNING call_queue.*) \
             SELECT {CLAIMED}, queue.state, queue.trunk, queue.dialled_at, queue.rang_at, queue.answered_at, queue.dialog, \
               coalesce(queue.seen_at, queue.answered_at, queue.rang_at, queue.dialled_at, calls.accepted_at) \
             FROM queue JOIN calls USING (call_sid)"
    )
}

async fn lock_claims(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    query_in(
        transaction,
        "SELECT pg_advisory_xact_lock($1)",
        &[&CLAIM_LOCK],
    )
    .await?;
    Ok(())
}

/// Reads the columns of `CLAIMED`.
fn claimed(row: &Row, node: &NodeId) -> Result<ClaimedCall, StoreError> {
    let call = NewCall {
        sid: parsed(row.get(0))?,
        account: parsed(row.get(1))?,
        app: parsed(row.get(2))?,
        accepted_at: time(row.get(3))?,
        expires_at: time(row.get(4))?,
        called: row.get(5),
        number: PhoneNumber::from_stored(row.get(6), row.get(7)),
        caller: row.get(8),
        prompt: serde_json::from_str(row.get(9)).map_err(StoreError::failed)?,
        max_talk: row
            .get::<_, Option<i32>>(10)
            .and_then(|seconds| u32::try_from(seconds).ok()),
        resp_url: row.get::<_, Option<String>>(11).map(RespUrl::from_stored),
        user_data: row.get(12),
    };
    Ok(ClaimedCall {
        call,
        lease: Lease {
            node: node.clone(),
            fence: row.get(13),
        },
        attempts: u32::try_from(row.get::<_, i32>(14)).unwrap_or(0),
    })
}

pub(super) fn lost(row: &Row, node: &NodeId) -> Result<OrphanedCall, StoreError> {
    let at = |column: usize| row.get::<_, Option<i64>>(column).map(time).transpose();
    Ok(OrphanedCall {
        claimed: claimed(row, node)?,
        state: CallState::from_number(row.get(15)).unwrap_or(CallState::Dialling),
        trunk: row.get(16),
        dialled_at: at(17)?,
        rang_at: at(18)?,
        answered_at: at(19)?,
        dialog: row.get(20),
        last_seen: time(row.get(21))?,
    })
}
