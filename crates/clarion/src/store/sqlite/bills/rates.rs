//! What calls cost, what is set aside for them, and what an account has spent.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::calls;
use super::super::queue::{held_state, parsed};
use crate::domain::account::AccountSid;
use crate::domain::bill::rating::{Charge, Funds, Prefix, Rate, Reservation, Shortage};
use crate::domain::call::{CallSid, NewCall};
use crate::domain::claim::{EndedCall, Lease};
use crate::domain::money::Money;

pub fn set(db: &Connection, account: &str, rate: &Rate) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO rates (account_sid, prefix, unit_seconds, price, unanswered) VALUES (?, ?, ?, ?, ?) \
         ON CONFLICT (account_sid, prefix) DO UPDATE SET unit_seconds = excluded.unit_seconds, price = excluded.price, \
           unanswered = excluded.unanswered",
    )?
    .execute(params![
        account,
        rate.prefix.as_str(),
        rate.unit_seconds,
        rate.price.millionths(),
        rate.unanswered.millionths()
    ])?;
    Ok(())
}

pub fn remove(db: &Connection, account: &AccountSid, prefix: &Prefix) -> rusqlite::Result<bool> {
    let removed = db
        .prepare_cached("DELETE FROM rates WHERE account_sid = ? AND prefix = ?")?
        .execute([account.as_str(), prefix.as_str()])?;
    Ok(removed == 1)
}

pub fn all(db: &Connection, account: Option<&AccountSid>) -> rusqlite::Result<Vec<Rate>> {
    db.prepare_cached(
        "SELECT prefix, unit_seconds, price, unanswered FROM rates WHERE account_sid = ? ORDER BY prefix",
    )?
    .query_map([account.map_or("", AccountSid::as_str)], rate)?
    .collect()
}

pub fn set_defaults(db: &Connection, rates: &[Rate]) -> rusqlite::Result<()> {
    db.execute("DELETE FROM rates WHERE account_sid = ''", [])?;
    rates.iter().try_for_each(|rate| set(db, "", rate))
}

/// Reads prefix, unit, price and the price of what is not answered.
fn rate(row: &Row<'_>) -> rusqlite::Result<Rate> {
    Ok(Rate {
        prefix: parsed(&row.get::<_, String>(0)?)?,
        unit_seconds: row.get(1)?,
        price: Money::from_millionths(row.get(2)?),
        unanswered: Money::from_millionths(row.get(3)?),
    })
}

/// The account's own rate with the longest prefix, or else the platform's.
fn rate_for(db: &Connection, account: &AccountSid, digits: &str) -> rusqlite::Result<Option<Rate>> {
    let prefixes = serde_json::Value::from(Prefix::all_of(digits)).to_string();
    db.prepare_cached(
        "SELECT prefix, unit_seconds, price, unanswered FROM rates \
         WHERE account_sid IN (?1, '') AND prefix IN (SELECT value FROM json_each(?2)) \
         ORDER BY account_sid DESC, length(prefix) DESC LIMIT 1",
    )?
    .query_row([account.as_str(), &prefixes], rate)
    .optional()
}

pub fn purse(db: &Connection, account: &AccountSid) -> rusqlite::Result<Option<Funds>> {
    let money = |row: &Row<'_>, column| {
        let amount: Option<i64> = row.get(column)?;
        Ok::<_, rusqlite::Error>(amount.map(Money::from_millionths))
    };
    db.prepare_cached(
        "SELECT balance, spending_limit, spent, reserved FROM accounts WHERE sid = ?",
    )?
    .query_row([account.as_str()], |row| {
        Ok(Funds {
            balance: money(row, 0)?,
            spending_limit: money(row, 1)?,
            spent: money(row, 2)?.unwrap_or_default(),
            reserved: money(row, 3)?.unwrap_or_default(),
        })
    })
    .optional()
}

