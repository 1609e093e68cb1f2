//! Taking over calls in PostgreSQL: those that shall end without being dialled, and those of nodes that are gone.

use super::session::Session;
use super::{PostgresStore, column, query_in};
use crate::domain::call::CallSid;
use crate::domain::claim::{ClaimedCall, DeadRoute, NodeId, OrphanedCall, Overdue};
use crate::store::StoreError;
use crate::store::binding::millis;
use crate::store::columns::Columns;
use crate::store::statements::postgres;
use crate::store::statements::queue::{self, CLAIMED, CLAIMED_COLUMNS, ORPHANED};

const OVERDUE_CALLS: &str = postgres!(
    "WITH expired AS (SELECT call_sid FROM call_queue WHERE node IS NULL AND expires_at <= {now} \
         ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED), \
     unwanted AS (SELECT call_sid, resolved FROM call_queue WHERE cancelled AND node IS NULL LIMIT $1 FOR UPDATE SKIP LOCKED), \
     suspended AS (SELECT queue.call_sid FROM accounts JOIN applications ON applications.account_sid = accounts.sid \
         CROSS JOIN LATERAL (SELECT call_sid FROM call_queue WHERE app_id = applications.id AND node IS NULL AND parked = {in_lane} \
           LIMIT $1 FOR UPDATE SKIP LOCKED) AS queue \
         WHERE accounts.state <> '{active}' LIMIT $1), \
     held_back AS (SELECT call_sid FROM call_queue WHERE pass_at <= {now} AND node IS NULL LIMIT $1 FOR UPDATE SKIP LOCKED), \
     overdue AS (SELECT call_sid, min(why) AS why FROM (SELECT call_sid, 0 AS why FROM expired \
         UNION ALL SELECT call_sid, CASE WHEN resolved THEN 2 ELSE 1 END FROM unwanted UNION ALL SELECT call_sid, 1 FROM suspended \
         UNION ALL SELECT call_sid, 3 FROM held_back) AS found GROUP BY call_sid), \
     queue AS (UPDATE call_queue SET state = {claimed}, node = $2, fence = fence + 1, parked = {set_aside}, held_since = NULL, pass_at = NULL \
       FROM overdue WHERE call_queue.call_sid = overdue.call_sid RETURNING call_queue.*, overdue.why) \
     SELECT ",
    CLAIMED,
    ", queue.why FROM queue JOIN calls USING (call_sid)"
);
const STRANDED_CALLS: &str = postgres!(
    "WITH stranded AS MATERIALIZED (SELECT found.call_sid FROM unnest($3::text[], $4::bigint[]) AS dead (route, time) \
       CROSS JOIN LATERAL (SELECT call_sid FROM call_queue WHERE route = dead.route AND due_at + patience <= {now} AND patience <= dead.time \
         AND patience IS NOT NULL AND pass_at IS NULL AND node IS NULL AND parked = {in_lane} LIMIT $1 FOR UPDATE SKIP LOCKED) AS found), \
     queue AS (UPDATE call_queue SET state = {claimed}, node = $2, fence = fence + 1, parked = {set_aside}, held_since = NULL, pass_at = NULL \
       FROM stranded WHERE call_queue.call_sid = stranded.call_sid RETURNING call_queue.*) \
     SELECT ",
    CLAIMED,
    " FROM queue JOIN calls USING (call_sid)"
);
/// Calls of nodes whose leases have run out, and those that nobody works at. A node that has not itself been steady for a lease takes none of
/// the former: the others may have missed the database as it did. A node that is just renewing its lease is waited for.
const LOST_NODES: &str = postgres!(SEEN_LOST, " ORDER BY node FOR UPDATE");
/// The same without waiting: most of the time there are none.
const ANY_LOST_NODES: &str = postgres!(SEEN_LOST);
const SEEN_LOST: &str = "SELECT node FROM nodes WHERE node <> $1 AND lease_until <= {now} \
  AND EXISTS (SELECT 1 FROM nodes AS own WHERE own.node = $1 AND own.steady_since <= {now} - $2) \
  AND EXISTS (SELECT 1 FROM call_queue WHERE call_queue.node = nodes.node)";
const ORPHANED_CALLS: &str = postgres!(
    "WITH orphaned AS (SELECT call_sid, node FROM call_queue WHERE node = $2 AND call_sid = ANY($3) OR node = ANY($4) \
       LIMIT $1 FOR UPDATE SKIP LOCKED), \
     queue AS (UPDATE call_queue SET node = $2, fence = fence + 1, \
         seen_at = coalesce(seen_at, (SELECT heartbeat_at FROM nodes WHERE nodes.node = orphaned.node)) \
       FROM orphaned WHERE call_queue.call_sid = orphaned.call_sid RETURNING call_queue.*) \
     SELECT ",
    CLAIMED,
    ", ",
    ORPHANED,
    ", coalesce(queue.seen_at, queue.answered_at, queue.rang_at, queue.dialled_at, calls.accepted_at) \
     FROM queue JOIN calls USING (call_sid)"
);

pub(super) async fn claim_overdue(
    store: &PostgresStore,
    node: &NodeId,
    limit: u32,
) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError> {
    let values: super::Values<'_> = &[&i64::from(limit), &node.as_str()];
    let rows = store.query(OVERDUE_CALLS, values).await?;
    let overdue = rows.iter().map(|row| {
        let why = match row.number::<i32>(CLAIMED_COLUMNS)? {
            0 => Overdue::Expired,
            1 => Overdue::Cancelled,
            2 => Overdue::Resolved,
            _ => Overdue::HeldBack,
        };
        Ok((queue::claimed(row, node)?, why))
    });
    overdue.collect()
}

pub(super) async fn claim_stranded(
    store: &PostgresStore,
    node: &NodeId,
    routes: &[DeadRoute],
    limit: u32,
) -> Result<Vec<ClaimedCall>, StoreError> {
    let (names, times) = (
        column(routes, |dead| dead.route.as_str()),
        column(routes, |dead| millis(dead.time)),
    );
    let values: super::Values<'_> = &[&i64::from(limit), &node.as_str(), &names, &times];
    let rows = store.query(STRANDED_CALLS, values).await?;
    rows.iter().map(|row| queue::claimed(row, node)).collect()
}

pub(super) async fn take_orphaned(
    client: &mut Session,
    node: &NodeId,
    lease: i64,
    abandoned: &[CallSid],
    limit: u32,
) -> Result<Vec<OrphanedCall>, StoreError> {
    let values: super::Values<'_> = &[&node.as_str(), &lease];
    if abandoned.is_empty() && client.query(ANY_LOST_NODES, values).await?.is_empty() {
        return Ok(Vec::new());
    }
    let transaction = client.transaction().await?;
    let lost = query_in(&transaction, LOST_NODES, values).await?;
    let lost = lost.iter().map(|row| row.string(0));
    let lost = lost.collect::<Result<Vec<_>, _>>()?;
    if lost.is_empty() && abandoned.is_empty() {
        return Ok(Vec::new());
    }
    let values: super::Values<'_> = &[
        &i64::from(limit),
        &node.as_str(),
        &column(abandoned, CallSid::as_str),
        &lost,
    ];
    let rows = query_in(&transaction, ORPHANED_CALLS, values).await?;
    let orphans = rows.iter().map(|row| queue::orphaned(row, node));
    let orphans = orphans.collect::<Result<_, _>>()?;
    transaction.commit().await?;
    Ok(orphans)
}
