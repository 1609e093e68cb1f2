//! The end of an attempt in SQLite: outcome, attempt, legs, bill line, and the owed callback or the next attempt, together.

use rusqlite::{Connection, params, params_from_iter};

use super::query::Query;
use super::{bills, callbacks, claiming, do_not_call, legs};
use crate::domain::bill::rating::Charge;
use crate::domain::ended_call::{EndedCall, GoingOn, WentOn};
use crate::store::StoreError;
use crate::store::binding::{Bind, millis};
use crate::store::statements::notices::{self, HeldAttempt};
use crate::store::statements::{queue, sqlite};

const NEXT: &str = sqlite!(notices::NEXT, "$12", notices::OF_CALL);

/// All of it, or nothing of it if the call is not ours any more.
pub(super) fn end(db: &Connection, ended: &EndedCall, now: i64) -> Result<bool, StoreError> {
    let Some(held) = held(db, ended)? else {
        return Ok(false);
    };
    let ended = ended.judged(held.called_off);
    let charge = settle(db, &ended, &held)?;
    keep_line(db, &ended, &held, charge, true)?;
    close(db, &ended, &held, now)?;
    Ok(true)
}

/// The attempt ends and the next one is born, or the notice ends with it.
pub(super) fn go_on(db: &Connection, going: &GoingOn, now: i64) -> Result<WentOn, StoreError> {
    let (ended, next) = (&going.ended, &going.next);
    let Some(held) = held(db, ended)? else {
        return Ok(WentOn::NotOurs);
    };
    // What the attempt costs comes first: the next one is paid from what is left.
    let charge = settle(db, ended, &held)?;
    let over = if let Some(reason) = held.called_off {
        Some(going.if_called_off.by(reason))
    } else if !bills::reserve_next(db, &ended.claimed.call, next)? {
        Some(&going.if_unpaid)
    } else {
        None
    };
    keep_line(db, ended, &held, charge, over.is_some())?;
    if let Some(over) = over {
        close(db, &going.as_last(over), &held, now)?;
        return Ok(WentOn::Over(over.end.ending));
    }
    if ended.claimed.is_counted && !ended.was_dialled(held.legs_before) {
        let claimed = [held.callee.as_str(), ended.sid().as_str()];
        db.run(queue::UNCOUNT.sqlite, claimed)?;
    }
    let values = notices::next_values(ended, next, held.legs_before);
    let due_at = Bind::of(now.saturating_add(millis(next.pause)));
    db.run(NEXT, params_from_iter(values.into_iter().chain([due_at])))?;
    callbacks::owe_events(db, &ended.events, now)?;
    claiming::unpark(db, &held.callee)?;
    Ok(WentOn::Yes)
}

fn held(db: &Connection, ended: &EndedCall) -> Result<Option<HeldAttempt>, StoreError> {
    let lease = &ended.claimed.lease;
    let values = params![ended.sid().as_str(), lease.node.as_str(), lease.fence];
    db.row(notices::HELD.sqlite, values, |row| notices::held(row))
}

/// Its legs are kept, and what was set aside for it is given back: what it costs.
fn settle(db: &Connection, ended: &EndedCall, held: &HeldAttempt) -> Result<Charge, StoreError> {
    legs::keep(db, &ended.claimed, &ended.legs, held.legs_before)?;
    // Where the key itself could not be written, its end makes that good.
    if let Some(source) = ended.unwanted() {
        let call = &ended.claimed.call;
        do_not_call::add(
            db,
            &call.account,
            call.number.digits(),
            &source,
            ended.ended_at,
        )?;
    }
    bills::charge(db, ended)
}

/// The row of an attempt and its bill line, where it has them.
fn keep_line(
    db: &Connection,
    ended: &EndedCall,
    held: &HeldAttempt,
    charge: Charge,
    is_last: bool,
) -> Result<(), StoreError> {
    if ended.has_line(held.legs_before, is_last) {
        legs::keep_attempt(db, ended, held.legs_before)?;
        bills::bill_call(db, ended, charge)?;
    }
    Ok(())
}

/// The call is over: it leaves the queue, and its callback is owed.
fn close(
    db: &Connection,
    ended: &EndedCall,
    held: &HeldAttempt,
    now: i64,
) -> Result<(), StoreError> {
    let sid = ended.sid().as_str();
    db.run(notices::LEAVE_QUEUE.sqlite, [sid])?;
    claiming::unpark(db, &held.callee)?;
    db.run(
        notices::END.sqlite,
        params_from_iter(notices::end_values(ended)),
    )?;
    if let Some(prompt) = ended.forgotten_prompt() {
        db.run(notices::FORGET_PROMPT.sqlite, params![prompt, sid])?;
        db.run(notices::FORGET_SECRET.sqlite, [sid])?;
    }
    for owed in ended.callback.iter().chain(&ended.silence()) {
        callbacks::owe(db, owed, now)?;
    }
    callbacks::owe_events(db, &ended.events, now)
}
