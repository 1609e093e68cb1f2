//! The end of a call in PostgreSQL: outcome, bill line and owed callback, together.

use jiff::Timestamp;

use super::claiming::UNPARK;
use super::session::Session;
use crate::domain::bill::rating::Prefix;
use crate::domain::claim::EndedCall;
use crate::store::StoreError;
use crate::store::statements::postgres;

/// The line's price is that of `domain::bill::rating`: by the reservation, where there is one, or else by the account's rate with the
/// longest prefix, or else by the platform's. The calendar's row is held in share (see `bills::lines`), and read as it is after waiting.
const END: &str = postgres!(
    "WITH gone AS (DELETE FROM call_queue WHERE call_sid = $1 AND node = $2 AND fence = $3 RETURNING call_sid), \
  calendar AS (SELECT first_open FROM bill_calendar FOR SHARE), \
  ended AS (UPDATE calls SET outcome = $4, trunk = $5, attempts = $6, dialled_at = $7, rang_at = $8, answered_at = $9, \
    ended_at = $10, sip_code = $11, reason = $12 FROM gone WHERE calls.call_sid = gone.call_sid RETURNING calls.*), \
  held AS (DELETE FROM call_reservations USING gone WHERE call_reservations.call_sid = gone.call_sid RETURNING call_reservations.*), \
  rate AS (SELECT unit_seconds, price, unanswered, units AS limit_units FROM held UNION ALL \
    (SELECT unit_seconds, price, unanswered, 2147483647 FROM rates \
      WHERE account_sid IN ($20, '') AND prefix = ANY($21) AND NOT EXISTS (SELECT 1 FROM held) \
      ORDER BY account_sid DESC, length(prefix) DESC LIMIT 1)), \
  counted AS (SELECT \
      CASE WHEN $9::bigint IS NOT NULL THEN least(greatest(($14::integer - 1) / unit_seconds + 1, 1), limit_units) \
        WHEN $22 AND unanswered > 0 THEN 1 ELSE 0 END AS units, \
      CASE WHEN $9::bigint IS NULL AND $22 AND unanswered > 0 THEN unanswered ELSE price END AS rate FROM rate \
    UNION ALL SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM rate)), \
  charged AS (UPDATE accounts SET reserved = reserved - held.amount, spent = spent + counted.units * counted.rate, \
    balance = balance - counted.units * counted.rate FROM held, counted WHERE accounts.sid = $20), \
  billed AS (INSERT INTO bill_lines (order_id, account_sid, app_id, bill_day, type, call_sid, caller, called, started_at, \
      answered_at, ended_at, seconds, units, rate, fee, outcome, user_data) \
    SELECT call_sid, account_sid, app_id, greatest(first_open, $13), {notification}, call_sid, coalesce(caller, ''), called, \
      coalesce(dialled_at, accepted_at), answered_at, ended_at, $14, units, rate, units * rate, $15, user_data \
    FROM ended CROSS JOIN calendar CROSS JOIN counted), \
  owed AS (INSERT INTO callbacks (call_sid, app_id, webhook_id, host, url, body, state, owed_at, due_at) \
    SELECT call_sid, app_id, $18, $19, $16, $17, {waiting}, ended_at, ended_at FROM ended WHERE $16::text IS NOT NULL) \
  SELECT 1 FROM gone"
);

/// Nothing happens if the call is not ours any more.
pub(super) async fn end(client: &mut Session, ended: &EndedCall) -> Result<bool, StoreError> {
    let (call, lease) = (&ended.claimed.call, &ended.claimed.lease);
    let millis = |time: Option<Timestamp>| time.map(Timestamp::as_millisecond);
    let callback = ended.callback.as_ref();
    let tried = ended.outcome.was_tried();
    let end: super::Values<'_> = &[
        &call.sid.as_str(),
        &lease.node.as_str(),
        &lease.fence,
        &ended.outcome.number(),
        &ended.trunk,
        &i32::try_from(ended.attempts).unwrap_or(i32::MAX),
        &millis(ended.dialled_at),
        &millis(ended.rang_at),
        &millis(ended.answered_at),
        &ended.ended_at.as_millisecond(),
        &ended.sip_code.and_then(|code| i16::try_from(code).ok()),
        &ended.reason,
        &ended.bill_day.to_string(),
        &ended.whole_seconds().cast_signed(),
        &ended.outcome.as_str(),
        &callback.map(|owed| owed.url.as_str()),
        &callback.map(|owed| owed.body.as_str()),
        &callback.map(|owed| owed.webhook_id.as_str()),
        &callback.map(|owed| owed.url.host()),
        &call.account.as_str(),
        &Prefix::all_of(call.number.digits()),
        &tried,
    ];
    // If the call was not ours, what is unparked finds its callee busy and is parked again.
    let unpark: super::Values<'_> = &[&vec![call.number.callee()]];
    let gone = client.commit_both((END, end), (UNPARK, unpark));
    Ok(gone.await?.len() == 1)
}
