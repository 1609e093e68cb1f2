//! The end of a call in SQLite: outcome, bill line and owed callback, together.

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{bills, callbacks};
use crate::domain::claim::EndedCall;

/// Outcome, bill line and owed callback, or nothing of it if the call is not ours any more.
pub(super) fn end(db: &Connection, ended: &EndedCall) -> rusqlite::Result<bool> {
    let (call, lease) = (&ended.claimed.call, &ended.claimed.lease);
    let gone = db
        .prepare_cached("DELETE FROM call_queue WHERE call_sid = ? AND node = ? AND fence = ?")?
        .execute(params![call.sid.as_str(), lease.node.as_str(), lease.fence])?;
    if gone == 0 {
        return Ok(false);
    }
    let millis = |time: Option<Timestamp>| time.map(Timestamp::as_millisecond);
    db.prepare_cached(
        "UPDATE calls SET outcome = ?, trunk = ?, attempts = ?, dialled_at = ?, rang_at = ?, answered_at = ?, ended_at = ?, \
           sip_code = ?, reason = ? WHERE call_sid = ?",
    )?
    .execute(params![
        ended.outcome.number(),
        ended.trunk,
        ended.attempts,
        millis(ended.dialled_at),
        millis(ended.rang_at),
        millis(ended.answered_at),
        ended.ended_at.as_millisecond(),
        ended.sip_code,
        ended.reason,
        call.sid.as_str()
    ])?;
    bills::bill_call(db, ended)?;
    if let Some(owed) = &ended.callback {
        callbacks::owe(db, owed)?;
    }
    Ok(true)
}
