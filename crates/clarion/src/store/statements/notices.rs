//! Notices: the end of an attempt, and what comes after it.

use super::{Statement, requests, statement};
use crate::domain::ended_call::{CallOff, EndedCall, NextDial};
use crate::store::StoreError;
use crate::store::binding::{Bind, millis};
use crate::store::columns::Columns;

/// What is known of an attempt that a lease still holds: its callee, the legs that were stored before, and whether and why its notice was called off.
pub const HELD: Statement = statement!(
    "SELECT callee, legs, cancelled, resolved, cancel_before_answer FROM call_queue WHERE call_sid = $1 AND {holder} = $2 AND fence = $3{for_update}"
);
pub const LEAVE_QUEUE: Statement = statement!("DELETE FROM call_queue WHERE call_sid = $1");
/// Before the moment from which it is due: the row of one attempt becomes that of the next, with the values of `next_values`.
pub const NEXT: &str = "UPDATE call_queue SET state = {queued}, node = NULL, parked = {in_lane}, trunk = NULL, dialled_at = NULL, rang_at = NULL, \
   answered_at = NULL, choice = NULL, held_since = NULL, pass_at = NULL, dialog = NULL, seen_at = NULL, attempts = $2, tries_before = $2, attempt = attempt + $3, legs = $4, callee = $5, route = $6, to_called = $7, \
   to_number = $8, to_extension = $9, to_caller = $10, patience = $11, due_at = ";
/// After that.
pub const OF_CALL: &str = " WHERE call_sid = $1";
pub const END: Statement = statement!(
    "UPDATE calls SET outcome = $1, trunk = $2, attempts = $3, dialled_at = $4, rang_at = $5, answered_at = $6, ended_at = $7, \
       sip_code = $8, reason = $9, ending = $11, confirmed_by = $12, confirm_key = $13, answered_by = $14 WHERE call_sid = $10"
);

/// What is to be forgotten of a call that is over: its prompt, and the part of its request's digest that was made of it.
pub const FORGET_PROMPT: Statement = statement!("UPDATE calls SET prompt = $1 WHERE call_sid = $2");
pub const FORGET_SECRET: Statement = statement!(
    "UPDATE request_keys SET digest = ",
    requests::WITHOUT_SECRET,
    " WHERE call_sid = $1"
);

/// The row of an attempt that is held, and what is known of it.
#[derive(Debug)]
pub struct HeldAttempt {
    pub callee: String,
    /// Legs of it that were stored before.
    pub legs_before: u32,
    pub called_off: Option<CallOff>,
}

pub fn held(row: &impl Columns) -> Result<HeldAttempt, StoreError> {
    let reason = match (row.flag(3)?, row.flag(4)?) {
        (true, _) => CallOff::Resolved,
        (false, true) => CallOff::CancelledBefore,
        (false, false) => CallOff::Cancelled,
    };
    Ok(HeldAttempt {
        callee: row.string(0)?,
        legs_before: row.number(1)?,
        called_off: row.flag(2)?.then_some(reason),
    })
}

/// The values of `END`.
pub fn end_values(ended: &EndedCall) -> [Bind<'_>; 14] {
    let whole = ended.whole();
    [
        Bind::of(i64::from(whole.outcome.number())),
        Bind::of(ended.trunk.as_deref()),
        Bind::of(ended.tries),
        Bind::of(whole.dialled_at),
        Bind::of(ended.rang_at),
        Bind::of(whole.answered_at),
        Bind::of(whole.ended_at),
        Bind::of(ended.sip_code.map(i64::from)),
        Bind::of(ended.reason.as_deref()),
        Bind::of(ended.sid().as_str()),
        Bind::of(whole.ending.map(|ending| i64::from(ending.number()))),
        Bind::of(whole.confirmed.map(|confirmed| confirmed.called.as_str())),
        Bind::of(whole.confirmed.map(|confirmed| confirmed.key.to_string())),
        Bind::of(whole.answered_by.map(|by| i64::from(by.number()))),
    ]
}

/// The first eleven values of `NEXT`.
pub fn next_values<'a>(
    ended: &'a EndedCall,
    next: &'a NextDial,
    legs_before: u32,
) -> [Bind<'a>; 11] {
    let was_dialled = ended.was_dialled(legs_before);
    [
        Bind::of(ended.sid().as_str()),
        Bind::of(ended.tries),
        Bind::of(i64::from(was_dialled)),
        // An attempt begins with none; one that makes way for another number before anything was sent has none either.
        Bind::of(0_i64),
        Bind::of(&next.to.callee),
        Bind::of(next.route.as_str()),
        Bind::of(&next.to.called),
        Bind::of(next.to.number.digits()),
        Bind::of(next.to.number.extension()),
        Bind::of(next.to.caller.as_deref()),
        Bind::of(next.patience.map(millis)),
    ]
}
