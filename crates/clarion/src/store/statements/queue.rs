//! The queue: who holds which call and how far it has come.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::legs::{attempt_number, choice};
use super::{Statement, statement};
use crate::domain::call::{CallKind, CallSid, NewCall, Priority};
use crate::domain::call_state::CallState;
use crate::domain::callback::{EventSubscription, RespUrl};
use crate::domain::claim::{
    CallUpdate, CancelledCall, ClaimedCall, DueLane, Lane, Lease, NodeId, OrphanedCall, QueuedLanes,
};
use crate::domain::customer_limits::StartTokens;
use crate::domain::notice::Notice;
use crate::domain::phone_number::PhoneNumber;
use crate::domain::route::RouteKey;
use crate::store::columns::Columns;
use crate::store::{ForgetStep, StoreError};

/// Where a call waits; kept while it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// In its lane. Once held, it keeps its callee busy.
    InLane = 0,
    /// For its callee, who is being called.
    Parked = 1,
    /// For its end: it is not going to be dialled.
    SetAside = 2,
}

/// The next lane after a given one, and when its first call is due: one step of the index. It is asked for what comes after the last moment of
/// the given lane, because SQLite would otherwise step over every call of it.
pub const NEXT_LANE: &str = "SELECT queue.account_sid, queue.app_id, queue.route, queue.priority, queue.due_at FROM call_queue AS queue \
     WHERE queue.node IS NULL AND queue.parked = {in_lane} AND (queue.app_id, queue.route, queue.priority, queue.due_at) > ";
pub const LANE_ORDER: &str =
    " ORDER BY queue.app_id, queue.route, queue.priority, queue.due_at LIMIT 1";
/// The next call for a callee who is free now takes its place in its lane. The sum keeps the index of parked calls out of it: PostgreSQL would read all of
/// them, by a plan that was made while there were hardly any.
pub const UNPARK: &str = "UPDATE call_queue SET parked = {in_lane}, pass_at = NULL WHERE parked + 0 = {parked} AND call_sid ";
/// The next call for each callee of `free (callee, but_of)`, which follows: of each account that waits for them, but for one, the most urgent; and of those the
/// one that has been due for the longest, which `best (callee, call_sid)` and its row in the queue tell. What is urgent to one account is not to another:
/// none is kept waiting by the urgent calls of others. One step of the index for each account.
pub const BEST_PARKED: &str = "WITH RECURSIVE waiting (callee, but_of, account_sid) AS (SELECT callee, but_of, \
     (SELECT min(account_sid) FROM call_queue AS one WHERE one.parked = {parked} AND one.callee = free.callee) FROM ";
pub const BEST_PARKED_OF_EACH: &str = " UNION ALL SELECT callee, but_of, \
     (SELECT min(account_sid) FROM call_queue AS next WHERE next.parked = {parked} AND next.callee = waiting.callee AND next.account_sid > waiting.account_sid) \
   FROM waiting WHERE account_sid IS NOT NULL), \
   best (callee, call_sid) AS (SELECT callee, (SELECT call_sid FROM call_queue AS own WHERE own.parked = {parked} AND own.callee = waiting.callee \
     AND own.account_sid = waiting.account_sid ORDER BY priority, due_at, call_sid LIMIT 1) FROM waiting WHERE account_sid <> but_of) ";
