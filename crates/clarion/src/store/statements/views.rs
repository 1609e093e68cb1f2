//! What operators look at.

use jiff::{SignedDuration, Timestamp};

use super::queue::{call_kind, notice};
use super::{Statement, audit_trail, bill_lines, statement};
use crate::domain::account::{AccountSid, AppId};
use crate::domain::bill::Totals;
use crate::domain::call::{CallSid, NewCall};
use crate::domain::call_record::CallFilter;
use crate::domain::call_state::CallState;
use crate::domain::callback::{EVENTS_AT, EventSubscription, RespUrl};
use crate::domain::outcome::Outcome;
use crate::domain::phone_number::PhoneNumber;
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::columns::Columns;
use crate::store::views::{BilledAccount, DayTotals, SeenNode, WaitingAccount, WaitingReceiver};

/// Later than any callSid.
const END: &str = "~";

/// CallSids before $1 and from $2 on, at most $3.
pub const ALL_SIDS: Statement = statement!(
    "SELECT call_sid FROM calls WHERE call_sid < $1 AND call_sid >= $2 ORDER BY call_sid DESC LIMIT $3"
);
pub const ALIVE_SIDS: Statement = statement!(
    "SELECT call_sid FROM call_queue WHERE call_sid < $1 AND call_sid >= $2 ORDER BY call_sid DESC LIMIT $3"
);
pub const RUNNING_SIDS: Statement = statement!(
    "SELECT call_sid FROM call_queue WHERE node IS NOT NULL AND call_sid < $1 AND call_sid >= $2 ORDER BY call_sid DESC LIMIT $3"
);
/// What else is asked of a call whose key is known. A value that is not there asks nothing.
pub const WANTED: &str = " AND (CAST($2 AS TEXT) IS NULL OR calls.account_sid = $2) AND (CAST($3 AS TEXT) IS NULL OR calls.app_id = $3) \
     AND (CAST($4 AS TEXT) IS NULL OR calls.number = $4) AND (CAST($5 AS SMALLINT) IS NULL OR calls.outcome = $5) \
     AND (CAST($6 AS SMALLINT) IS NULL OR coalesce(queue.state, {ended}) = $6) \
     AND (CAST($7 AS TEXT) IS NULL OR coalesce(calls.trunk, queue.trunk) = $7) AND (CAST($8 AS TEXT) IS NULL OR calls.caller = $8) \
     AND (CAST($9 AS TEXT) IS NULL OR calls.user_data LIKE $9 ESCAPE '\\')";
pub const ACCEPTED: Statement = statement!(
    "SELECT call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, prompt, max_talk, resp_url, user_data, type, notice, events \
     FROM calls WHERE call_sid = $1"
);
/// CallSid and number of an attempt make the id of its line: none of another call lies in between.
pub const LINES: Statement = statement!(
    "SELECT ",
    bill_lines::LINE,
    " FROM bill_lines WHERE order_id >= $1 AND order_id < $2 ORDER BY ended_at, order_id"
);
/// Before the moment by which leases end.
pub const NODES: &str =
    "SELECT node, steady_since, heartbeat_at, coalesce(schema_version, 0), lease_until > ";
pub const OF_NODES: &str = ", concerns FROM nodes ORDER BY heartbeat_at DESC, node LIMIT 100";
pub const TELL_CONCERNS: Statement = statement!("UPDATE nodes SET concerns = $2 WHERE node = $1");
pub const RUNNING: Statement = statement!(
    "SELECT state, count(*) FROM call_queue WHERE node IS NOT NULL GROUP BY state ORDER BY state"
);
/// Before the moment now. Of those that wait, some are due in their lane.
pub const WAITING: &str = "SELECT account_sid, count(*), count(CASE WHEN parked = {in_lane} AND due_for >= 0 THEN 1 END), \
       max(CASE WHEN parked = {in_lane} AND due_for >= 0 THEN due_for END) \
     FROM (SELECT account_sid, parked, ";
pub const OF_WAITING: &str =
    " - due_at AS due_for FROM call_queue WHERE node IS NULL) AS waiting GROUP BY account_sid";
/// Those that fail first, and with each row what all receivers wait for.
pub const RECEIVERS: Statement = statement!(
    "SELECT host, count(*), min(owed_at), CAST(sum(count(*)) OVER () AS BIGINT), min(min(owed_at)) OVER () \
     FROM callbacks WHERE state = {waiting} GROUP BY host \
     ORDER BY CASE WHEN max(failures) > 0 THEN 0 ELSE 1 END, count(*) DESC, host LIMIT $1"
);
pub const GIVEN_UP_SINCE: Statement = statement!(
    "SELECT count(*) FROM (SELECT 1 FROM callbacks WHERE state = {given_up} AND seq = 0 AND call_sid > $1 LIMIT $2) AS given_up"
);
/// Of what waits for a receiver, what waits the longest from now on: if any was tried in vain, it is one of those.
pub const LAST_DUE: Statement = statement!(
    "SELECT call_sid, seq, failures FROM callbacks WHERE state = {waiting} AND host = $1 ORDER BY due_at DESC LIMIT 1"
);
pub const LAST_ATTEMPT: Statement = statement!(
    "SELECT started_at, duration, verdict, status, error, answer FROM callback_attempts WHERE call_sid = $1 AND seq = $2 \
     ORDER BY attempt DESC LIMIT 1"
);
pub const BILLED: Statement = statement!(
    "SELECT day, account_sid, CAST(sum(lines) AS BIGINT), CAST(sum(fee) AS BIGINT), count(*), \
       (SELECT name FROM accounts WHERE sid = account_sid) FROM bill_files \
     WHERE day >= $1 AND day <= $2 AND keywords = '' GROUP BY day, account_sid ORDER BY day DESC, account_sid"
);
pub const ACCEPTED_SINCE: Statement = statement!("SELECT count(*) FROM calls WHERE call_sid > $1");
pub const DAY_TOTALS: Statement = statement!(
    "SELECT day, CAST(sum(lines) AS BIGINT), CAST(sum(fee) AS BIGINT), count(*) FROM bill_files WHERE keywords = '' GROUP BY day ORDER BY day"
);