/// A refusal is no failure: the other changes of the commit need not be done again because of it.
pub fn accept(
    db: &Connection,
    call: &NewCall,
    longest_talk: u32,
) -> rusqlite::Result<Result<(), Shortage>> {
    let rate = rate_for(db, &call.account, call.number.digits())?;
    let (Some(rate), Some(purse)) = (
        rate.filter(|rate| !rate.is_free()),
        purse(db, &call.account)?,
    ) else {
        return calls::accept(db, call).map(|_| Ok(()));
    };
    let reservation = match purse.reserve(&rate, longest_talk) {
        Ok(reservation) => reservation,
        Err(shortage) => {
            let known = db
                .prepare_cached("SELECT 1 FROM calls WHERE call_sid = ?")?
                .exists([call.sid.as_str()])?;
            return Ok(if known { Ok(()) } else { Err(shortage) });
        }
    };
    // A repeated accept sets nothing aside again.
    if calls::accept(db, call)? {
        keep(db, call, &reservation)?;
        move_reserved(db, &call.account, reservation.amount)?;
    }
    Ok(Ok(()))
}

fn keep(db: &Connection, call: &NewCall, held: &Reservation) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO call_reservations (call_sid, account_sid, prefix, unit_seconds, price, unanswered, units, amount) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        call.sid.as_str(),
        call.account.as_str(),
        held.rate.prefix.as_str(),
        held.rate.unit_seconds,
        held.rate.price.millionths(),
        held.rate.unanswered.millionths(),
        held.units,
        held.amount.millionths()
    ])?;
    Ok(())
}

fn move_reserved(db: &Connection, account: &AccountSid, by: Money) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE accounts SET reserved = reserved + ? WHERE sid = ?")?
        .execute(params![by.millionths(), account.as_str()])?;
    Ok(())
}

fn reservation(
    db: &Connection,
    sid: &CallSid,
) -> rusqlite::Result<Option<(AccountSid, Reservation)>> {
    db.prepare_cached(
        "SELECT prefix, unit_seconds, price, unanswered, units, amount, account_sid FROM call_reservations WHERE call_sid = ?",
    )?
    .query_row([sid.as_str()], |row| {
        let held = Reservation {
            rate: rate(row)?,
            units: row.get(4)?,
            amount: Money::from_millionths(row.get(5)?),
        };
        Ok((parsed(&row.get::<_, String>(6)?)?, held))
    })
    .optional()
}

pub fn is_reserved(db: &Connection, sid: &CallSid) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM call_reservations WHERE call_sid = ?")?
        .exists([sid.as_str()])
}

pub fn tighten(
    db: &Connection,
    sid: &CallSid,
    lease: &Lease,
    longest_talk: u32,
) -> rusqlite::Result<Option<u32>> {
    let Some((account, held)) = reservation(db, sid)? else {
        return Ok(None);
    };
    // Whoever has lost the call changes nothing any more.
    if held_state(db, sid, lease)?.is_none() {
        return Ok(held.longest_talk());
    }
    let tight = held.tightened(longest_talk);
    db.prepare_cached("UPDATE call_reservations SET units = ?, amount = ? WHERE call_sid = ?")?
        .execute(params![
            tight.units,
            tight.amount.millionths(),
            sid.as_str()
        ])?;
    move_reserved(db, &account, tight.amount.minus(held.amount))?;
    Ok(tight.longest_talk())
}

/// What an ended call costs. What was set aside for it is given back, and what it costs is spent.
pub fn charge(db: &Connection, ended: &EndedCall) -> rusqlite::Result<Charge> {
    let call = &ended.claimed.call;
    let (answered, seconds) = (ended.answered_at.is_some(), ended.whole_seconds());
    let Some((account, held)) = reservation(db, &call.sid)? else {
        let rate = rate_for(db, &call.account, call.number.digits())?;
        return Ok(rate.map_or_else(Charge::default, |rate| {
            rate.charge(answered, seconds, ended.outcome)
        }));
    };
    let charge = held.charge(answered, seconds, ended.outcome);
    db.prepare_cached("DELETE FROM call_reservations WHERE call_sid = ?")?
        .execute([call.sid.as_str()])?;
    db.prepare_cached(
        "UPDATE accounts SET reserved = reserved - ?1, spent = spent + ?2, balance = balance - ?2 WHERE sid = ?3",
    )?
    .execute(params![
        held.amount.millionths(),
        charge.fee.millionths(),
        account.as_str()
    ])?;
    Ok(charge)
}