/// The last claim of a call does not count for its callee: nothing has rung. Earlier attempts of the same call stay counted.
pub const UNCOUNT: Statement = statement!(
    "DELETE FROM callee_calls WHERE callee = $1 AND call_sid = $2 \
       AND claimed_at = (SELECT max(last.claimed_at) FROM callee_calls AS last WHERE last.callee = $1 AND last.call_sid = $2)"
);
/// The state of a call that a lease still holds.
pub const HELD_STATE: Statement = statement!(
    "SELECT state FROM call_queue WHERE call_sid = $1 AND {holder} = $2 AND fence = $3{for_update}"
);
/// The name stays while calls are held by it: what becomes of them begins with when it was last seen.
pub const LEAVE: Statement = statement!(
    "DELETE FROM nodes WHERE node = $1 AND NOT EXISTS (SELECT 1 FROM call_queue WHERE node = $1)"
);
/// What it had to do, others may do at once.
pub const LEAVE_DUTIES: Statement = statement!("DELETE FROM leases WHERE node = $1");
pub const HELD_BY: Statement = statement!("SELECT call_sid FROM call_queue WHERE node = $1");
pub const CANCEL: Statement = statement!(
    "UPDATE call_queue SET cancelled = TRUE, cancel_before_answer = FALSE WHERE call_sid = $1 RETURNING state"
);
/// By its application ($2 is the account): where it says so ($3), only if nobody has answered, and never after somebody has confirmed. One without that
/// condition counts for more.
pub const CANCEL_OF: Statement = statement!(
    "UPDATE call_queue SET cancelled = TRUE, cancel_before_answer = $3 AND (cancel_before_answer OR NOT cancelled) \
     WHERE call_sid = $1 AND account_sid = $2 AND (NOT $3 OR state < {answered}) AND coalesce(choice, 'stop') = 'stop' RETURNING state"
);
/// What it is about is over: it ends before it is answered, or when the talk is over. One that somebody has cancelled stays cancelled.
pub const RESOLVE: Statement = statement!(
    "UPDATE call_queue SET cancelled = TRUE, resolved = (NOT cancelled OR cancel_before_answer), cancel_before_answer = (NOT cancelled OR cancel_before_answer) \
     WHERE call_sid = $1 RETURNING state"
);
pub const CANCELLED_OF: Statement = statement!(
    "SELECT call_sid, cancel_before_answer FROM call_queue \
     WHERE {is_cancelled} AND node = $1 AND (NOT cancel_before_answer OR state < {answered})"
);
pub const DEPTH: Statement = statement!("SELECT count(*) FROM call_queue WHERE node IS NULL");
/// The oldest calls first: callSids sort by time. One that still owes something is kept until that is settled.
pub const OLD_CALLS: Statement = statement!(
    "SELECT call_sid, ended_at IS NOT NULL AND ended_at < $2 \
         AND NOT EXISTS (SELECT 1 FROM callbacks WHERE callbacks.call_sid = oldest.call_sid AND state < {delivered}), accepted_at < $2 \
     FROM (SELECT call_sid, accepted_at, ended_at FROM calls WHERE call_sid > $3 ORDER BY call_sid LIMIT $1) AS oldest ORDER BY call_sid"
);
/// Something that may be old enough to be forgotten.
#[derive(Debug)]
pub struct OldOne {
    sid: CallSid,
    may_go: bool,
    /// It was accepted so long ago that what follows may be old as well.
    is_old: bool,
}

pub fn old_one(row: &impl Columns) -> Result<OldOne, StoreError> {
    Ok(OldOne {
        sid: row.parsed(0)?,
        may_go: row.flag(1)?,
        is_old: row.flag(2)?,
    })
}

/// Those that go, and the step.
pub fn forget_step(seen: &[OldOne], limit: u32) -> (Vec<&str>, ForgetStep) {
    let going = seen.iter().filter(|one| one.may_go);
    let going: Vec<_> = going.map(|one| one.sid.as_str()).collect();
    let has_more = |last: &&OldOne| last.is_old && seen.len() as u64 == u64::from(limit);
    let step = ForgetStep {
        forgotten: going.len() as u64,
        stopped_at: seen.last().filter(has_more).map(|last| last.sid.clone()),
    };
    (going, step)
}

/// What a claimed call is read from.
pub const CLAIMED: &str = "calls.call_sid, calls.account_sid, calls.app_id, calls.accepted_at, coalesce(queue.to_called, calls.called), \
  coalesce(queue.to_number, calls.number), CASE WHEN queue.to_number IS NULL THEN calls.extension ELSE queue.to_extension END, \
  CASE WHEN queue.to_number IS NULL THEN calls.caller ELSE queue.to_caller END, \
  calls.prompt, calls.max_talk, calls.resp_url, calls.user_data, queue.fence, queue.attempts, queue.attempt, queue.callee, calls.type, \
  calls.notice, calls.events, queue.parked, queue.legs, \
  EXISTS (SELECT 1 FROM call_reservations WHERE call_reservations.call_sid = calls.call_sid), queue.route, queue.tries_before, queue.expires_at";
