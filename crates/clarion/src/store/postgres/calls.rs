//! Calls in PostgreSQL; accepting them is in `accept`.

use jiff::Timestamp;
use tokio_postgres::{GenericClient, Row};

use super::super::StoreError;
use crate::domain::account::AccountSid;
use crate::domain::call::{CallProgress, CallSid};
use crate::domain::call_state::CallState;
use crate::domain::outcome::Outcome;

pub async fn progress<C: GenericClient>(
    client: &C,
    account: &AccountSid,
    sid: &CallSid,
) -> Result<Option<CallProgress>, StoreError> {
    let row = client
        .query_opt(
            "SELECT queue.state, calls.outcome, coalesce(calls.answered_at, queue.answered_at), calls.ended_at \
             FROM calls LEFT JOIN call_queue AS queue USING (call_sid) WHERE call_sid = $1 AND calls.account_sid = $2",
            &[&sid.as_str(), &account.as_str()],
        )
        .await?;
    Ok(row.as_ref().map(read_progress))
}

fn read_progress(row: &Row) -> CallProgress {
    let number = |column: usize| row.get::<_, Option<i16>>(column);
    let time = |column: usize| {
        row.get::<_, Option<i64>>(column)
            .and_then(|millis| Timestamp::from_millisecond(millis).ok())
    };
    CallProgress {
        // Not in the queue any more: it has ended.
        state: number(0)
            .and_then(CallState::from_number)
            .unwrap_or(CallState::Ended),
        outcome: number(1).and_then(Outcome::from_number),
        answered_at: time(2),
        ended_at: time(3),
    }
}
