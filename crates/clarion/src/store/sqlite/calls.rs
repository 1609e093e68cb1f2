//! Accepting calls in SQLite.

use rusqlite::{Connection, params, params_from_iter};

use super::callbacks;
use super::query::Query;
use crate::domain::callback::{EventSubscription, RespUrl};
use crate::domain::request_key::{Accepted, AcceptedCall, KnownRequest};
use crate::store::StoreError;
use crate::store::binding::millis;
use crate::store::statements::queue::stored_notice;
use crate::store::statements::{requests, sqlite};

const ACCEPT: &str = sqlite!(
    "INSERT INTO calls (call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, prompt, \
       max_talk, resp_url, user_data, type, notice, events) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING"
);
const ENQUEUE: &str = sqlite!(
    "INSERT INTO call_queue (call_sid, account_sid, app_id, callee, route, priority, due_at, expires_at, state, patience) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, {queued}, $9)"
);

/// What accepting came to.
#[derive(Debug)]
pub struct AcceptResult {
    pub accepted: Accepted,
    /// False if the call was there already.
    pub is_new: bool,
}

/// Two rows: what the call is, which stays, and its place in the queue, which goes when it ends; and one for the name of its request, where
/// it has one.
pub fn accept(db: &Connection, order: &AcceptedCall, now: i64) -> Result<AcceptResult, StoreError> {
    let nothing_new = |accepted| AcceptResult {
        accepted,
        is_new: false,
    };
    if let Some(values) = requests::key_values(order)
        && db.run(requests::KEEP.sqlite, params_from_iter(values))? == 0
        && let Some(known) = find_request(db, order)?
        && known.call != order.call.sid
    {
        return Ok(nothing_new(Accepted::Before(known)));
    }
    let (call, queueing) = (&order.call, &order.queueing);
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
        call.kind.call_type().code(),
        stored_notice(call),
        call.events.as_ref().map(EventSubscription::to_stored),
    ];
    if db.run(ACCEPT, values)? == 0 {
        return Ok(nothing_new(Accepted::New));
    }
    let values = params![
        call.sid.as_str(),
        call.account.as_str(),
        call.app.as_str(),
        call.callee,
        queueing.route.as_str(),
        queueing.priority.number(),
        now.saturating_add(millis(queueing.pause)),
        now.saturating_add(millis(queueing.valid_for)),
        queueing.patience.map(millis),
    ];
    db.run(ENQUEUE, values)?;
    callbacks::owe_events(db, &order.event, now)?;
    Ok(AcceptResult {
        accepted: Accepted::New,
        is_new: true,
    })
}

fn find_request(db: &Connection, order: &AcceptedCall) -> Result<Option<KnownRequest>, StoreError> {
    let Some(key) = &order.request else {
        return Ok(None);
    };
    let values = [order.call.app.as_str(), key.id.as_str()];
    db.row(requests::FIND.sqlite, values, |row| requests::known(row))
}
