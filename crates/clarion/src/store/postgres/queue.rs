//! The queue in PostgreSQL, shared by any number of nodes. Leases run by the database's clock, so that nodes need not agree on the time.

use async_trait::async_trait;
use jiff::Timestamp;
use tokio_postgres::{GenericClient, Row};

use super::super::{CallQueue, StoreError};
use super::PostgresStore;
use crate::domain::bill::rating::Prefix;
use crate::domain::call::{CallSid, NewCall};
use crate::domain::call_state::CallState;
use crate::domain::callback::RespUrl;
use crate::domain::claim::{
    Claim, ClaimedCall, EndedCall, Lease, LostCall, NodeId, Overdue, QueuedApp, Standing, Step,
};
use crate::domain::phone_number::PhoneNumber;

/// What a claimed call is read from; the fence is that of the lease which was given.
const CLAIMED: &str = "calls.call_sid, calls.account_sid, calls.app_id, calls.accepted_at, queue.expires_at, calls.called, calls.number, \
  calls.extension, calls.caller, calls.prompt, calls.max_talk, calls.resp_url, calls.user_data, queue.fence, queue.attempts";
/// Milliseconds by the database's clock.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
/// One node claims at a time: limits are then exact, and two nodes never wait for each other's rows. A claim takes milliseconds.
const CLAIM_LOCK: i64 = 0x0063_6c61_7269_6f6e;
/// Calls at the head of the queue that are looked at for expiry: callSids sort by time, so the oldest are there.
const OLDEST: i64 = 1000;
/// No INVITE leaves with less than so many milliseconds left on the lease: whoever takes the call over must find that it was dialled.
const MARGIN: i64 = 500;
/// A node whose heartbeat is older than this does not live.
const SILENT: i64 = 30_000;

