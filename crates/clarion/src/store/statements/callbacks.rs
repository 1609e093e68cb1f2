//! Callbacks: what is owed and what became of it.

use super::{Statement, statement};
use crate::domain::account::AppId;
use crate::domain::call::CallSid;
use crate::domain::callback::{
    Callback, CallbackAttempt, CallbackLease, CallbackState, ClaimedCallback, RespUrl,
};
use crate::domain::phone_number::PhoneNumber;
use crate::store::binding::Bind;
use crate::store::columns::Columns;
use crate::store::{CallbackBacklog, CallbackFilter, StoreError};

const CALLBACK: &str = "SELECT call_sid, callbacks.app_id, calls.number, calls.extension, webhook_id, url, body, state, \
    callbacks.attempts, owed_at, due_at, finished_at FROM callbacks LEFT JOIN calls USING (call_sid)";

pub const FIND: Statement = statement!(CALLBACK, " WHERE call_sid = $1");
pub const ATTEMPTS: Statement = statement!(
    "SELECT started_at, duration, verdict, status, error, answer FROM callback_attempts WHERE call_sid = $1 ORDER BY attempt"
);
pub const REPLAY: Statement = statement!(
    "UPDATE callbacks SET state = {waiting}, due_at = $2, failures = 0, finished_at = NULL \
     WHERE call_sid = $1 AND state <> {delivering}"
);
/// One question for each state, because each has an index of its own.
pub const BACKLOG: Statement = statement!(
    "SELECT CAST(sum(waiting) AS BIGINT), min(oldest) FROM (\
       SELECT count(*) AS waiting, min(owed_at) AS oldest FROM callbacks WHERE state = {waiting} UNION ALL \
       SELECT count(*), min(owed_at) FROM callbacks WHERE state = {delivering}) AS parts"
);
/// What a claimed callback is read from.
pub const CLAIMED: &str = "callbacks.call_sid, fence, webhook_id, url, body, due_at, attempts, failures, \
    (SELECT callback_secret FROM applications WHERE id = app_id)";

/// The question for callbacks that a filter lets through, the newest first, and its values. `mark` stands before the number of a value.
pub fn list(filter: &CallbackFilter, mark: char) -> (String, Vec<Bind<'_>>) {
    // The state stands in the text, not in a value: only then are the partial indices used.
    let mut conditions = filter.state.map_or_else(
        || "true".to_owned(),
        |state| format!("state = {}", state.number()),
    );
    let mut values = vec![Bind::of(filter.limit)];
    for (condition, value) in [
        ("callbacks.app_id =", filter.app.as_ref().map(AppId::as_str)),
        ("host =", filter.host.as_deref()),
        ("call_sid <", filter.before.as_ref().map(CallSid::as_str)),
    ] {
        if let Some(value) = value {
            values.push(value.into());
            conditions.push_str(&format!(" AND {condition} {mark}{}", values.len()));
        }
    }
    let text = format!("{CALLBACK} WHERE {conditions} ORDER BY call_sid DESC LIMIT {mark}1");
    (text, values)
}

pub fn callback(row: &impl Columns) -> Result<Callback, StoreError> {
    let (number, extension) = (row.optional_string(2)?, row.optional_string(3)?);
    let state = row.number(7)?;
    Ok(Callback {
        call: row.parsed(0)?,
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

/// Reads the columns of `CLAIMED`.
pub fn claimed(row: &impl Columns) -> Result<ClaimedCallback, StoreError> {
    Ok(ClaimedCallback {
        lease: CallbackLease {
            call: row.parsed(0)?,
            fence: row.number(1)?,
        },
        webhook_id: row.string(2)?,
        url: RespUrl::from_stored(row.string(3)?),
        body: row.string(4)?,
        due_at: row.time(5)?,
        attempts: row.number(6)?,
        failures: row.number(7)?,
        secret: row.optional_parsed(8)?,
    })
}

pub fn backlog(row: &impl Columns) -> Result<CallbackBacklog, StoreError> {
    Ok(CallbackBacklog {
        waiting: row.number(0)?,
        oldest_owed_at: row.optional_time(1)?,
    })
}
