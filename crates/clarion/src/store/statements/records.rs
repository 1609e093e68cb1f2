//! What operators and applications ask about calls, and what operators switch.

use super::queue::{call_kind, notice};
use super::{Statement, statement};
use crate::domain::attempt::AttemptNumber;
use crate::domain::call::{CallProgress, NoticeProgress, Priority};
use crate::domain::call_record::{CallRecord, CurrentAttempt};
use crate::domain::call_state::CallState;
use crate::domain::callback::EventSubscription;
use crate::domain::hearing::AnsweredBy;
use crate::domain::notice::ending::{Confirmation, NoticeEnding};
use crate::domain::notice::keys;
use crate::domain::outcome::Outcome;
use crate::domain::phone_number::PhoneNumber;
use crate::store::columns::Columns;
use crate::store::{BarredChange, StoreError};

/// When the talk of a call that is over was at its end: of a notice, which may have waited for long after it, that of the last attempt that was dialled.
macro_rules! talk_ended {
    () => {
        "CASE WHEN calls.ending IS NULL THEN calls.ended_at ELSE coalesce((SELECT ended_at FROM attempts AS last \
           WHERE last.call_sid = calls.call_sid AND last.dialled_at IS NOT NULL ORDER BY last.attempt DESC LIMIT 1), calls.ended_at) END"
    };
}
/// What a record is read from: `calls`, and `call_queue` as `queue`.
pub const RECORD: &str = concat!(
    "SELECT calls.call_sid, calls.account_sid, calls.app_id, calls.called, calls.number, calls.extension, calls.caller, \
  queue.state, calls.outcome, coalesce(calls.trunk, queue.trunk), coalesce(calls.attempts, queue.attempts, 0), calls.accepted_at, \
  queue.due_at, coalesce(calls.dialled_at, queue.dialled_at), coalesce(calls.rang_at, queue.rang_at), \
  coalesce(calls.answered_at, queue.answered_at), calls.ended_at, calls.sip_code, calls.reason, calls.type, \
  queue.attempt, coalesce(queue.to_number, calls.number), \
  CASE WHEN queue.to_number IS NULL THEN calls.extension ELSE queue.to_extension END, calls.notice, calls.ending, calls.events, ",
    talk_ended!(),
    ", (SELECT request_id FROM request_keys WHERE request_keys.call_sid = calls.call_sid LIMIT 1), queue.priority, queue.expires_at",
    " FROM calls"
);

pub const CALL: Statement = statement!(
    RECORD,
    " LEFT JOIN call_queue AS queue USING (call_sid) WHERE call_sid = $1"
);
pub const PROGRESS: Statement = statement!(
    "SELECT queue.state, calls.outcome, coalesce(calls.answered_at, queue.answered_at), ",
    talk_ended!(),
    ", \
       CASE WHEN calls.notice IS NOT NULL THEN (SELECT count(*) FROM attempts \
         WHERE attempts.call_sid = calls.call_sid AND attempts.dialled_at IS NOT NULL) END, calls.ending, calls.confirmed_by, calls.confirm_key, calls.answered_by \
       FROM calls LEFT JOIN call_queue AS queue USING (call_sid) WHERE call_sid = $1 AND calls.account_sid = $2"
);
pub const SET_SWITCH: Statement = statement!(
    "INSERT INTO switches (name, value, set_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO UPDATE SET value = $2, set_at = $3"
);
pub const RESET_SWITCH: Statement = statement!("DELETE FROM switches WHERE name = $1");
pub const SWITCHES: Statement = statement!("SELECT name, value FROM switches ORDER BY name");
pub const BARRED: Statement = statement!("SELECT number FROM do_not_call ORDER BY number");
pub const BARRED_REVISION: Statement =
    statement!("SELECT coalesce(max(revision), 0) FROM do_not_call_changes");