/// The columns of `CLAIMED`.
pub const CLAIMED_COLUMNS: usize = 25;
/// What an orphaned call is read from, before the moment when its process was last seen.
pub const ORPHANED: &str = "queue.state, queue.trunk, queue.dialled_at, queue.rang_at, queue.answered_at, queue.dialog, queue.choice";

/// A lane, and when its first call is due.
pub fn lane(row: &impl Columns) -> Result<(DueLane, i64), StoreError> {
    let priority = row.number(3)?;
    let lane = Lane {
        app: row.parsed(1)?,
        route: RouteKey::from_stored(row.string(2)?),
        priority: Priority::new(priority)
            .ok_or_else(|| StoreError::failed(format!("there is no priority {priority}")))?,
    };
    let account = row.parsed(0)?;
    Ok((DueLane { account, lane }, row.number(4)?))
}

/// Tells the lanes in which a call is due from those in which it will be.
pub fn queued_lanes(lanes: impl IntoIterator<Item = (DueLane, i64)>, now: i64) -> QueuedLanes {
    let mut queued = QueuedLanes::default();
    for (lane, due_at) in lanes {
        if due_at <= now {
            queued.due.push(lane);
        } else {
            let wait = SignedDuration::from_millis(due_at - now);
            let next = queued.next_due.get_or_insert(wait);
            *next = wait.min(*next);
        }
    }
    queued
}

/// How long a call has been due in its lane: the one that has been so the longest. Who waits for a later time, or for its callee, is not late.
pub fn longest_due(lanes: &[(DueLane, i64)], now: i64) -> Option<SignedDuration> {
    let first = lanes.iter().map(|(_, due_at)| *due_at).min()?;
    (first <= now).then(|| SignedDuration::from_millis(now - first))
}

/// Two columns: the tokens, and when they were counted.
pub fn start_tokens(row: &impl Columns, column: usize) -> Result<StartTokens, StoreError> {
    Ok(StartTokens {
        thousandths: row.number(column)?,
        counted_at: row.number(column + 1)?,
    })
}

pub fn call_sid(row: &impl Columns) -> Result<CallSid, StoreError> {
    row.parsed(0)
}

pub fn cancelled(row: &impl Columns) -> Result<CancelledCall, StoreError> {
    Ok(CancelledCall {
        sid: row.parsed(0)?,
        before_answer: row.flag(1)?,
    })
}

pub fn call_state(row: &impl Columns) -> Result<CallState, StoreError> {
    let number = row.number(0)?;
    CallState::from_number(number)
        .ok_or_else(|| StoreError::failed(format!("there is no call state {number}")))
}

pub fn depth(row: &impl Columns) -> Result<u64, StoreError> {
    row.number(0)
}

pub fn call_kind(row: &impl Columns, column: usize) -> Result<CallKind, StoreError> {
    let code = row.number(column)?;
    CallKind::from_code(code)
        .ok_or_else(|| StoreError::failed(format!("there is no call of type {code}")))
}

pub fn notice(row: &impl Columns, column: usize) -> Result<Option<Arc<Notice>>, StoreError> {
    let text = row.optional_text(column)?;
    let notice = text.map(serde_json::from_str).transpose();
    Ok(notice.map_err(StoreError::failed)?.map(Arc::new))
}

/// A notice as it is stored.
pub fn stored_notice(call: &NewCall) -> Option<String> {
    let notice = call.notice.as_deref()?;
    Some(serde_json::to_string(notice).expect("it has only text keys"))
}

