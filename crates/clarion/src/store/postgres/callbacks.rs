//! Callbacks in PostgreSQL. Leases run by the database's clock, so nodes need not agree on the time.

use deadpool_postgres::ClientWrapper;
use jiff::Timestamp;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Row};

use super::super::{CallbackBacklog, CallbackClaim, CallbackFilter, StoreError};
use super::accounts::{parsed, time};
use crate::domain::account::AppId;
use crate::domain::call::CallSid;
use crate::domain::callback::{
    Callback, CallbackAttempt, CallbackLease, CallbackState, ClaimedCallback, DeliveryResult,
    EndedAttempt, OwedCallback, RespUrl,
};
use crate::domain::phone_number::PhoneNumber;

/// The database's clock, in milliseconds.
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// To be called in the transaction that ends the calls: one statement for the whole batch. Owing the same again changes nothing.
pub async fn owe<C: GenericClient>(client: &C, owed: &[OwedCallback]) -> Result<(), StoreError> {
    let hosts = column(owed, |owed| owed.url.host());
    client
        .execute(
            "INSERT INTO callbacks (call_sid, app_id, webhook_id, host, url, body, state, owed_at, due_at) \
             SELECT call_sid, app_id, webhook_id, host, url, body, 0, owed_at, owed_at \
             FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[]) \
               AS batch (call_sid, app_id, webhook_id, host, url, body, owed_at) ON CONFLICT (call_sid) DO NOTHING",
            &[
                &column(owed, |owed| owed.call.as_str()),
                &column(owed, |owed| owed.app.as_str()),
                &column(owed, |owed| owed.webhook_id.as_str()),
                &hosts,
                &column(owed, |owed| owed.url.as_str()),
                &column(owed, |owed| owed.body.as_str()),
                &column(owed, |owed| owed.owed_at.as_millisecond()),
            ],
        )
        .await?;
    Ok(())
}

