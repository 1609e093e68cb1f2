//! Callbacks in SQLite. A lease belongs to the life of the one process that serves, so it has no end of its own.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, named_params, params};

use super::super::{CallbackBacklog, CallbackClaim, CallbackFilter, StoreError};
use super::accounts::{parsed, time};
use crate::domain::account::AppId;
use crate::domain::call::CallSid;
use crate::domain::callback::{
    Callback, CallbackAttempt, CallbackLease, CallbackState, ClaimedCallback, DeliveryResult,
    EndedAttempt, OwedCallback, RespUrl,
};
use crate::domain::phone_number::PhoneNumber;

/// To be called in the transaction that ends the call. Owing the same again changes nothing.
pub fn owe(db: &Connection, owed: &OwedCallback) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO callbacks (call_sid, app_id, webhook_id, host, url, body, state, owed_at, due_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?7) ON CONFLICT DO NOTHING",
    )?
    .execute(params![
        owed.call.as_str(),
        owed.app.as_str(),
        owed.webhook_id,
        owed.url.host(),
        owed.url.as_str(),
        owed.body,
        owed.owed_at.as_millisecond(),
    ])?;
    Ok(())
}

/// Each host that has something waiting, and when its first is due: one step of the index a host, however much waits for it.
pub fn waiting_hosts(db: &Connection) -> rusqlite::Result<Vec<(String, Timestamp)>> {
    let mut next = db.prepare_cached(
        "SELECT host, due_at FROM callbacks WHERE state = 0 AND host > ? ORDER BY host, due_at LIMIT 1",
    )?;
    let mut hosts: Vec<(String, Timestamp)> = Vec::new();
    loop {
        let after = hosts.last().map_or("", |(host, _)| host);
        let found = next.query_row([after], |row| Ok((row.get(0)?, time(row, 1)?)));
        match found.optional()? {
            Some(host) => hosts.push(host),
            None => return Ok(hosts),
        }
    }
}

pub fn claim(
    db: &Connection,
    claim: &CallbackClaim,
    hosts: &[(String, u32)],
) -> rusqlite::Result<Vec<ClaimedCallback>> {
    let mut claimed = Vec::new();
    for (host, room) in hosts {
        let left = u64::from(claim.limit).saturating_sub(claimed.len() as u64);
        claimed.extend(claim_of_host(db, claim, host, left.min((*room).into()))?);
    }
    Ok(claimed)
}

fn claim_of_host(
    db: &Connection,
    claim: &CallbackClaim,
    host: &str,
    limit: u64,
) -> rusqlite::Result<Vec<ClaimedCallback>> {
    let sids: Vec<String> = db
        .prepare_cached(
            "SELECT call_sid FROM callbacks WHERE state = 0 AND host = ? AND due_at <= ? ORDER BY due_at LIMIT ?",
        )?
        .query_map(
            params![host, claim.now.as_millisecond(), i64::try_from(limit).unwrap_or(i64::MAX)],
            |row| row.get(0),
        )?
        .collect::<Result<_, _>>()?;
    let mut take = db.prepare_cached(
        "UPDATE callbacks SET state = 1, node = ?2, fence = fence + 1 WHERE call_sid = ?1 \
         RETURNING call_sid, fence, webhook_id, url, body, due_at, attempts, failures, \
           (SELECT callback_secret FROM applications WHERE id = app_id)",
    )?;
    sids.iter()
        .map(|sid| take.query_row(params![sid, claim.node], read_claimed))
        .collect()
}

fn read_claimed(row: &Row<'_>) -> rusqlite::Result<ClaimedCallback> {
    let secret: Option<String> = row.get(8)?;
    Ok(ClaimedCallback {
        lease: CallbackLease {
            call: parsed(row, 0)?,
            fence: row.get(1)?,
        },
        webhook_id: row.get(2)?,
        url: RespUrl::from_stored(row.get(3)?),
        body: row.get(4)?,
        due_at: time(row, 5)?,
        attempts: row.get(6)?,
        failures: row.get(7)?,
        secret: secret.map(|_| parsed(row, 8)).transpose()?,
    })
}

pub fn record(db: &Connection, ended: &[EndedAttempt]) -> rusqlite::Result<Vec<CallSid>> {
    let mut recorded = Vec::with_capacity(ended.len());
    for attempt in ended {
        if record_one(db, attempt)? {
            recorded.push(attempt.lease.call.clone());
        }
    }
    Ok(recorded)
}

/// False if the lease was lost.
fn record_one(db: &Connection, ended: &EndedAttempt) -> rusqlite::Result<bool> {
    let (sid, due_at) = (ended.lease.call.as_str(), ended.next.due_at());
    let number: Option<u32> = db
        .prepare_cached(
            "UPDATE callbacks SET state = ?3, due_at = ?4, finished_at = ?5, attempts = attempts + 1, failures = failures + 1, node = NULL \
             WHERE call_sid = ?1 AND fence = ?2 AND state = 1 RETURNING attempts",
        )?
        .query_row(
            params![
                sid,
                ended.lease.fence,
                ended.next.state().number(),
                due_at.map(Timestamp::as_millisecond),
                due_at.is_none().then(|| ended.ended_at.as_millisecond()),
            ],
            |row| row.get(0),
        )
        .optional()?;
    let Some(number) = number else {
        return Ok(false);
    };
    let attempt = &ended.attempt;
    db.prepare_cached(
        "INSERT INTO callback_attempts (call_sid, attempt, started_at, duration, verdict, status, error, answer) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        sid,
        number,
        attempt.started_at.as_millisecond(),
        attempt.milliseconds,
        attempt.verdict.as_str(),
        attempt.status,
        attempt.error,
        attempt.answer,
    ])?;
    Ok(true)
}