/// The ends of a list: before the first, and from the second on.
pub fn ends(filter: &CallFilter) -> (String, String) {
    let text = |sid: Option<&CallSid>| sid.map(ToString::to_string);
    (
        text(filter.before.as_ref()).unwrap_or_else(|| END.to_owned()),
        text(filter.from.as_ref()).unwrap_or_default(),
    )
}

/// The values of `WANTED`, after the key.
pub fn wanted(filter: &CallFilter) -> [Bind<'_>; 8] {
    let search = &filter.search;
    let number = |number: Option<i16>| Bind::of(number.map(i64::from));
    [
        filter.account.as_ref().map(AccountSid::as_str).into(),
        filter.app.as_ref().map(AppId::as_str).into(),
        filter.number.as_deref().into(),
        number(search.outcome.map(Outcome::number)),
        number(search.state.map(CallState::number)),
        search.trunk.as_deref().into(),
        search.caller.as_deref().into(),
        search
            .user_data
            .as_deref()
            .map(audit_trail::containing)
            .into(),
    ]
}

pub fn sid(row: &impl Columns) -> Result<CallSid, StoreError> {
    row.parsed(0)
}

pub fn accepted(row: &impl Columns) -> Result<NewCall, StoreError> {
    let number = PhoneNumber::from_stored(row.string(5)?, row.optional_string(6)?);
    Ok(NewCall {
        sid: row.parsed(0)?,
        kind: call_kind(row, 12)?,
        account: row.parsed(1)?,
        app: row.parsed(2)?,
        accepted_at: row.time(3)?,
        called: row.string(4)?,
        callee: number.digits().to_owned(),
        number,
        caller: row.optional_string(7)?,
        prompt: serde_json::from_str(row.text(8)?).map_err(StoreError::failed)?,
        max_talk: row.optional_number(9)?,
        resp_url: row.optional_string(10)?.map(RespUrl::from_stored),
        user_data: row.optional_string(11)?,
        notice: notice(row, 13)?,
        events: row
            .optional_text(14)?
            .and_then(EventSubscription::from_stored),
    })
}

/// The ids of a call's lines lie from the first to before the second.
pub fn line_ids(call: &CallSid) -> [String; 2] {
    [call.to_string(), format!("{call}.")]
}

pub fn node(row: &impl Columns) -> Result<SeenNode, StoreError> {
    Ok(SeenNode {
        name: row.string(0)?,
        steady_since: row.time(1)?,
        heartbeat_at: row.time(2)?,
        schema: row.number(3)?,
        is_alive: row.flag(4)?,
        concerns: row.optional_string(5)?,
    })
}

pub fn running(row: &impl Columns) -> Result<(CallState, u64), StoreError> {
    Ok((super::queue::call_state(row)?, row.number(1)?))
}

pub fn waiting(row: &impl Columns) -> Result<WaitingAccount, StoreError> {
    Ok(WaitingAccount {
        account: row.parsed(0)?,
        waiting: row.number(1)?,
        due: row.number(2)?,
        due_for: row.optional_number(3)?.map(SignedDuration::from_millis),
    })
}

/// Without its last attempt.
pub fn receiver(row: &impl Columns) -> Result<WaitingReceiver, StoreError> {
    let (host, oldest_owed_at): (_, Timestamp) = (row.string(0)?, row.time(2)?);
    let of_events = host.strip_prefix(EVENTS_AT);
    Ok(WaitingReceiver {
        is_of_events: of_events.is_some(),
        host: of_events.unwrap_or(&host).to_owned(),
        waiting: row.number(1)?,
        oldest_owed_at,
        failures: 0,
        last_attempt: None,
    })
}

/// How many callbacks wait for all receivers, and since when the oldest does: told by each row of a receiver.
pub fn all_receivers(row: &impl Columns) -> Result<(u64, Timestamp), StoreError> {
    Ok((row.number(3)?, row.time(4)?))
}

pub fn count(row: &impl Columns) -> Result<u64, StoreError> {
    row.number(0)
}

pub fn day_totals(row: &impl Columns) -> Result<DayTotals, StoreError> {
    Ok(DayTotals {
        day: row.parsed(0)?,
        totals: Totals {
            lines: row.number(1)?,
            fee: row.money(2)?,
        },
        files: row.number(3)?,
    })
}

pub fn billed(row: &impl Columns) -> Result<BilledAccount, StoreError> {
    Ok(BilledAccount {
        day: row.parsed(0)?,
        account: row.parsed(1)?,
        totals: Totals {
            lines: row.number(2)?,
            fee: row.money(3)?,
        },
        files: row.number(4)?,
        name: row.optional_string(5)?,
    })
}