fn column<'a, S, T>(rows: &'a [S], value: impl Fn(&'a S) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

/// Each host that has something waiting, and when its first is due: one step of the index a host, however much waits for it.
pub async fn waiting_hosts(client: &ClientWrapper) -> Result<Vec<(String, Timestamp)>, StoreError> {
    let statement = client
        .prepare_cached(
            "WITH RECURSIVE hosts AS ( \
               (SELECT host, due_at FROM callbacks WHERE state = 0 ORDER BY host, due_at LIMIT 1) \
               UNION ALL \
               SELECT next.host, next.due_at FROM hosts, LATERAL ( \
                 SELECT host, due_at FROM callbacks WHERE state = 0 AND host > hosts.host ORDER BY host, due_at LIMIT 1) AS next) \
             SELECT host, due_at FROM hosts",
        )
        .await?;
    let rows = client.query(&statement, &[]).await?;
    rows.iter()
        .map(|row| Ok((row.get(0), time(row.get(1))?)))
        .collect()
}

/// What another node is just claiming is passed over, not waited for.
pub async fn claim(
    client: &ClientWrapper,
    claim: &CallbackClaim,
    hosts: &[(String, u32)],
) -> Result<Vec<ClaimedCallback>, StoreError> {
    let sql = format!(
        "WITH free AS MATERIALIZED ( \
           SELECT picked.call_sid FROM unnest($1::text[], $2::bigint[]) AS hosts (host, room), LATERAL ( \
             SELECT call_sid, due_at FROM callbacks WHERE state = 0 AND host = hosts.host AND due_at <= $3 \
             ORDER BY due_at LIMIT hosts.room FOR UPDATE SKIP LOCKED) AS picked \
           ORDER BY picked.due_at LIMIT $4) \
         UPDATE callbacks SET state = 1, node = $5, fence = fence + 1, lease_until = {NOW} + $6 \
         FROM free WHERE callbacks.call_sid = free.call_sid \
         RETURNING callbacks.call_sid, fence, webhook_id, url, body, due_at, attempts, failures, \
           (SELECT callback_secret FROM applications WHERE id = app_id)"
    );
    let statement = client.prepare_cached(&sql).await?;
    let lease = i64::try_from(claim.lease.as_millis()).unwrap_or(i64::MAX / 2);
    let rows = client
        .query(
            &statement,
            &[
                &column(hosts, |(host, _)| host.as_str()),
                &column(hosts, |(_, room)| i64::from(*room)),
                &claim.now.as_millisecond(),
                &i64::from(claim.limit),
                &claim.node,
                &lease,
            ],
        )
        .await?;
    let mut claimed: Vec<_> = rows.iter().map(read_claimed).collect::<Result<_, _>>()?;
    claimed.sort_by_key(|callback| callback.due_at);
    Ok(claimed)
}

fn read_claimed(row: &Row) -> Result<ClaimedCallback, StoreError> {
    Ok(ClaimedCallback {
        lease: CallbackLease {
            call: parsed(row.get(0))?,
            fence: row.get(1),
        },
        webhook_id: row.get(2),
        url: RespUrl::from_stored(row.get(3)),
        body: row.get(4),
        due_at: time(row.get(5))?,
        attempts: count(row, 6),
        failures: count(row, 7),
        secret: row.get::<_, Option<&str>>(8).map(parsed).transpose()?,
    })
}

fn count(row: &Row, column: usize) -> u32 {
    u32::try_from(row.get::<_, i32>(column)).unwrap_or_default()
}

/// A statement alone is its own transaction: one round trip carries all the attempts and what follows from them.
pub async fn record(
    client: &ClientWrapper,
    ended: &[EndedAttempt],
) -> Result<Vec<CallSid>, StoreError> {
    let due = |ended: &EndedAttempt| ended.next.due_at().map(Timestamp::as_millisecond);
    let finished = |ended: &EndedAttempt| match ended.next.due_at() {
        Some(_) => None,
        None => Some(ended.ended_at.as_millisecond()),
    };
    let status = |ended: &EndedAttempt| ended.attempt.status.and_then(|s| i16::try_from(s).ok());
    let statement = client
        .prepare_cached(
            "WITH batch AS (SELECT * FROM unnest($1::text[], $2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], \
               $7::bigint[], $8::text[], $9::smallint[], $10::text[], $11::text[]) AS batch (call_sid, fence, next, next_due, finished, \
               started_at, duration, verdict, status, error, answer)), \
             held AS (UPDATE callbacks SET state = batch.next, due_at = batch.next_due, finished_at = batch.finished, \
               attempts = attempts + 1, failures = failures + 1, node = NULL, lease_until = NULL FROM batch \
               WHERE callbacks.call_sid = batch.call_sid AND callbacks.fence = batch.fence AND callbacks.state = 1 \
               RETURNING callbacks.call_sid, callbacks.attempts) \
             INSERT INTO callback_attempts (call_sid, attempt, started_at, duration, verdict, status, error, answer) \
               SELECT call_sid, attempts, started_at, duration, verdict, status, error, answer FROM held JOIN batch USING (call_sid) \
               RETURNING call_sid",
        )
        .await?;
    let rows = client
        .query(
            &statement,
            &[
                &column(ended, |ended| ended.lease.call.as_str()),
                &column(ended, |ended| ended.lease.fence),
                &column(ended, |ended| ended.next.state().number()),
                &column(ended, due),
                &column(ended, finished),
                &column(ended, |ended| ended.attempt.started_at.as_millisecond()),
                &column(ended, |ended| ended.attempt.milliseconds),
                &column(ended, |ended| ended.attempt.verdict.as_str()),
                &column(ended, status),
                &column(ended, |ended| ended.attempt.error.as_deref()),
                &column(ended, |ended| ended.attempt.answer.as_deref()),
            ],
        )
        .await?;
    rows.iter().map(|row| parsed(row.get(0))).collect()
}

pub async fn release<C: GenericClient>(
    client: &C,
    leases: &[CallbackLease],
) -> Result<(), StoreError> {
    client
        .execute(
            "UPDATE callbacks SET state = 0, node = NULL, lease_until = NULL \
             FROM unnest($1::text[], $2::bigint[]) AS held (call_sid, fence) \
             WHERE callbacks.call_sid = held.call_sid AND callbacks.fence = held.fence AND state = 1",
            &[
                &column(leases, |lease| lease.call.as_str()),
                &column(leases, |lease| lease.fence),
            ],
        )
        .await?;
    Ok(())
}

pub async fn reclaim<C: GenericClient>(client: &C) -> Result<u64, StoreError> {
    let sql = format!(
        "UPDATE callbacks SET state = 0, node = NULL, lease_until = NULL WHERE state = 1 AND lease_until < {NOW}"
    );
    Ok(client.execute(&sql, &[]).await?)
}

const CALLBACK: &str = "SELECT call_sid, callbacks.app_id, calls.number, calls.extension, webhook_id, url, body, state, \
    callbacks.attempts, owed_at, due_at, finished_at FROM callbacks LEFT JOIN calls USING (call_sid)";

pub async fn list<C: GenericClient>(
    client: &C,
    filter: &CallbackFilter,
) -> Result<Vec<Callback>, StoreError> {
    // The state stands in the text, not in a parameter: a cached plan then still uses the partial indices.
    let mut conditions = filter.state.map_or_else(
        || "true".to_owned(),
        |state| format!("state = {}", state.number()),
    );
    let limit = i64::from(filter.limit);
    let (app, host, before) = (
        filter.app.as_ref().map(AppId::as_str),
        filter.host.as_deref(),
        filter.before.as_ref().map(CallSid::as_str),
    );
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&limit];
    for (condition, value) in [
        ("callbacks.app_id =", &app),
        ("host =", &host),
        ("call_sid <", &before),
    ] {
        if value.is_some() {
            values.push(value);
            conditions.push_str(&format!(" AND {condition} ${}", values.len()));
        }
    }
    let sql = format!("{CALLBACK} WHERE {conditions} ORDER BY call_sid DESC LIMIT $1");
    let rows = client.query(&sql, &values).await?;
    rows.iter().map(read_callback).collect()
}

