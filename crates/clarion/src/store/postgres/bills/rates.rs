//! What calls cost, what is set aside for them, and what an account has spent. What an ended call costs is computed where it ends
//! (`ending::end`), in the same statement.

use super::super::session::Session;
use super::super::{accept, bound};
use crate::domain::account::AccountSid;
use crate::domain::bill::rating::{Charge, Funds, Prefix, Rate, Reservation, Shortage};
use crate::domain::call::{CallSid, NewCall};
use crate::domain::claim::Lease;
use crate::domain::ended_call::{EndedCall, NextDial};
use crate::domain::money::Money;
use crate::domain::request_key::{Accepted, AcceptedCall};
use crate::store::StoreError;
use crate::store::statements::rates::{self, RATE};
use crate::store::statements::{Statement, bill_lines, postgres, queue};

/// Nodes that start together take turns: the rows of the one that comes last stay.
const LOCK_RATES: &str = "LOCK TABLE rates IN SHARE ROW EXCLUSIVE MODE";
/// The account's own rate with the longest prefix, or else the platform's.
const RATE_FOR: &str = postgres!(
    "SELECT ",
    RATE,
    " FROM rates WHERE account_sid IN ($1, '') AND prefix = ANY($2) ORDER BY account_sid DESC, length(prefix) DESC LIMIT 1"
);

pub async fn set(client: &Session, account: &str, rate: &Rate) -> Result<(), StoreError> {
    let values = rates::rate_values(account, rate);
    client
        .execute_once(rates::SET.postgres, &bound(&values))
        .await?;
    Ok(())
}

pub async fn all(client: &Session, account: Option<&AccountSid>) -> Result<Vec<Rate>, StoreError> {
    let account = account.map_or("", AccountSid::as_str);
    let rows = client.query_once(rates::ALL.postgres, &[&account]).await?;
    rows.iter().map(rates::rate).collect()
}

pub async fn set_defaults(client: &mut Session, rates: &[Rate]) -> Result<(), StoreError> {
    let transaction = client.transaction().await?;
    transaction.execute(LOCK_RATES, &[]).await?;
    transaction
        .execute(rates::CLEAR_DEFAULTS.postgres, &[])
        .await?;
    for rate in rates {
        set(&transaction, "", rate).await?;
    }
    Ok(transaction.commit().await?)
}

async fn rate_for(
    client: &Session,
    account: &AccountSid,
    digits: &str,
) -> Result<Option<Rate>, StoreError> {
    let row = client
        .query_opt(RATE_FOR, &[&account.as_str(), &Prefix::all_of(digits)])
        .await?;
    row.as_ref().map(rates::rate).transpose()
}

pub async fn funds(
    client: &Session,
    statement: Statement,
    account: &AccountSid,
) -> Result<Option<Funds>, StoreError> {
    let row = client
        .query_opt(statement.postgres, &[&account.as_str()])
        .await?;
    row.as_ref().map(rates::funds).transpose()
}

/// The account's row is held while what it may spend is counted, so that no other call is accepted out of the same money.
pub async fn accept(
    client: &mut Session,
    order: &AcceptedCall,
    longest_talk: u32,
) -> Result<Result<Accepted, Shortage>, StoreError> {
    let call = &order.call;
    let transaction = client.transaction().await?;
    let funds = funds(&transaction, rates::FUNDS_HELD, &call.account).await?;
    let digits = call.number.digits();
    let affordable = affordable(&transaction, funds, &call.account, digits, longest_talk).await?;
    let reservation = match affordable {
        Ok(reservation) => reservation,
        Err(shortage) => {
            let known = transaction
                .query_opt(bill_lines::IS_CALL.postgres, &[&call.sid.as_str()])
                .await?;
            if known.is_none() {
                return Ok(Err(shortage));
            }
            accept::make_durable(&transaction).await?;
            transaction.commit().await?;
            return Ok(Ok(Accepted::New));
        }
    };
    let orders = std::slice::from_ref(order);
    let new = accept::insert_new(&transaction, orders).await?;
    // A repeated accept sets nothing aside again.
    if let Some(held) = reservation.filter(|_| new.len() == 1) {
        reserve(&transaction, call, &held).await?;
    }
    let accepted = accept::judge(&transaction, orders, &new).await?;
    transaction.commit().await?;
    Ok(Ok(accepted.into_iter().next().unwrap_or(Accepted::New)))
}

