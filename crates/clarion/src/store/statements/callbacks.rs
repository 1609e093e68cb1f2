//! Callbacks: what is owed and what became of it.

use jiff::SignedDuration;

use super::{Statement, statement};
use crate::domain::callback::{
    Callback, CallbackAttempt, CallbackKey, CallbackLease, CallbackState, ClaimedCallback, RespUrl,
};
use crate::domain::phone_number::PhoneNumber;
use crate::store::callbacks::WaitingApp;
use crate::store::columns::Columns;
use crate::store::{CallbackBacklog, StoreError};

/// What a callback is read from: of `callbacks`, and of its call.
pub const COLUMNS: &str = "call_sid, callbacks.app_id, calls.number, calls.extension, webhook_id, url, body, state, \
    callbacks.attempts, owed_at, due_at, finished_at, seq";
pub const OF_CALLS: &str = "LEFT JOIN calls USING (call_sid)";

pub const FIND: Statement = statement!(
    "SELECT ",
    COLUMNS,
    " FROM callbacks ",
    OF_CALLS,
    " WHERE call_sid = $1 AND seq = $2"
);
/// The final one is the first, and the silence the last.
pub const OF_CALL: Statement = statement!(
    "SELECT ",
    COLUMNS,
    " FROM callbacks ",
    OF_CALLS,
    " WHERE call_sid = $1 ORDER BY seq < 0, seq LIMIT $2"
);
pub const ATTEMPTS: Statement = statement!(
    "SELECT started_at, duration, verdict, status, error, answer FROM callback_attempts WHERE call_sid = $1 AND seq = $2 \
     ORDER BY attempt"
);
pub const LAST_EVENT: Statement =
    statement!("SELECT coalesce(max(seq), 0) FROM callbacks WHERE call_sid = $1 AND seq > 0");
/// Before the moment from which it is due.
pub const REPLAY: &str =
    "UPDATE callbacks SET state = {waiting}, failures = 0, finished_at = NULL, due_at = ";
/// After that.
pub const UNLESS_DELIVERING: &str = " WHERE call_sid = $1 AND seq = $2 AND state <> {delivering}";
/// Final callbacks of calls after $1, at most $2.
pub const GIVEN_UP_AFTER: &str = "SELECT call_sid, app_id, host FROM callbacks \
     WHERE state = {given_up} AND seq = 0 AND call_sid > $1 ORDER BY call_sid LIMIT $2";
pub const DELIVERED_AFTER: &str = "SELECT call_sid, app_id, host FROM callbacks \
     WHERE state = {delivered} AND seq = 0 AND call_sid > $1 ORDER BY call_sid LIMIT $2";
/// What may be delivered of the things that are due: every final callback and silence (`this`), and of each call's events the earliest while none is under
/// way. Before the moment by which they are due.
pub const IN_ORDER: &str = " AND (this.seq <= 0 OR NOT EXISTS (SELECT 1 FROM callbacks AS other \
     WHERE other.call_sid = this.call_sid AND other.seq > 0 AND (other.state = {delivering} \
       OR other.state = {waiting} AND other.seq < this.seq AND other.due_at <= ";
pub const OF_THEIR_CALL: &str = "))) ORDER BY due_at LIMIT ";
/// Gives up events before the moment from which they are finished, and those that were due by another one.
pub const GIVE_UP: &str = "UPDATE callbacks SET state = {given_up}, due_at = NULL, finished_at = $1 WHERE (call_sid, seq) IN ( \
     SELECT call_sid, seq FROM callbacks ";
pub const LATE_EVENTS: &str = " WHERE state = {waiting} AND expires_at IS NOT NULL AND due_at <= ";
pub const OLDEST_FIRST: &str = " ORDER BY due_at LIMIT $3";
/// One question for each state, because each has an index of its own.
pub const BACKLOG: Statement = statement!(
    "SELECT CAST(sum(waiting) AS BIGINT), min(oldest) FROM (\
       SELECT count(*) AS waiting, min(owed_at) AS oldest FROM callbacks WHERE state = {waiting} UNION ALL \
       SELECT count(*), min(owed_at) FROM callbacks WHERE state = {delivering}) AS parts"
);
/// What a claimed callback is read from.
pub const CLAIMED: &str = "callbacks.call_sid, callbacks.seq, fence, webhook_id, url, body, due_at, expires_at, attempts, failures, \
    (SELECT callback_secret FROM applications WHERE id = app_id), \
    coalesce((SELECT account_sid FROM applications WHERE id = app_id), app_id), callbacks.app_id";
/// The columns of `CLAIMED`.
pub const CLAIMED_COLUMNS: usize = 13;

pub fn callback(row: &impl Columns) -> Result<Callback, StoreError> {
    let (number, extension) = (row.optional_string(2)?, row.optional_string(3)?);
    let state = row.number(7)?;
    Ok(Callback {
        key: CallbackKey {
            call: row.parsed(0)?,
            seq: row.number(12)?,
        },
        app: row.parsed(1)?,
        number: number.map(|digits| PhoneNumber::from_stored(digits, extension)),
        webhook_id: row.string(4)?,
        url: RespUrl::from_stored(row.string(5)?),
        body: row.string(6)?,
        state: CallbackState::from_number(state)
            .ok_or_else(|| StoreError::failed(format!("there is no callback state {state}")))?,
        attempts: row.number(8)?,
        owed_at: row.time(9)?,
        due_at: row.optional_time(10)?,
        finished_at: row.optional_time(11)?,
    })
}

pub fn attempt(row: &impl Columns) -> Result<CallbackAttempt, StoreError> {
    Ok(CallbackAttempt {
        started_at: row.time(0)?,
        milliseconds: row.number(1)?,
        verdict: row.parsed(2)?,
        status: row.optional_number(3)?,
        error: row.optional_string(4)?,
        answer: row.optional_string(5)?,
    })
}

/// A callSid and a number.
pub fn key(row: &impl Columns) -> Result<CallbackKey, StoreError> {
    Ok(CallbackKey {
        call: row.parsed(0)?,
        seq: row.number(1)?,
    })
}

/// Reads the columns of `CLAIMED`, at this moment of the store's clock.
pub fn claimed(row: &impl Columns, now: i64) -> Result<ClaimedCallback, StoreError> {
    let due_at: i64 = row.number(6)?;
    let expires_at: Option<i64> = row.optional_number(7)?;
    Ok(ClaimedCallback {
        lease: CallbackLease {
            key: key(row)?,
            fence: row.number(2)?,
        },
        account: row.parsed(11)?,
        app: row.parsed(12)?,
        webhook_id: row.string(3)?,
        url: RespUrl::from_stored(row.string(4)?),
        body: row.string(5)?,
        lag: SignedDuration::from_millis(now - due_at),
        time_left: expires_at.map(|expires_at| SignedDuration::from_millis(expires_at - now)),
        attempts: row.number(8)?,
        failures: row.number(9)?,
        secret: row.optional_parsed(10)?,
    })
}

/// An application, its account, and when its first callback is due.
pub fn waiting_app(row: &impl Columns, now: i64) -> Result<WaitingApp, StoreError> {
    let due_at: i64 = row.number(2)?;
    Ok(WaitingApp {
        app: row.parsed(0)?,
        account: row.parsed(1)?,
        first: SignedDuration::from_millis(due_at - now),
    })
}

pub fn backlog(row: &impl Columns) -> Result<CallbackBacklog, StoreError> {
    Ok(CallbackBacklog {
        waiting: row.number(0)?,
        oldest_owed_at: row.optional_time(1)?,
    })
}