pub async fn find<C: GenericClient>(
    client: &C,
    sid: &CallSid,
) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError> {
    let sql = format!("{CALLBACK} WHERE call_sid = $1");
    let Some(row) = client.query_opt(&sql, &[&sid.as_str()]).await? else {
        return Ok(None);
    };
    let attempts = client
        .query(
            "SELECT started_at, duration, verdict, status, error, answer FROM callback_attempts WHERE call_sid = $1 ORDER BY attempt",
            &[&sid.as_str()],
        )
        .await?;
    let attempts = attempts
        .iter()
        .map(read_attempt)
        .collect::<Result<_, _>>()?;
    Ok(Some((read_callback(&row)?, attempts)))
}

fn read_callback(row: &Row) -> Result<Callback, StoreError> {
    let number = row.get::<_, Option<String>>(2);
    let state = row.get::<_, i16>(7);
    let optional = |column: usize| row.get::<_, Option<i64>>(column).map(time).transpose();
    Ok(Callback {
        call: parsed(row.get(0))?,
        app: parsed(row.get(1))?,
        number: number.map(|digits| PhoneNumber::from_stored(digits, row.get(3))),
        webhook_id: row.get(4),
        url: RespUrl::from_stored(row.get(5)),
        body: row.get(6),
        state: CallbackState::from_number(state)
            .ok_or_else(|| StoreError::failed(format!("there is no callback state {state}")))?,
        attempts: count(row, 8),
        owed_at: time(row.get(9))?,
        due_at: optional(10)?,
        finished_at: optional(11)?,
    })
}

fn read_attempt(row: &Row) -> Result<CallbackAttempt, StoreError> {
    let status = row.get::<_, Option<i16>>(3);
    Ok(CallbackAttempt {
        started_at: time(row.get(0))?,
        milliseconds: row.get(1),
        verdict: parsed::<DeliveryResult>(row.get(2))?,
        status: status.and_then(|status| u16::try_from(status).ok()),
        error: row.get(4),
        answer: row.get(5),
    })
}

pub async fn replay<C: GenericClient>(
    client: &C,
    sid: &CallSid,
    now: Timestamp,
) -> Result<(), StoreError> {
    let replayed = client
        .execute(
            "UPDATE callbacks SET state = 0, due_at = $2, failures = 0, finished_at = NULL WHERE call_sid = $1 AND state <> 1",
            &[&sid.as_str(), &now.as_millisecond()],
        )
        .await?;
    if replayed > 0 {
        return Ok(());
    }
    match find(client, sid).await? {
        Some(_) => Err(StoreError::being_delivered(sid)),
        None => Err(StoreError::no_callback(sid)),
    }
}

pub async fn backlog<C: GenericClient>(client: &C) -> Result<CallbackBacklog, StoreError> {
    // One query each, because each has an index of its own.
    let row = client
        .query_one(
            "SELECT sum(waiting)::bigint, min(oldest) FROM ( \
               SELECT count(*) AS waiting, min(owed_at) AS oldest FROM callbacks WHERE state = 0 UNION ALL \
               SELECT count(*), min(owed_at) FROM callbacks WHERE state = 1) AS parts",
            &[],
        )
        .await?;
    let oldest = row.get::<_, Option<i64>>(1);
    Ok(CallbackBacklog {
        waiting: u64::try_from(row.get::<_, i64>(0)).unwrap_or_default(),
        oldest_owed_at: oldest.map(time).transpose()?,
    })
}