/// What is to be set aside for a call; nothing where it is free.
async fn affordable(
    client: &Session,
    funds: Option<Funds>,
    account: &AccountSid,
    digits: &str,
    longest_talk: u32,
) -> Result<Result<Option<Reservation>, Shortage>, StoreError> {
    let rate = rate_for(client, account, digits).await?;
    let (Some(rate), Some(funds)) = (rate.filter(|rate| !rate.is_free()), funds) else {
        return Ok(Ok(None));
    };
    Ok(funds.reserve(&rate, longest_talk).map(Some))
}

async fn reserve(client: &Session, call: &NewCall, held: &Reservation) -> Result<(), StoreError> {
    let values = rates::reservation_values(call, held);
    client
        .execute(rates::RESERVE.postgres, &bound(&values))
        .await?;
    move_reserved(client, &call.account, held.amount).await
}

/// Sets aside what the next attempt of a notice may cost. False if it cannot be paid. Whoever has neither a balance nor a limit pays afterwards. Whoever
/// calls this holds the row of an account that has one.
pub async fn reserve_next(
    client: &Session,
    call: &NewCall,
    next: &NextDial,
) -> Result<bool, StoreError> {
    let funds = funds(client, rates::FUNDS, &call.account).await?;
    let funds = funds.filter(Funds::is_limited);
    if funds.is_none() {
        return Ok(true);
    }
    let digits = next.to.number.digits();
    match affordable(client, funds, &call.account, digits, next.longest_talk).await? {
        Ok(Some(held)) => reserve(client, call, &held).await?,
        Ok(None) => {}
        Err(_shortage) => return Ok(false),
    }
    Ok(true)
}

/// What an ended attempt costs. What was set aside for it is given back, and what it costs is spent.
pub async fn charge(client: &Session, ended: &EndedCall) -> Result<Charge, StoreError> {
    let call = &ended.claimed.call;
    let (answered, seconds) = (ended.answered_at.is_some(), ended.whole_seconds());
    let row = client
        .query_opt(rates::RESERVATION.postgres, &[&call.sid.as_str()])
        .await?;
    let Some((account, held)) = row.as_ref().map(rates::reservation).transpose()? else {
        let rate = rate_for(client, &call.account, call.number.digits()).await?;
        return Ok(rate.map_or_else(Charge::default, |rate| {
            rate.charge(answered, seconds, ended.outcome)
        }));
    };
    let charge = held.charge(answered, seconds, ended.outcome);
    client
        .execute(rates::GIVE_BACK.postgres, &[&call.sid.as_str()])
        .await?;
    client
        .execute(
            rates::SPEND.postgres,
            &[
                &held.amount.millionths(),
                &charge.fee.millionths(),
                &account.as_str(),
            ],
        )
        .await?;
    Ok(charge)
}

async fn move_reserved(
    client: &Session,
    account: &AccountSid,
    by: Money,
) -> Result<(), StoreError> {
    client
        .execute(
            rates::MOVE_RESERVED.postgres,
            &[&by.millionths(), &account.as_str()],
        )
        .await?;
    Ok(())
}

pub async fn tighten(
    client: &mut Session,
    sid: &CallSid,
    lease: &Lease,
    longest_talk: u32,
) -> Result<Option<u32>, StoreError> {
    let call = sid.as_str();
    let transaction = client.transaction().await?;
    // The queue's row first, as when the call ends: whoever takes the call over waits.
    let ours = transaction
        .query_opt(
            queue::HELD_STATE.postgres,
            &[&call, &lease.node.as_str(), &lease.fence],
        )
        .await?
        .is_some();
    let row = transaction
        .query_opt(rates::RESERVATION.postgres, &[&call])
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let (account, held) = rates::reservation(&row)?;
    // Whoever has lost the call changes nothing any more.
    if !ours {
        return Ok(held.longest_talk());
    }
    let tight = held.tightened(longest_talk);
    transaction
        .execute(
            rates::TIGHTEN.postgres,
            &[
                &tight.units.cast_signed(),
                &tight.amount.millionths(),
                &call,
            ],
        )
        .await?;
    move_reserved(&transaction, &account, tight.amount.minus(held.amount)).await?;
    transaction.commit().await?;
    Ok(tight.longest_talk())
}