#[async_trait]
impl CallQueue for PostgresStore {
    async fn queued_apps(&self) -> Result<Vec<QueuedApp>, StoreError> {
        let rows = self
            .client()
            .await?
            .query(
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
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        lock_claims(&*transaction).await?;
        let apps: Vec<_> = claim.shares.iter().map(|share| share.0.as_str()).collect();
        let rooms: Vec<_> = claim
            .shares
            .iter()
            .map(|share| i64::from(share.1))
            .collect();
        let now = claim.now.as_millisecond();
        let [minute, hour, day] = claim.caps.windows().map(|(most, _)| i64::from(most));
        let rows = transaction
            .query(
                &format!(
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
                ),
                &[
                    &apps,
                    &rooms,
                    &now,
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

    async fn claim_overdue(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
        most: u32,
    ) -> Result<Vec<(ClaimedCall, Overdue)>, StoreError> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await?;
        lock_claims(&*transaction).await?;
        let rows = transaction
            .query(
                &format!(
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
                ),
                &[
                    &now.as_millisecond(),
                    &i64::from(most),
                    &node.as_str(),
                    &lease_millis(now, lease_until),
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

    async fn advance_call(
        &self,
        sid: &CallSid,
        lease: &Lease,
        step: Step,
    ) -> Result<bool, StoreError> {
        let (column, at, trunk) = match &step {
            Step::Dialling { trunk, at } => ("dialled_at", at, Some(trunk.as_str())),
            Step::Sent { at, .. } => ("dialled_at", at, None),
            Step::Ringing { at, .. } => ("rang_at", at, None),
            Step::Answered { at, .. } => ("answered_at", at, None),
        };
        // It has left, or another trunk is tried before anything has rung.
        let from = states(|state| {
            state.may_become(step.state())
                || (state == CallState::Dialling && step.state() == CallState::Dialling)
        });
        let changed = self
            .client()
            .await?
            .execute(
                &format!(
                    "UPDATE call_queue SET state = $1, {column} = coalesce({column}, $2), trunk = coalesce($3, trunk), \
                       dialog = coalesce($4, dialog), attempts = attempts + $5 \
                     WHERE call_sid = $6 AND node = $7 AND fence = $8 AND state = ANY($9) \
                       AND (state <> $10 OR lease_until > {NOW} + {MARGIN})"
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
                    &CallState::Claimed.number(),
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
        let changed = self
            .client()
            .await?
            .execute(
                "WITH queued AS (UPDATE call_queue SET state = 0, due_at = $1, node = NULL, lease_until = NULL, trunk = NULL, \
                     dialled_at = NULL, dialog = NULL \
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
        end(&self.client().await?, &ended).await
    }

    async fn take_lost_calls(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
        abandoned: &[CallSid],
        most: u32,
    ) -> Result<Vec<LostCall>, StoreError> {
        let abandoned: Vec<_> = abandoned.iter().map(CallSid::as_str).collect();
        let rows = self
            .client()
            .await?
            .query(
                &format!(
                    "WITH lost AS (SELECT call_sid, node FROM call_queue WHERE state > 0 AND (node = $2 AND call_sid = ANY($4) \
                         OR node <> $2 AND lease_until <= {NOW} \
                           AND EXISTS (SELECT 1 FROM nodes AS own WHERE own.node = $2 AND own.steady_since <= {NOW} - $3)) \
                       LIMIT $1 FOR UPDATE SKIP LOCKED), \
                     queue AS (UPDATE call_queue SET node = $2, fence = fence + 1, lease_until = {NOW} + $3 \
                       FROM lost WHERE call_queue.call_sid = lost.call_sid RETURNING call_queue.*, lost.node AS lost_node) \
                     SELECT {CLAIMED}, queue.state, queue.trunk, queue.dialled_at, queue.rang_at, queue.answered_at, queue.dialog, \
                       coalesce(nodes.heartbeat_at, queue.answered_at, queue.rang_at, queue.dialled_at, calls.accepted_at) \
                     FROM queue JOIN calls USING (call_sid) LEFT JOIN nodes ON nodes.node = queue.lost_node"
                ),
                &[
                    &i64::from(most),
                    &node.as_str(),
                    &lease_millis(now, lease_until),
                    &abandoned,
                ],
            )
            .await?;
        rows.iter().map(|row| lost(row, node)).collect()
    }

    async fn heartbeat(
        &self,
        node: &NodeId,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<Standing, StoreError> {
        let row = self
            .client()
            .await?
            .query_one(
                &format!(
                    "WITH renewed AS (UPDATE call_queue SET lease_until = {NOW} + $2 WHERE node = $1 AND state > 0), \
                     beat AS (INSERT INTO nodes (node, steady_since, heartbeat_at) VALUES ($1, {NOW}, {NOW}) \
                       ON CONFLICT (node) DO UPDATE SET heartbeat_at = {NOW}, \
                         steady_since = CASE WHEN nodes.heartbeat_at < {NOW} - $2 THEN {NOW} ELSE nodes.steady_since END), \
                     forgotten AS (DELETE FROM nodes WHERE heartbeat_at < {NOW} - 86400000 \
                       AND node NOT IN (SELECT node FROM call_queue WHERE node IS NOT NULL)) \
                     SELECT count(*) FILTER (WHERE node < $1), count(*) FROM nodes WHERE heartbeat_at > {NOW} - {SILENT} AND node <> $1"
                ),
                &[&node.as_str(), &lease_millis(now, lease_until)],
            )
            .await?;
        let count = |column| u32::try_from(row.get::<_, i64>(column)).unwrap_or(0);
        Ok(Standing {
            rank: count(0),
            nodes: count(1) + 1,
        })
    }

    async fn held_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let held = "SELECT call_sid FROM call_queue WHERE state > 0 AND node = $1";
        let rows = self.client().await?.query(held, &[&node.as_str()]).await?;
        rows.iter().map(|row| parsed(row.get(0))).collect()
    }

    async fn cancel_call(&self, sid: &CallSid) -> Result<Option<CallState>, StoreError> {
        let row = self
            .client()
            .await?
            .query_opt(
                "UPDATE call_queue SET cancelled = TRUE WHERE call_sid = $1 RETURNING state",
                &[&sid.as_str()],
            )
            .await?;
        Ok(row.and_then(|row| CallState::from_number(row.get(0))))
    }

    async fn cancelled_calls(&self, node: &NodeId) -> Result<Vec<CallSid>, StoreError> {
        let rows = self
            .client()
            .await?
            .query(
                "SELECT call_sid FROM call_queue WHERE cancelled AND state > 0 AND node = $1",
                &[&node.as_str()],
            )
            .await?;
        rows.iter().map(|row| parsed(row.get(0))).collect()
    }

    async fn queue_depth(&self) -> Result<(u64, Option<Timestamp>), StoreError> {
        let row = self
            .client()
            .await?
            .query_one(
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
        let client = self.client().await?;
        let statement = client.prepare_cached(count).await?;
        let row = client
            .query_one(&statement, &[&callee, &since.as_millisecond()])
            .await?;
        Ok(u32::try_from(row.get::<_, i64>(0)).unwrap_or(u32::MAX))
    }

    /// The oldest calls first: callSids sort by time. One whose callback is still owed is kept until that is settled.
    async fn forget_calls(&self, before: Timestamp, most: u32) -> Result<u64, StoreError> {
        let forgotten = self
            .client()
            .await?
            .execute(
                "WITH old AS (SELECT call_sid FROM (SELECT call_sid, ended_at FROM calls ORDER BY call_sid LIMIT $1) AS oldest \
                   LEFT JOIN callbacks USING (call_sid) WHERE ended_at < $2 AND coalesce(callbacks.state, 2) >= 2), \
                 attempts AS (DELETE FROM callback_attempts USING old WHERE callback_attempts.call_sid = old.call_sid), \
                 settled AS (DELETE FROM callbacks USING old WHERE callbacks.call_sid = old.call_sid) \
                 DELETE FROM calls USING old WHERE calls.call_sid = old.call_sid",
                &[&i64::from(most), &before.as_millisecond()],
            )
            .await?;
        Ok(forgotten)
    }
}

async fn lock_claims<C: GenericClient>(client: &C) -> Result<(), StoreError> {
    client
        .execute("SELECT pg_advisory_xact_lock($1)", &[&CLAIM_LOCK])
        .await?;
    Ok(())
}

/// The line's price is that of `domain::bill::rating`: by the reservation, where there is one, or else by the account's rate with the
/// longest prefix, or else by the platform's. The calendar's row is held in share (see `bills::lines`), and read as it is after waiting.
const END: &str = "WITH gone AS (DELETE FROM call_queue WHERE call_sid = $1 AND node = $2 AND fence = $3 RETURNING call_sid), \
  calendar AS (SELECT first_open FROM bill_calendar FOR SHARE), \
  ended AS (UPDATE calls SET outcome = $4, trunk = $5, attempts = $6, dialled_at = $7, rang_at = $8, answered_at = $9, \
    ended_at = $10, sip_code = $11, reason = $12 FROM gone WHERE calls.call_sid = gone.call_sid RETURNING calls.*), \
  held AS (DELETE FROM call_reservations USING gone WHERE call_reservations.call_sid = gone.call_sid RETURNING call_reservations.*), \
  rate AS (SELECT unit_seconds, price, unanswered, units AS most FROM held UNION ALL \
    (SELECT unit_seconds, price, unanswered, 2147483647 FROM rates \
      WHERE account_sid IN ($20, '') AND prefix = ANY($21) AND NOT EXISTS (SELECT 1 FROM held) \
      ORDER BY account_sid DESC, length(prefix) DESC LIMIT 1)), \
  counted AS (SELECT \
      CASE WHEN $9::bigint IS NOT NULL THEN least(greatest(($14::integer - 1) / unit_seconds + 1, 1), most) \
        WHEN $22 AND unanswered > 0 THEN 1 ELSE 0 END AS units, \
      CASE WHEN $9::bigint IS NULL AND $22 AND unanswered > 0 THEN unanswered ELSE price END AS rate FROM rate \
    UNION ALL SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM rate)), \
  charged AS (UPDATE accounts SET reserved = reserved - held.amount, spent = spent + counted.units * counted.rate, \
    balance = balance - counted.units * counted.rate FROM held, counted WHERE accounts.sid = $20), \
  billed AS (INSERT INTO bill_lines (order_id, account_sid, app_id, bill_day, type, call_sid, caller, called, started_at, \
      answered_at, ended_at, seconds, units, rate, fee, outcome, user_data) \
    SELECT call_sid, account_sid, app_id, greatest(first_open, $13), 14, call_sid, coalesce(caller, ''), called, \
      coalesce(dialled_at, accepted_at), answered_at, ended_at, $14, units, rate, units * rate, $15, user_data \
    FROM ended CROSS JOIN calendar CROSS JOIN counted), \
  owed AS (INSERT INTO callbacks (call_sid, app_id, webhook_id, host, url, body, state, owed_at, due_at) \
    SELECT call_sid, app_id, $18, $19, $16, $17, 0, ended_at, ended_at FROM ended WHERE $16::text IS NOT NULL) \
  SELECT call_sid FROM gone";

/// One statement is one transaction and one round trip. Nothing happens if the call is not ours any more.
async fn end(client: &deadpool_postgres::Client, ended: &EndedCall) -> Result<bool, StoreError> {
    let (call, lease) = (&ended.claimed.call, &ended.claimed.lease);
    let millis = |time: Option<Timestamp>| time.map(Timestamp::as_millisecond);
    let callback = ended.callback.as_ref();
    let tried = ended.outcome.was_tried();
    let statement = client.prepare_cached(END).await?;
    let changed = client
        .query(
            &statement,
            &[
                &call.sid.as_str(),
                &lease.node.as_str(),
                &lease.fence,
                &ended.outcome.number(),
                &ended.trunk,
                &i32::try_from(ended.attempts).unwrap_or(i32::MAX),
                &millis(ended.dialled_at),
                &millis(ended.rang_at),
                &millis(ended.answered_at),
                &ended.ended_at.as_millisecond(),
                &ended.sip_code.and_then(|code| i16::try_from(code).ok()),
                &ended.reason,
                &ended.bill_day.to_string(),
                &ended.whole_seconds().cast_signed(),
                &ended.outcome.word(),
                &callback.map(|owed| owed.url.as_str()),
                &callback.map(|owed| owed.body.as_str()),
                &callback.map(|owed| owed.webhook_id.as_str()),
                &callback.map(|owed| owed.url.host()),
                &call.account.as_str(),
                &Prefix::all_of(call.number.digits()),
                &tried,
            ],
        )
        .await?;
    Ok(changed.len() == 1)
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

fn lost(row: &Row, node: &NodeId) -> Result<LostCall, StoreError> {
    let at = |column: usize| row.get::<_, Option<i64>>(column).map(time).transpose();
    Ok(LostCall {
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
