//! What calls cost, what is set aside for them, and what an account has spent. What an ended call costs is computed where it ends
//! (`queue::end`), in the same statement.

use tokio_postgres::{Client, GenericClient, Row};

use super::super::accept;
use super::super::queue::parsed;
use crate::domain::account::AccountSid;
use crate::domain::bill::rating::{Funds, Prefix, Rate, Reservation, Shortage};
use crate::domain::call::{CallSid, NewCall};
use crate::domain::claim::Lease;
use crate::domain::money::Money;
use crate::store::StoreError;

pub async fn set<C: GenericClient>(
    client: &C,
    account: &str,
    rate: &Rate,
) -> Result<(), StoreError> {
    client
        .execute(
            "INSERT INTO rates (account_sid, prefix, unit_seconds, price, unanswered) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (account_sid, prefix) DO UPDATE SET unit_seconds = excluded.unit_seconds, price = excluded.price, \
               unanswered = excluded.unanswered",
            &[
                &account,
                &rate.prefix.as_str(),
                &rate.unit_seconds.cast_signed(),
                &rate.price.millionths(),
                &rate.unanswered.millionths(),
            ],
        )
        .await?;
    Ok(())
}

pub async fn all<C: GenericClient>(
    client: &C,
    account: Option<&AccountSid>,
) -> Result<Vec<Rate>, StoreError> {
    let rows = client
        .query(
            "SELECT prefix, unit_seconds, price, unanswered FROM rates WHERE account_sid = $1 ORDER BY prefix",
            &[&account.map_or("", AccountSid::as_str)],
        )
        .await?;
    rows.iter().map(rate).collect()
}

/// Nodes that start together take turns: the rows of the one that comes last stay.
pub async fn set_defaults(client: &mut Client, rates: &[Rate]) -> Result<(), StoreError> {
    let transaction = client.transaction().await?;
    transaction
        .execute("LOCK TABLE rates IN SHARE ROW EXCLUSIVE MODE", &[])
        .await?;
    transaction
        .execute("DELETE FROM rates WHERE account_sid = ''", &[])
        .await?;
    for rate in rates {
        set(&transaction, "", rate).await?;
    }
    Ok(transaction.commit().await?)
}

/// Reads prefix, unit, price and the price of what is not answered.
fn rate(row: &Row) -> Result<Rate, StoreError> {
    Ok(Rate {
        prefix: parsed(row.get(0))?,
        unit_seconds: row.get::<_, i32>(1).cast_unsigned(),
        price: Money::from_millionths(row.get(2)),
        unanswered: Money::from_millionths(row.get(3)),
    })
}

/// The account's own rate with the longest prefix, or else the platform's.
async fn rate_for<C: GenericClient>(
    client: &C,
    account: &AccountSid,
    digits: &str,
) -> Result<Option<Rate>, StoreError> {
    let row = client
        .query_opt(
            "SELECT prefix, unit_seconds, price, unanswered FROM rates WHERE account_sid IN ($1, '') AND prefix = ANY($2) \
             ORDER BY account_sid DESC, length(prefix) DESC LIMIT 1",
            &[&account.as_str(), &Prefix::all_of(digits)],
        )
        .await?;
    row.as_ref().map(rate).transpose()
}

pub async fn purse<C: GenericClient>(
    client: &C,
    account: &AccountSid,
    lock: &str,
) -> Result<Option<Funds>, StoreError> {
    let row = client
        .query_opt(
            &format!(
                "SELECT balance, spending_limit, spent, reserved FROM accounts WHERE sid = $1 {lock}"
            ),
            &[&account.as_str()],
        )
        .await?;
    let money = |row: &Row, column: usize| {
        row.get::<_, Option<i64>>(column)
            .map(Money::from_millionths)
    };
    Ok(row.map(|row| Funds {
        balance: money(&row, 0),
        spending_limit: money(&row, 1),
        spent: money(&row, 2).unwrap_or_default(),
        reserved: money(&row, 3).unwrap_or_default(),
    }))
}

