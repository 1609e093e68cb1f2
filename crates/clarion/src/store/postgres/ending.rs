//! The end of a call in PostgreSQL: outcome, attempt, legs, bill line and owed callback, together.

use jiff::Timestamp;

use super::group_commit::Change;
use super::group_commit::owned;
use super::legs::{self, KEEP_LEGS};
use crate::domain::bill::rating::Prefix;
use crate::domain::callback::OwedCallback;
use crate::domain::ended_call::EndedCall;
use crate::store::statements::{postgres, requests};

/// The line's price is that of `domain::bill::rating`: by the reservation, where there is one, or else by the account's rate with the
/// longest prefix, or else by the platform's. The calendar's row is held in share (see `bills::lines`), and read as it is after waiting.
const END: &str = postgres!(
    "WITH ours AS (DELETE FROM call_queue WHERE call_sid = $27 AND {holder} = $28 AND fence = $29 \
    RETURNING call_sid, attempt, legs AS legs_before), ",
    KEEP_LEGS,
    ", \
  calendar AS (SELECT first_open FROM bill_calendar FOR SHARE), \
  ended AS (UPDATE calls SET outcome = $30, trunk = $31, attempts = $32, dialled_at = $33, rang_at = $34, answered_at = $35, \
    ended_at = $36, sip_code = $37, reason = $38, prompt = coalesce($50, prompt) FROM ours WHERE calls.call_sid = ours.call_sid RETURNING calls.*, ours.attempt), \
  tried AS (INSERT INTO attempts (call_sid, attempt, number, extension, outcome, dialled_at, answered_at, ended_at, voice) \
    SELECT call_sid, attempt, number, extension, outcome, dialled_at, answered_at, ended_at, $51 FROM ended), \
  secrets AS (UPDATE request_keys SET digest = ",
    requests::WITHOUT_SECRET,
    " FROM ours \
    WHERE $50::text IS NOT NULL AND request_keys.call_sid = ours.call_sid), \
  held AS (DELETE FROM call_reservations USING ours WHERE call_reservations.call_sid = ours.call_sid RETURNING call_reservations.*), \
  rate AS (SELECT unit_seconds, price, unanswered, units AS limit_units FROM held UNION ALL \
    (SELECT unit_seconds, price, unanswered, 2147483647 FROM rates \
      WHERE account_sid IN ($46, '') AND prefix = ANY($47) AND NOT EXISTS (SELECT 1 FROM held) \
      ORDER BY account_sid DESC, length(prefix) DESC LIMIT 1)), \
  counted AS (SELECT \
      CASE WHEN $35::bigint IS NOT NULL THEN least(greatest(($40::integer - 1) / unit_seconds + 1, 1), limit_units) \
        WHEN $48 AND unanswered > 0 THEN 1 ELSE 0 END AS units, \
      CASE WHEN $35::bigint IS NULL AND $48 AND unanswered > 0 THEN unanswered ELSE price END AS rate FROM rate \
    UNION ALL SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM rate)), \
  charged AS (UPDATE accounts SET reserved = reserved - held.amount, spent = spent + counted.units * counted.rate, \
    balance = balance - counted.units * counted.rate FROM held, counted WHERE accounts.sid = $46), \
  billed AS (INSERT INTO bill_lines (order_id, account_sid, app_id, bill_day, type, call_sid, caller, called, started_at, \
      answered_at, ended_at, seconds, units, rate, fee, outcome, user_data) \
    SELECT $49, account_sid, app_id, greatest(first_open, $39), type, call_sid, coalesce(caller, ''), called, \
      coalesce(dialled_at, accepted_at), answered_at, ended_at, $40, units, rate, units * rate, $41, user_data \
    FROM ended CROSS JOIN calendar CROSS JOIN counted), \
  owed AS (INSERT INTO callbacks (call_sid, app_id, webhook_id, host, url, body, state, owed_at, due_at) \
    SELECT call_sid, app_id, $44, $45, $42, $43, {waiting}, ended_at, {now} FROM ended WHERE $42::text IS NOT NULL) \
  SELECT 1 FROM ours"
);

/// Nothing happens if the call is not ours any more.
pub(super) fn end(ended: &EndedCall) -> Change {
    let (call, lease) = (&ended.claimed.call, &ended.claimed.lease);
    let millis = |time: Option<Timestamp>| time.map(Timestamp::as_millisecond);
    let callback = ended.callback.as_ref();
    let prefixes = Prefix::all_of(call.number.digits()).into_iter();
    let prefixes: Vec<String> = prefixes.map(str::to_owned).collect();
    let mut values = legs::columns(&ended.legs);
    values.extend(owned![
        call.sid.as_str().to_owned(),
        lease.node.as_str().to_owned(),
        lease.fence,
        ended.outcome.number(),
        ended.trunk.clone(),
        i32::try_from(ended.tries).unwrap_or(i32::MAX),
        millis(ended.dialled_at),
        millis(ended.rang_at),
        millis(ended.answered_at),
        ended.ended_at.as_millisecond(),
        ended.sip_code.and_then(|code| i16::try_from(code).ok()),
        ended.reason.clone(),
        ended.bill_day.to_string(),
        ended.whole_seconds().cast_signed(),
        ended.outcome.as_str(),
        callback.map(|owed| owed.url.as_str().to_owned()),
        callback.map(|owed| owed.body.as_str().to_owned()),
        callback.map(|owed| owed.webhook_id.as_str().to_owned()),
        callback.map(OwedCallback::receiver),
        call.account.as_str().to_owned(),
        prefixes,
        ended.outcome.was_tried(),
        ended.claimed.attempt.order_id(&call.sid),
        ended.forgotten_prompt(),
        ended.voice.clone(),
    ]);
    Change {
        sid: call.sid.clone(),
        sql: END,
        values,
        frees: Some(call.callee.clone()),
    }
}
