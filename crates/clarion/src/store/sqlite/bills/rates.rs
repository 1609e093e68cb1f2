//! What calls cost, what is set aside for them, and what an account has spent.

use rusqlite::{Connection, params, params_from_iter};

use super::super::calls;
use super::super::held_call::held_state;
use super::super::query::Query;
use crate::domain::account::AccountSid;
use crate::domain::bill::rating::{Charge, Funds, Prefix, Rate, Reservation, Shortage};
use crate::domain::call::{CallSid, NewCall};
use crate::domain::claim::Lease;
use crate::domain::ended_call::{EndedCall, NextDial};
use crate::domain::money::Money;
use crate::domain::request_key::{Accepted, AcceptedCall};
use crate::store::StoreError;
use crate::store::statements::rates::{self, RATE};
use crate::store::statements::{bill_lines, sqlite};

/// The account's own rate with the longest prefix, or else the platform's.
const RATE_FOR: &str = sqlite!(
    "SELECT ",
    RATE,
    " FROM rates WHERE account_sid IN ($1, '') AND prefix IN (SELECT value FROM json_each($2)) \
     ORDER BY account_sid DESC, length(prefix) DESC LIMIT 1"
);

pub fn set(db: &Connection, account: &str, rate: &Rate) -> Result<(), StoreError> {
    let values = rates::rate_values(account, rate);
    db.run(rates::SET.sqlite, params_from_iter(values))?;
    Ok(())
}

pub fn remove(db: &Connection, account: &AccountSid, prefix: &Prefix) -> Result<bool, StoreError> {
    let removed = db.run(rates::REMOVE.sqlite, [account.as_str(), prefix.as_str()])?;
    Ok(removed == 1)
}

pub fn all(db: &Connection, account: Option<&AccountSid>) -> Result<Vec<Rate>, StoreError> {
    let account = account.map_or("", AccountSid::as_str);
    db.rows(rates::ALL.sqlite, [account], |row| rates::rate(row))
}

pub fn set_defaults(db: &Connection, rates: &[Rate]) -> Result<(), StoreError> {
    db.run(rates::CLEAR_DEFAULTS.sqlite, [])?;
    rates.iter().try_for_each(|rate| set(db, "", rate))
}

fn rate_for(
    db: &Connection,
    account: &AccountSid,
    digits: &str,
) -> Result<Option<Rate>, StoreError> {
    let prefixes = serde_json::Value::from(Prefix::all_of(digits)).to_string();
    db.row(RATE_FOR, [account.as_str(), &prefixes], |row| {
        rates::rate(row)
    })
}

pub fn funds(db: &Connection, account: &AccountSid) -> Result<Option<Funds>, StoreError> {
    db.row(rates::FUNDS.sqlite, [account.as_str()], |row| {
        rates::funds(row)
    })
}

/// A refusal is no failure: the other changes of the commit need not be done again because of it.
pub fn accept(
    db: &Connection,
    order: &AcceptedCall,
    longest_talk: u32,
    now: i64,
) -> Result<Result<Accepted, Shortage>, StoreError> {
    let call = &order.call;
    let affordable = affordable(db, &call.account, call.number.digits(), longest_talk)?;
    let reservation = match affordable {
        Ok(Some(reservation)) => reservation,
        Ok(None) => return Ok(Ok(calls::accept(db, order, now)?.accepted)),
        Err(shortage) => {
            let known = db.exists(bill_lines::IS_CALL.sqlite, [call.sid.as_str()])?;
            return Ok(if known {
                Ok(Accepted::New)
            } else {
                Err(shortage)
            });
        }
    };
    let result = calls::accept(db, order, now)?;
    // A repeated accept sets nothing aside again.
    if result.is_new {
        reserve(db, call, &reservation)?;
    }
    Ok(Ok(result.accepted))
}

/// What is to be set aside for a call; nothing where it is free.
fn affordable(
    db: &Connection,
    account: &AccountSid,
    digits: &str,
    longest_talk: u32,
) -> Result<Result<Option<Reservation>, Shortage>, StoreError> {
    let rate = rate_for(db, account, digits)?.filter(|rate| !rate.is_free());
    let (Some(rate), Some(funds)) = (rate, funds(db, account)?) else {
        return Ok(Ok(None));
    };
    Ok(funds.reserve(&rate, longest_talk).map(Some))
}

fn reserve(db: &Connection, call: &NewCall, reservation: &Reservation) -> Result<(), StoreError> {
    let values = rates::reservation_values(call, reservation);
    db.run(rates::RESERVE.sqlite, params_from_iter(values))?;
    move_reserved(db, &call.account, reservation.amount)
}

/// Sets aside what the next attempt of a notice may cost. False if it cannot be paid. Whoever has neither a balance nor a limit pays afterwards.
pub fn reserve_next(db: &Connection, call: &NewCall, next: &NextDial) -> Result<bool, StoreError> {
    if funds(db, &call.account)?.is_none_or(|funds| !funds.is_limited()) {
        return Ok(true);
    }
    let digits = next.to.number.digits();
    match affordable(db, &call.account, digits, next.longest_talk)? {
        Ok(Some(reservation)) => reserve(db, call, &reservation)?,
        Ok(None) => {}
        Err(_shortage) => return Ok(false),
    }
    Ok(true)
}

fn move_reserved(db: &Connection, account: &AccountSid, by: Money) -> Result<(), StoreError> {
    let values = params![by.millionths(), account.as_str()];
    db.run(rates::MOVE_RESERVED.sqlite, values)?;
    Ok(())
}

fn reservation(
    db: &Connection,
    sid: &CallSid,
) -> Result<Option<(AccountSid, Reservation)>, StoreError> {
    db.row(rates::RESERVATION.sqlite, [sid.as_str()], |row| {
        rates::reservation(row)
    })
}

pub fn tighten(
    db: &Connection,
    sid: &CallSid,
    lease: &Lease,
    longest_talk: u32,
) -> Result<Option<u32>, StoreError> {
    let Some((account, held)) = reservation(db, sid)? else {
        return Ok(None);
    };
    // Whoever has lost the call changes nothing any more.
    if held_state(db, sid, lease)?.is_none() {
        return Ok(held.longest_talk());
    }
    let tight = held.tightened(longest_talk);
    let values = params![tight.units, tight.amount.millionths(), sid.as_str()];
    db.run(rates::TIGHTEN.sqlite, values)?;
    move_reserved(db, &account, tight.amount.minus(held.amount))?;
    Ok(tight.longest_talk())
}

/// What an ended call costs. What was set aside for it is given back, and what it costs is spent.
pub fn charge(db: &Connection, ended: &EndedCall) -> Result<Charge, StoreError> {
    let call = &ended.claimed.call;
    let (answered, seconds) = (ended.answered_at.is_some(), ended.whole_seconds());
    let Some((account, held)) = reservation(db, &call.sid)? else {
        let rate = rate_for(db, &call.account, call.number.digits())?;
        return Ok(rate.map_or_else(Charge::default, |rate| {
            rate.charge(answered, seconds, ended.outcome)
        }));
    };
    let charge = held.charge(answered, seconds, ended.outcome);
    db.run(rates::GIVE_BACK.sqlite, [call.sid.as_str()])?;
    let values = params![
        held.amount.millionths(),
        charge.fee.millionths(),
        account.as_str()
    ];
    db.run(rates::SPEND.sqlite, values)?;
    Ok(charge)
}
