//! The end of a call in SQLite: outcome, attempt, legs, bill line and owed callback, together.

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::query::Query;
use super::{bills, callbacks, claiming, legs};
use crate::domain::claim::EndedCall;
use crate::store::StoreError;
use crate::store::columns::Columns;
use crate::store::statements::{requests, sqlite};

const LEAVE_QUEUE: &str = sqlite!(
    "DELETE FROM call_queue WHERE call_sid = $1 AND node = $2 AND fence = $3 RETURNING callee, legs"
);
const END: &str = sqlite!(
    "UPDATE calls SET outcome = $1, trunk = $2, attempts = $3, dialled_at = $4, rang_at = $5, answered_at = $6, ended_at = $7, \
       sip_code = $8, reason = $9 WHERE call_sid = $10"
);

const FORGET_PROMPT: &str = sqlite!("UPDATE calls SET prompt = $1 WHERE call_sid = $2");
const FORGET_SECRET: &str = sqlite!(
    "UPDATE request_keys SET digest = ",
    requests::WITHOUT_SECRET,
    " WHERE call_sid = $1"
);

/// All of it, or nothing of it if the call is not ours any more.
pub(super) fn end(db: &Connection, ended: &EndedCall, now: i64) -> Result<bool, StoreError> {
    let (call, lease) = (&ended.claimed.call, &ended.claimed.lease);
    let held = params![call.sid.as_str(), lease.node.as_str(), lease.fence];
    let left = db.row(LEAVE_QUEUE, held, |row| {
        Ok((row.string(0)?, row.number(1)?))
    })?;
    let Some((callee, legs_before)) = left else {
        return Ok(false);
    };
    claiming::unpark(db, &callee)?;
    let millis = |time: Option<Timestamp>| time.map(Timestamp::as_millisecond);
    let values = params![
        ended.outcome.number(),
        ended.trunk,
        ended.tries,
        millis(ended.dialled_at),
        millis(ended.rang_at),
        millis(ended.answered_at),
        ended.ended_at.as_millisecond(),
        ended.sip_code,
        ended.reason,
        call.sid.as_str()
    ];
    db.run(END, values)?;
    if let Some(prompt) = ended.forgotten_prompt() {
        db.run(FORGET_PROMPT, params![prompt, call.sid.as_str()])?;
        db.run(FORGET_SECRET, [call.sid.as_str()])?;
    }
    legs::keep(db, &ended.claimed, &ended.legs, legs_before)?;
    legs::keep_attempt(db, ended)?;
    bills::bill_call(db, ended)?;
    if let Some(owed) = &ended.callback {
        callbacks::owe(db, owed, now)?;
    }
    Ok(true)
}