/// The account's row is held while what it may spend is counted, so that no other call is accepted out of the same money.
pub async fn accept(
    client: &mut deadpool_postgres::Client,
    call: &NewCall,
    longest_talk: u32,
) -> Result<Result<(), Shortage>, StoreError> {
    let transaction = client.transaction().await?;
    let rate = rate_for(&*transaction, &call.account, call.number.digits()).await?;
    let purse = purse(&*transaction, &call.account, "FOR UPDATE").await?;
    let priced = rate.filter(|rate| !rate.is_free()).zip(purse);
    let reservation = match priced.map(|(rate, purse)| purse.reserve(&rate, longest_talk)) {
        None => None,
        Some(Ok(reservation)) => Some(reservation),
        Some(Err(shortage)) => {
            let known = transaction
                .query_opt(
                    "SELECT 1 FROM calls WHERE call_sid = $1",
                    &[&call.sid.as_str()],
                )
                .await?;
            return Ok(known.map(drop).ok_or(shortage));
        }
    };
    let statement = transaction.prepare_cached(accept::INSERT).await?;
    let accepted =
        accept::insert_with(&*transaction, &statement, std::slice::from_ref(call)).await?;
    // A repeated accept sets nothing aside again.
    if let Some(held) = reservation.filter(|_| accepted == 1) {
        keep(&*transaction, call, &held).await?;
        move_reserved(&*transaction, &call.account, held.amount).await?;
    }
    transaction.commit().await?;
    Ok(Ok(()))
}

async fn keep<C: GenericClient>(
    client: &C,
    call: &NewCall,
    held: &Reservation,
) -> Result<(), StoreError> {
    client
        .execute(
            "INSERT INTO call_reservations (call_sid, account_sid, prefix, unit_seconds, price, unanswered, units, amount) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            &[
                &call.sid.as_str(),
                &call.account.as_str(),
                &held.rate.prefix.as_str(),
                &held.rate.unit_seconds.cast_signed(),
                &held.rate.price.millionths(),
                &held.rate.unanswered.millionths(),
                &held.units.cast_signed(),
                &held.amount.millionths(),
            ],
        )
        .await?;
    Ok(())
}

async fn move_reserved<C: GenericClient>(
    client: &C,
    account: &AccountSid,
    by: Money,
) -> Result<(), StoreError> {
    client
        .execute(
            "UPDATE accounts SET reserved = reserved + $1 WHERE sid = $2",
            &[&by.millionths(), &account.as_str()],
        )
        .await?;
    Ok(())
}

pub async fn tighten(
    client: &mut Client,
    sid: &CallSid,
    lease: &Lease,
    longest_talk: u32,
) -> Result<Option<u32>, StoreError> {
    // Most calls have none, and need no commit to be told so.
    let reserved = client
        .query_opt(
            "SELECT 1 FROM call_reservations WHERE call_sid = $1",
            &[&sid.as_str()],
        )
        .await?;
    if reserved.is_none() {
        return Ok(None);
    }
    let transaction = client.transaction().await?;
    // The queue's row first, as when the call ends: whoever takes the call over waits.
    let ours = transaction
        .query_opt(
            "SELECT 1 FROM call_queue WHERE call_sid = $1 AND node = $2 AND fence = $3 FOR UPDATE",
            &[&sid.as_str(), &lease.node.as_str(), &lease.fence],
        )
        .await?
        .is_some();
    let row = transaction
        .query_opt(
            "SELECT prefix, unit_seconds, price, unanswered, units, amount, account_sid FROM call_reservations WHERE call_sid = $1",
            &[&sid.as_str()],
        )
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let held = Reservation {
        rate: rate(&row)?,
        units: row.get::<_, i32>(4).cast_unsigned(),
        amount: Money::from_millionths(row.get(5)),
    };
    // Whoever has lost the call changes nothing any more.
    if !ours {
        return Ok(held.longest_talk());
    }
    let tight = held.tightened(longest_talk);
    transaction
        .execute(
            "UPDATE call_reservations SET units = $1, amount = $2 WHERE call_sid = $3",
            &[
                &tight.units.cast_signed(),
                &tight.amount.millionths(),
                &sid.as_str(),
            ],
        )
        .await?;
    let account = parsed(row.get(6))?;
    move_reserved(&transaction, &account, tight.amount.minus(held.amount)).await?;
    transaction.commit().await?;
    Ok(tight.longest_talk())
}
