//! Calls in SQLite.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::domain::account::AccountSid;
use crate::domain::call::{CallProgress, CallSid, NewCall};
use crate::domain::call_state::CallState;
use crate::domain::callback::RespUrl;
use crate::domain::outcome::Outcome;

/// Two rows: what the call is, which stays, and its place in the queue, which goes when it ends. False if it was there already.
pub fn accept(db: &Connection, call: &NewCall) -> rusqlite::Result<bool> {
    let prompt = serde_json::to_string(&call.prompt)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let inserted = db
        .prepare_cached(
            "INSERT INTO calls (call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, prompt, \
               max_talk, resp_url, user_data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            call.sid.as_str(),
            call.account.as_str(),
            call.app.as_str(),
            call.accepted_at.as_millisecond(),
            call.called,
            call.number.digits(),
            call.number.extension(),
            call.caller,
            prompt,
            call.max_talk,
            call.resp_url.as_ref().map(RespUrl::as_str),
            call.user_data,
        ])?;
    if inserted == 0 {
        return Ok(false);
    }
    db.prepare_cached(
        "INSERT INTO call_queue (call_sid, app_id, callee, due_at, expires_at, state) VALUES (?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        call.sid.as_str(),
        call.app.as_str(),
        call.number.callee(),
        call.accepted_at.as_millisecond(),
        call.expires_at.as_millisecond(),
        CallState::Queued.number(),
    ])?;
    Ok(true)
}

pub fn progress(
    db: &Connection,
    account: &AccountSid,
    sid: &CallSid,
) -> rusqlite::Result<Option<CallProgress>> {
    db.prepare_cached(
        "SELECT queue.state, calls.outcome, coalesce(calls.answered_at, queue.answered_at), calls.ended_at \
         FROM calls LEFT JOIN call_queue AS queue USING (call_sid) WHERE call_sid = ? AND calls.account_sid = ?",
    )?
    .query_row([sid.as_str(), account.as_str()], |row| {
        let number = |column| row.get::<_, Option<i16>>(column);
        let time = |column| {
            let millis = row.get::<_, Option<i64>>(column)?;
            Ok::<_, rusqlite::Error>(millis.and_then(|millis| Timestamp::from_millisecond(millis).ok()))
        };
        Ok(CallProgress {
            // Not in the queue any more: it has ended.
            state: number(0)?.and_then(CallState::from_number).unwrap_or(CallState::Ended),
            outcome: number(1)?.and_then(Outcome::from_number),
            answered_at: time(2)?,
            ended_at: time(3)?,
        })
    })
    .optional()
}
