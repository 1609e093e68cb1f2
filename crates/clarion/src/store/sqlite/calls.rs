//! Accepting calls in SQLite.

use rusqlite::{Connection, params};

use super::query::Query;
use crate::domain::call::{NewCall, Queueing};
use crate::domain::callback::RespUrl;
use crate::store::StoreError;
use crate::store::binding::millis;
use crate::store::statements::sqlite;

const ACCEPT: &str = sqlite!(
    "INSERT INTO calls (call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, prompt, \
       max_talk, resp_url, user_data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING"
);
const ENQUEUE: &str = sqlite!(
    "INSERT INTO call_queue (call_sid, account_sid, app_id, callee, route, priority, due_at, expires_at, state) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, {queued})"
);

/// Two rows: what the call is, which stays, and its place in the queue, which goes when it ends. False if it was there already.
pub fn accept(
    db: &Connection,
    call: &NewCall,
    queueing: &Queueing,
    now: i64,
) -> Result<bool, StoreError> {
    let prompt = serde_json::to_string(&call.prompt).map_err(StoreError::failed)?;
    let values = params![
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
    ];
    if db.run(ACCEPT, values)? == 0 {
        return Ok(false);
    }
    let values = params![
        call.sid.as_str(),
        call.account.as_str(),
        call.app.as_str(),
        call.number.callee(),
        queueing.route.as_str(),
        queueing.priority.number(),
        now.saturating_add(millis(queueing.pause)),
        now.saturating_add(millis(queueing.valid_for)),
    ];
    db.run(ENQUEUE, values)?;
    Ok(true)
}
