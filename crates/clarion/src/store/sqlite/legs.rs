//! Attempts and legs in SQLite: written by the change that ends the call or puts it back into the queue.

use rusqlite::{Connection, params_from_iter};

use super::query::Query;
use crate::domain::claim::ClaimedCall;
use crate::domain::ended_call::EndedCall;
use crate::domain::leg::Leg;
use crate::store::StoreError;
use crate::store::binding::Bind;
use crate::store::statements::legs::{self, LEG};
use crate::store::statements::sqlite;

const KEEP_LEG: &str = sqlite!(
    "INSERT INTO legs (",
    LEG,
    ", call_sid, attempt, leg) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, \
     $22, $23, $24, $25, $26, $27, $28, $29)"
);
/// Legs of the attempt that a call is at, after those that were stored before.
pub(super) fn keep(
    db: &Connection,
    claimed: &ClaimedCall,
    legs: &[Leg],
    before: u32,
) -> Result<(), StoreError> {
    for (number, leg) in (before + 1..).zip(legs) {
        let place = [
            Bind::of(claimed.call.sid.as_str()),
            Bind::of(u32::from(claimed.attempt.number())),
            Bind::of(number),
        ];
        let values = legs::values(leg).into_iter().chain(place);
        db.run(KEEP_LEG, params_from_iter(values))?;
    }
    Ok(())
}

pub(super) fn keep_attempt(
    db: &Connection,
    ended: &EndedCall,
    legs_before: u32,
) -> Result<(), StoreError> {
    let values = legs::attempt_values(ended, legs_before);
    db.run(legs::KEEP_ATTEMPT.sqlite, params_from_iter(values))?;
    Ok(())
}
