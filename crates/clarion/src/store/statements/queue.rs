//! The queue: who holds which call and how far it has come.

use jiff::Timestamp;

use super::{Statement, statement};
use crate::domain::call::{CallSid, NewCall};
use crate::domain::call_state::CallState;
use crate::domain::callback::RespUrl;
use crate::domain::claim::{CallUpdate, ClaimedCall, Lease, NodeId, OrphanedCall, QueuedApp};
use crate::domain::phone_number::PhoneNumber;
use crate::store::StoreError;
use crate::store::columns::Columns;

/// Every application that has a call in the queue, found by leaping through the index from one to the next.
pub const QUEUED_APPS: Statement = statement!(
    "WITH RECURSIVE waiting (app_id) AS (\
       SELECT min(app_id) FROM call_queue WHERE state = {queued} \
       UNION ALL \
       SELECT (SELECT min(app_id) FROM call_queue WHERE state = {queued} AND app_id > waiting.app_id) \
       FROM waiting WHERE waiting.app_id IS NOT NULL) \
     SELECT account_sid, app_id, (SELECT min(due_at) FROM call_queue WHERE state = {queued} AND call_queue.app_id = waiting.app_id) \
     FROM waiting JOIN applications ON applications.id = app_id"
);
/// The state of a call that a lease still holds.
pub const HELD_STATE: Statement = statement!(
    "SELECT state FROM call_queue WHERE call_sid = $1 AND node = $2 AND fence = $3{for_update}"
);
/// The name stays while calls are held by it: what becomes of them begins with when it was last seen.
pub const LEAVE: Statement = statement!(
    "DELETE FROM nodes WHERE node = $1 AND NOT EXISTS (SELECT 1 FROM call_queue WHERE state > {queued} AND node = $1)"
);
pub const HELD_BY: Statement =
    statement!("SELECT call_sid FROM call_queue WHERE state > {queued} AND node = $1");
pub const CANCEL: Statement =
    statement!("UPDATE call_queue SET cancelled = TRUE WHERE call_sid = $1 RETURNING state");
pub const CANCELLED_OF: Statement = statement!(
    "SELECT call_sid FROM call_queue WHERE {is_cancelled} AND state > {queued} AND node = $1"
);
pub const DEPTH: Statement = statement!(
    "SELECT count(*), min(calls.accepted_at) FROM call_queue JOIN calls USING (call_sid) WHERE state = {queued}"
);
pub const CALLS_TO: Statement =
    statement!("SELECT count(*) FROM callee_calls WHERE callee = $1 AND claimed_at > $2");

/// What a claimed call is read from.
pub const CLAIMED: &str = "calls.call_sid, calls.account_sid, calls.app_id, calls.accepted_at, queue.expires_at, calls.called, calls.number, \
  calls.extension, calls.caller, calls.prompt, calls.max_talk, calls.resp_url, calls.user_data, queue.fence, queue.attempts";
/// The columns of `CLAIMED`.
pub const CLAIMED_COLUMNS: usize = 15;
/// What an orphaned call is read from, before the moment when its process was last seen.
pub const ORPHANED: &str =
    "queue.state, queue.trunk, queue.dialled_at, queue.rang_at, queue.answered_at, queue.dialog";

/// `None` where another node has taken the last one between the two looks at the table.
pub fn queued_app(row: &impl Columns) -> Result<Option<QueuedApp>, StoreError> {
    let Some(due_at) = row.optional_time(2)? else {
        return Ok(None);
    };
    Ok(Some(QueuedApp {
        account: row.parsed(0)?,
        app: row.parsed(1)?,
        due_at,
    }))
}

pub fn call_sid(row: &impl Columns) -> Result<CallSid, StoreError> {
    row.parsed(0)
}

pub fn call_state(row: &impl Columns) -> Result<CallState, StoreError> {
    let number = row.number(0)?;
    CallState::from_number(number)
        .ok_or_else(|| StoreError::failed(format!("there is no call state {number}")))
}

pub fn depth(row: &impl Columns) -> Result<(u64, Option<Timestamp>), StoreError> {
    Ok((row.number(0)?, row.optional_time(1)?))
}

/// Reads the columns of `CLAIMED`, with the fence as it is stored.
pub fn claimed(row: &impl Columns, node: &NodeId) -> Result<ClaimedCall, StoreError> {
    let call = NewCall {
        sid: row.parsed(0)?,
        account: row.parsed(1)?,
        app: row.parsed(2)?,
        accepted_at: row.time(3)?,
        expires_at: row.time(4)?,
        called: row.string(5)?,
        number: PhoneNumber::from_stored(row.string(6)?, row.optional_string(7)?),
        caller: row.optional_string(8)?,
        prompt: serde_json::from_str(row.text(9)?).map_err(StoreError::failed)?,
        max_talk: row.optional_number(10)?,
        resp_url: row.optional_string(11)?.map(RespUrl::from_stored),
        user_data: row.optional_string(12)?,
    };
    Ok(ClaimedCall {
        call,
        lease: Lease {
            node: node.clone(),
            fence: row.number(13)?,
        },
        attempts: row.number(14)?,
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
        last_seen: row.time(CLAIMED_COLUMNS + 6)?,
    })
}

/// The states in which a call may be updated so. It is dialled again by the next trunk before anything has rung, and where a telephone that
/// rang redirects it: then it stays where it is.
pub fn may_follow(state: CallState, update: &CallUpdate) -> bool {
    let again = matches!(state, CallState::Dialling | CallState::Ringing)
        && update.state() == CallState::Dialling;
    again || state.may_become(update.state())
}

pub fn moment(update: &CallUpdate) -> Timestamp {
    match update {
        CallUpdate::Dialling { at, .. }
        | CallUpdate::Ringing { at, .. }
        | CallUpdate::Answered { at, .. } => *at,
    }
}

/// The number of the attempt that begins, or has another leg, and its trunk.
pub fn attempt_and_trunk(update: &CallUpdate) -> (Option<i32>, Option<&str>) {
    match update {
        CallUpdate::Dialling { attempt, trunk, .. } => {
            (Some(stored_attempts(*attempt)), Some(trunk))
        }
        _ => (None, None),
    }
}

pub fn stored_attempts(attempts: u32) -> i32 {
    i32::try_from(attempts).unwrap_or(i32::MAX)
}
