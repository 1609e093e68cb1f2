//! The end of an attempt of a notice in PostgreSQL, and the next attempt or the end of the whole, in one transaction. Simple calls end by one
//! statement (`ending`).
//!
//! The account's row is taken first where money is a limit, then the queue's: as where several simple calls end together.

use super::claiming::UNPARK;
use super::legs::{self, KEEP_LEGS};
use super::session::{Session, Transaction};
use super::{bills, bound, callbacks, do_not_call, query_in};
use crate::domain::bill::rating::Charge;
use crate::domain::ended_call::{EndedCall, GoingOn, WentOn};
use crate::store::StoreError;
use crate::store::binding::{Bind, millis};
use crate::store::statements::notices::{self, HeldAttempt};
use crate::store::statements::{legs as shared_legs, postgres, queue};

const KEEP: &str = postgres!(
    "WITH ours AS (SELECT $27::text AS call_sid, $28::smallint AS attempt, $29::integer AS legs_before), ",
    KEEP_LEGS,
    " SELECT 1"
);
const LOCK_FUNDS: &str = postgres!(
    "SELECT 1 FROM accounts WHERE sid = $1 AND (balance IS NOT NULL OR spending_limit IS NOT NULL OR reserved <> 0) FOR NO KEY UPDATE"
);
const NEXT: &str = postgres!(notices::NEXT, "{now} + $12", notices::OF_CALL);

/// False if the call is not ours any more.
pub(super) async fn end(client: &mut Session, ended: &EndedCall) -> Result<bool, StoreError> {
    let transaction = client.transaction().await?;
    let Some(held) = held(&transaction, ended).await? else {
        return Ok(false);
    };
    let ended = ended.judged(held.called_off);
    let charge = settle(&transaction, &ended, &held).await?;
    keep_line(&transaction, &ended, &held, charge, true).await?;
    close(&transaction, &ended, &held).await?;
    transaction.commit().await?;
    Ok(true)
}

/// The attempt ends and the next one is born, or the notice ends with it.
pub(super) async fn go_on(client: &mut Session, going: &GoingOn) -> Result<WentOn, StoreError> {
    let (ended, next) = (&going.ended, &going.next);
    let transaction = client.transaction().await?;
    let Some(held) = held(&transaction, ended).await? else {
        return Ok(WentOn::NotOurs);
    };
    // What the attempt costs comes first: the next one is paid from what is left.
    let charge = settle(&transaction, ended, &held).await?;
    let over = if let Some(reason) = held.called_off {
        Some(going.if_called_off.by(reason))
    } else if !bills::reserve_next(&transaction, &ended.claimed.call, next).await? {
        Some(&going.if_unpaid)
    } else {
        None
    };
    keep_line(&transaction, ended, &held, charge, over.is_some()).await?;
    let went_on = if let Some(over) = over {
        close(&transaction, &going.as_last(over), &held).await?;
        WentOn::Over(over.end.ending)
    } else {
        if ended.claimed.is_counted && !ended.was_dialled(held.legs_before) {
            let values: super::Values<'_> = &[&held.callee, &ended.sid().as_str()];
            query_in(&transaction, queue::UNCOUNT.postgres, values).await?;
        }
        let mut values = notices::next_values(ended, next, held.legs_before).to_vec();
        values.push(Bind::of(millis(next.pause)));
        query_in(&transaction, NEXT, &bound(&values)).await?;
        query_in(&transaction, UNPARK, &[&vec![held.callee.as_str()]]).await?;
        callbacks::owe_events(&transaction, &ended.events).await?;
        WentOn::Yes
    };
    transaction.commit().await?;
    Ok(went_on)
}

/// The account's row comes first where money is a limit, as for those who end together: whoever waits for it holds nothing.
async fn held(
    transaction: &Transaction<'_>,
    ended: &EndedCall,
) -> Result<Option<HeldAttempt>, StoreError> {
    let account = ended.claimed.call.account.as_str();
    query_in(transaction, LOCK_FUNDS, &[&account]).await?;
    let lease = &ended.claimed.lease;
    let values: super::Values<'_> = &[&ended.sid().as_str(), &lease.node.as_str(), &lease.fence];
    let rows = query_in(transaction, notices::HELD.postgres, values).await?;
    rows.first().map(notices::held).transpose()
}

/// Its legs are kept, and what was set aside for it is given back: what it costs.
async fn settle(
    transaction: &Transaction<'_>,
    ended: &EndedCall,
    held: &HeldAttempt,
) -> Result<Charge, StoreError> {
    let place = [
        Bind::of(ended.sid().as_str()),
        Bind::of(u32::from(ended.claimed.attempt.number())),
        Bind::of(held.legs_before),
    ];
    let columns = legs::columns(&ended.legs);
    let columns = columns.iter().map(|column| &**column as _);
    let values: Vec<_> = columns.chain(bound(&place)).collect();
    query_in(transaction, KEEP, &values).await?;
    // Where the key itself could not be written, its end makes that good.
    if let Some(source) = ended.unwanted() {
        let call = &ended.claimed.call;
        let digits = call.number.digits();
        do_not_call::add(transaction, &call.account, digits, &source, ended.ended_at).await?;
    }
    bills::charge(transaction, ended).await
}

/// The row of an attempt and its bill line, where it has them.
async fn keep_line(
    transaction: &Transaction<'_>,
    ended: &EndedCall,
    held: &HeldAttempt,
    charge: Charge,
    is_last: bool,
) -> Result<(), StoreError> {
    if !ended.has_line(held.legs_before, is_last) {
        return Ok(());
    }
    let values = shared_legs::attempt_values(ended, held.legs_before);
    let keep = shared_legs::KEEP_ATTEMPT.postgres;
    query_in(transaction, keep, &bound(&values)).await?;
    bills::bill_call(transaction, ended, charge).await
}

/// The call is over: it leaves the queue, and its callback is owed.
async fn close(
    transaction: &Transaction<'_>,
    ended: &EndedCall,
    held: &HeldAttempt,
) -> Result<(), StoreError> {
    let sid = ended.sid().as_str();
    query_in(transaction, notices::LEAVE_QUEUE.postgres, &[&sid]).await?;
    query_in(transaction, UNPARK, &[&vec![held.callee.as_str()]]).await?;
    let values = notices::end_values(ended);
    query_in(transaction, notices::END.postgres, &bound(&values)).await?;
    if let Some(prompt) = ended.forgotten_prompt() {
        query_in(
            transaction,
            notices::FORGET_PROMPT.postgres,
            &[&prompt, &sid],
        )
        .await?;
        query_in(transaction, notices::FORGET_SECRET.postgres, &[&sid]).await?;
    }
    let owed: Vec<_> = ended
        .callback
        .iter()
        .cloned()
        .chain(ended.silence())
        .collect();
    if !owed.is_empty() {
        callbacks::owe(transaction, &owed).await?;
    }
    callbacks::owe_events(transaction, &ended.events).await
}