/// Reads the columns of `CLAIMED`, with the fence as it is stored.
pub fn claimed(row: &impl Columns, node: &NodeId) -> Result<ClaimedCall, StoreError> {
    let call = NewCall {
        sid: row.parsed(0)?,
        kind: call_kind(row, 16)?,
        account: row.parsed(1)?,
        app: row.parsed(2)?,
        accepted_at: row.time(3)?,
        called: row.string(4)?,
        number: PhoneNumber::from_stored(row.string(5)?, row.optional_string(6)?),
        callee: row.string(15)?,
        caller: row.optional_string(7)?,
        prompt: serde_json::from_str(row.text(8)?).map_err(StoreError::failed)?,
        max_talk: row.optional_number(9)?,
        resp_url: row.optional_string(10)?.map(RespUrl::from_stored),
        user_data: row.optional_string(11)?,
        notice: notice(row, 17)?,
        events: row
            .optional_text(18)?
            .and_then(EventSubscription::from_stored),
    };
    Ok(ClaimedCall {
        call,
        lease: Lease {
            node: node.clone(),
            fence: row.number(12)?,
        },
        tries: row.number(13)?,
        tries_before: row.number(23)?,
        attempt: attempt_number(row, 14)?,
        is_counted: row.number::<i16>(19)? == Waiting::InLane as i16,
        legs_before: row.number(20)?,
        is_reserved: row.flag(21)?,
        only_trunk: RouteKey::from_stored(row.string(22)?)
            .only_trunk()
            .map(str::to_owned),
        time_left: None,
    })
}

/// The same, of a call that is taken to be dialled, at this moment of the store's clock.
pub fn claimed_at(row: &impl Columns, node: &NodeId, now: i64) -> Result<ClaimedCall, StoreError> {
    let expires_at: i64 = row.number(24)?;
    Ok(ClaimedCall {
        time_left: Some(SignedDuration::from_millis(expires_at - now)),
        ..claimed(row, node)?
    })
}

/// Reads the columns of `CLAIMED`, those of `ORPHANED`, and the last sight.
pub fn orphaned(row: &impl Columns, node: &NodeId) -> Result<OrphanedCall, StoreError> {
    let state = CallState::from_number(row.number(CLAIMED_COLUMNS)?);
    Ok(OrphanedCall {
        claimed: claimed(row, node)?,
        state: state.unwrap_or(CallState::Dialling),
        trunk: row.optional_string(CLAIMED_COLUMNS + 1)?,
        dialled_at: row.optional_time(CLAIMED_COLUMNS + 2)?,
        rang_at: row.optional_time(CLAIMED_COLUMNS + 3)?,
        answered_at: row.optional_time(CLAIMED_COLUMNS + 4)?,
        dialog: row.optional_string(CLAIMED_COLUMNS + 5)?,
        choice: choice(row, CLAIMED_COLUMNS + 6)?,
        last_seen: row.time(CLAIMED_COLUMNS + 7)?,
    })
}

/// The states in which a call may be updated so. It is dialled again by the next trunk before anything has rung, and where a telephone that
/// rang redirects it: then it stays where it is.
pub fn may_follow(state: CallState, update: &CallUpdate) -> bool {
    let again = match update {
        CallUpdate::Dialling { .. } => {
            matches!(state, CallState::Dialling | CallState::Ringing)
        }
        CallUpdate::Chosen { .. } => return state == CallState::Answered,
        _ => false,
    };
    again || state.may_become(update.state())
}

/// Without a pause a call that goes back keeps its place.
pub fn is_pause(pause: SignedDuration) -> bool {
    pause > SignedDuration::ZERO
}

pub fn moment(update: &CallUpdate) -> Timestamp {
    match update {
        CallUpdate::Dialling { at, .. }
        | CallUpdate::Ringing { at, .. }
        | CallUpdate::Answered { at, .. }
        | CallUpdate::Chosen { at, .. } => *at,
    }
}

/// How many trunks were tried, with the one that a leg goes over, and that one.
pub fn tries_and_trunk(update: &CallUpdate) -> (Option<i32>, Option<&str>) {
    match update {
        CallUpdate::Dialling { tries, trunk, .. } => (Some(stored_tries(*tries)), Some(trunk)),
        _ => (None, None),
    }
}

pub fn stored_tries(tries: u32) -> i32 {
    i32::try_from(tries).unwrap_or(i32::MAX)
}
