//! What calls cost, what is set aside for them, and what an account has spent.

use super::{Statement, statement};
use crate::domain::account::AccountSid;
use crate::domain::bill::rating::{Funds, Rate, Reservation};
use crate::domain::call::NewCall;
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::columns::Columns;

/// What a rate is read from.
pub const RATE: &str = "prefix, unit_seconds, price, unanswered";
const FUNDS_OF: &str =
    "SELECT balance, spending_limit, spent, reserved FROM accounts WHERE sid = $1";

pub const SET: Statement = statement!(
    "INSERT INTO rates (account_sid, prefix, unit_seconds, price, unanswered) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (account_sid, prefix) DO UPDATE SET unit_seconds = excluded.unit_seconds, price = excluded.price, \
       unanswered = excluded.unanswered"
);
pub const REMOVE: Statement =
    statement!("DELETE FROM rates WHERE account_sid = $1 AND prefix = $2");
pub const ALL: Statement = statement!(
    "SELECT ",
    RATE,
    " FROM rates WHERE account_sid = $1 ORDER BY prefix"
);
pub const CLEAR_DEFAULTS: Statement = statement!("DELETE FROM rates WHERE account_sid = ''");
pub const FUNDS: Statement = statement!(FUNDS_OF);
/// Held until the commit, so that no other call is accepted out of the same money.
pub const FUNDS_HELD: Statement = statement!(FUNDS_OF, "{for_update}");
pub const RESERVE: Statement = statement!(
    "INSERT INTO call_reservations (call_sid, account_sid, prefix, unit_seconds, price, unanswered, units, amount) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
);
pub const RESERVATION: Statement = statement!(
    "SELECT ",
    RATE,
    ", units, amount, account_sid FROM call_reservations WHERE call_sid = $1"
);
pub const TIGHTEN: Statement =
    statement!("UPDATE call_reservations SET units = $1, amount = $2 WHERE call_sid = $3");
pub const GIVE_BACK: Statement = statement!("DELETE FROM call_reservations WHERE call_sid = $1");
/// What was set aside is given back, and what the call costs is spent.
pub const SPEND: Statement = statement!(
    "UPDATE accounts SET reserved = reserved - $1, spent = spent + $2, balance = balance - $2 WHERE sid = $3"
);
pub const MOVE_RESERVED: Statement =
    statement!("UPDATE accounts SET reserved = reserved + $1 WHERE sid = $2");

/// Reads the columns of `RATE`.
pub fn rate(row: &impl Columns) -> Result<Rate, StoreError> {
    Ok(Rate {
        prefix: row.parsed(0)?,
        unit_seconds: row.number(1)?,
        price: row.money(2)?,
        unanswered: row.money(3)?,
    })
}

/// The values of `SET`.
pub fn rate_values<'a>(account: &'a str, rate: &'a Rate) -> [Bind<'a>; 5] {
    [
        account.into(),
        rate.prefix.as_str().into(),
        rate.unit_seconds.into(),
        rate.price.into(),
        rate.unanswered.into(),
    ]
}

pub fn funds(row: &impl Columns) -> Result<Funds, StoreError> {
    Ok(Funds {
        balance: row.optional_money(0)?,
        spending_limit: row.optional_money(1)?,
        spent: row.money(2)?,
        reserved: row.money(3)?,
    })
}

/// Whose money is set aside, and what.
pub fn reservation(row: &impl Columns) -> Result<(AccountSid, Reservation), StoreError> {
    let held = Reservation {
        rate: rate(row)?,
        units: row.number(4)?,
        amount: row.money(5)?,
    };
    Ok((row.parsed(6)?, held))
}

/// The values of `RESERVE`.
pub fn reservation_values<'a>(call: &'a NewCall, held: &'a Reservation) -> [Bind<'a>; 8] {
    [
        call.sid.as_str().into(),
        call.account.as_str().into(),
        held.rate.prefix.as_str().into(),
        held.rate.unit_seconds.into(),
        held.rate.price.into(),
        held.rate.unanswered.into(),
        held.units.into(),
        held.amount.into(),
    ]
}