pub const BARRED_CHANGES: Statement = statement!(
    "SELECT revision, number, is_barred FROM do_not_call_changes WHERE revision > $1 ORDER BY revision"
);
pub const CANCEL_CALLS_OF: Statement = statement!(
    "UPDATE call_queue SET cancelled = TRUE, cancel_before_answer = FALSE \
     WHERE account_sid = $1 AND (NOT cancelled OR cancel_before_answer)"
);
/// Changes are kept for this long: a server reads them every second.
pub const CHANGES_KEPT_MS: i64 = 7 * 24 * 3_600_000;

pub fn barred_change(row: &impl Columns) -> Result<BarredChange, StoreError> {
    Ok(BarredChange {
        revision: row.number(0)?,
        digits: row.string(1)?,
        is_barred: row.flag(2)?,
    })
}

pub fn record(row: &impl Columns) -> Result<CallRecord, StoreError> {
    Ok(CallRecord {
        sid: row.parsed(0)?,
        kind: call_kind(row, 19)?,
        account: row.parsed(1)?,
        app: row.parsed(2)?,
        called: row.string(3)?,
        number: PhoneNumber::from_stored(row.string(4)?, row.optional_string(5)?),
        caller: row.optional_string(6)?,
        state: state(row, 7)?,
        outcome: outcome(row, 8)?,
        trunk: row.optional_string(9)?,
        tries: row.number(10)?,
        accepted_at: row.time(11)?,
        due_at: row.optional_time(12)?,
        dialled_at: row.optional_time(13)?,
        rang_at: row.optional_time(14)?,
        answered_at: row.optional_time(15)?,
        ended_at: row.optional_time(16)?,
        sip_code: row.optional_number(17)?,
        reason: row.optional_string(18)?,
        current: current_attempt(row)?,
        notice: notice(row, 23)?,
        ending: row.optional_number(24)?.and_then(NoticeEnding::from_number),
        events: row
            .optional_text(25)?
            .and_then(EventSubscription::from_stored),
        talk_ended_at: row.optional_time(26)?,
        request_id: row.optional_string(27)?,
        priority: row.optional_number(28)?.and_then(Priority::new),
        expires_at: row.optional_time(29)?,
    })
}

/// Of a call that is in the queue.
fn current_attempt(row: &impl Columns) -> Result<Option<CurrentAttempt>, StoreError> {
    let number = row.optional_number(20)?.and_then(AttemptNumber::new);
    let to = PhoneNumber::from_stored(row.string(21)?, row.optional_string(22)?);
    Ok(number.map(|number| CurrentAttempt { number, to }))
}

pub fn progress(row: &impl Columns) -> Result<CallProgress, StoreError> {
    let ending = row.optional_number(5)?;
    let answered_by = row.optional_number(8)?;
    let key = row.optional_text(7)?.and_then(keys::key);
    let confirmed = row.optional_string(6)?.zip(key);
    Ok(CallProgress {
        state: state(row, 0)?,
        outcome: outcome(row, 1)?,
        answered_at: row.optional_time(2)?,
        ended_at: row.optional_time(3)?,
        notice: row.optional_number(4)?.map(|attempts| NoticeProgress {
            attempts,
            ending: ending.and_then(NoticeEnding::from_number),
            confirmed: confirmed.map(|(called, key)| Confirmation { called, key }),
            answered_by: answered_by.and_then(AnsweredBy::from_number),
        }),
    })
}

/// A call that is not in the queue any more has ended.
fn state(row: &impl Columns, column: usize) -> Result<CallState, StoreError> {
    let number = row.optional_number(column)?;
    Ok(number
        .and_then(CallState::from_number)
        .unwrap_or(CallState::Ended))
}

fn outcome(row: &impl Columns, column: usize) -> Result<Option<Outcome>, StoreError> {
    Ok(row.optional_number(column)?.and_then(Outcome::from_number))
}

pub fn switch(row: &impl Columns) -> Result<(String, String), StoreError> {
    Ok((row.string(0)?, row.string(1)?))
}