pub fn release(db: &Connection, leases: &[CallbackLease]) -> rusqlite::Result<()> {
    let mut release = db.prepare_cached(
        "UPDATE callbacks SET state = 0, node = NULL WHERE call_sid = ? AND fence = ? AND state = 1",
    )?;
    leases.iter().try_for_each(|lease| {
        release
            .execute(params![lease.call.as_str(), lease.fence])
            .map(drop)
    })
}

/// One process serves at a time, so whatever another one holds is held by a process that is gone.
pub fn reclaim(db: &Connection, node: &str) -> rusqlite::Result<u64> {
    let freed = db
        .prepare_cached(
            "UPDATE callbacks SET state = 0, node = NULL WHERE state = 1 AND node <> ?",
        )?
        .execute([node])?;
    Ok(freed as u64)
}

const CALLBACK: &str = "SELECT call_sid, callbacks.app_id, calls.number, calls.extension, webhook_id, url, body, state, \
    callbacks.attempts, owed_at, due_at, finished_at FROM callbacks LEFT JOIN calls USING (call_sid)";

pub fn list(db: &Connection, filter: &CallbackFilter) -> rusqlite::Result<Vec<Callback>> {
    // The state stands in the text, not in a parameter: only then does SQLite use the partial indices.
    let mut conditions = filter.state.map_or_else(
        || "true".to_owned(),
        |state| format!("state = {}", state.number()),
    );
    let (app, host, before) = (
        filter.app.as_ref().map(AppId::as_str),
        filter.host.as_deref(),
        filter.before.as_ref().map(CallSid::as_str),
    );
    let mut values: Vec<(&str, &dyn ToSql)> = vec![(":most", &filter.limit)];
    for (name, condition, value) in [
        (":app", "callbacks.app_id = :app", &app),
        (":host", "host = :host", &host),
        (":before", "call_sid < :before", &before),
    ] {
        if value.is_some() {
            conditions.push_str(" AND ");
            conditions.push_str(condition);
            values.push((name, value));
        }
    }
    db.prepare_cached(&format!(
        "{CALLBACK} WHERE {conditions} ORDER BY call_sid DESC LIMIT :most"
    ))?
    .query_map(&*values, read_callback)?
    .collect()
}

pub fn find(
    db: &Connection,
    sid: &CallSid,
) -> rusqlite::Result<Option<(Callback, Vec<CallbackAttempt>)>> {
    let found = db
        .prepare_cached(&format!("{CALLBACK} WHERE call_sid = ?"))?
        .query_row([sid.as_str()], read_callback)
        .optional()?;
    let Some(callback) = found else {
        return Ok(None);
    };
    let attempts = db
        .prepare_cached(
            "SELECT started_at, duration, verdict, status, error, answer FROM callback_attempts WHERE call_sid = ? ORDER BY attempt",
        )?
        .query_map([sid.as_str()], read_attempt)?
        .collect::<Result<_, _>>()?;
    Ok(Some((callback, attempts)))
}

fn read_callback(row: &Row<'_>) -> rusqlite::Result<Callback> {
    let digits: Option<String> = row.get(2)?;
    let extension = row.get(3)?;
    let state: i16 = row.get(7)?;
    let optional = |column| match row.get::<_, Option<i64>>(column)? {
        Some(_) => time(row, column).map(Some),
        None => Ok(None),
    };
    Ok(Callback {
        call: parsed(row, 0)?,
        app: parsed(row, 1)?,
        number: digits.map(|digits| PhoneNumber::from_stored(digits, extension)),
        webhook_id: row.get(4)?,
        url: RespUrl::from_stored(row.get(5)?),
        body: row.get(6)?,
        state: CallbackState::from_number(state)
            .ok_or(rusqlite::Error::IntegralValueOutOfRange(7, state.into()))?,
        attempts: row.get(8)?,
        owed_at: time(row, 9)?,
        due_at: optional(10)?,
        finished_at: optional(11)?,
    })
}

fn read_attempt(row: &Row<'_>) -> rusqlite::Result<CallbackAttempt> {
    Ok(CallbackAttempt {
        started_at: time(row, 0)?,
        milliseconds: row.get(1)?,
        verdict: parsed::<DeliveryResult>(row, 2)?,
        status: row.get(3)?,
        error: row.get(4)?,
        answer: row.get(5)?,
    })
}

pub fn replay(db: &Connection, sid: &CallSid, now: Timestamp) -> Result<(), StoreError> {
    let replayed = db
        .execute(
            "UPDATE callbacks SET state = 0, due_at = :now, failures = 0, finished_at = NULL WHERE call_sid = :sid AND state <> 1",
            named_params! {":now": now.as_millisecond(), ":sid": sid.as_str()},
        )
        .map_err(StoreError::failed)?;
    if replayed > 0 {
        return Ok(());
    }
    match find(db, sid).map_err(StoreError::failed)? {
        Some(_) => Err(StoreError::being_delivered(sid)),
        None => Err(StoreError::no_callback(sid)),
    }
}

pub fn backlog(db: &Connection) -> rusqlite::Result<CallbackBacklog> {
    let (mut waiting, mut oldest) = (0_u64, None::<i64>);
    // One query each, because each has an index of its own.
    for state in ["0", "1"] {
        let (count, first): (u32, Option<i64>) = db
            .prepare_cached(&format!(
                "SELECT count(*), min(owed_at) FROM callbacks WHERE state = {state}"
            ))?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        waiting += u64::from(count);
        oldest = oldest.into_iter().chain(first).min();
    }
    Ok(CallbackBacklog {
        waiting,
        oldest_owed_at: oldest.and_then(|millis| Timestamp::from_millisecond(millis).ok()),
    })
}
