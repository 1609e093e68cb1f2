//! What operators ask and switch, in PostgreSQL.

use async_trait::async_trait;
use jiff::Timestamp;
use tokio_postgres::Row;

use super::super::{Records, StoreError};
use super::PostgresStore;
use super::queue::{parsed, time};
use crate::domain::account::AccountSid;
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::{CallFilter, CallRecord};
use crate::domain::outcome::Outcome;
use crate::domain::phone_number::PhoneNumber;

const RECORD: &str = "calls.call_sid, calls.account_sid, calls.app_id, calls.called, calls.number, calls.extension, calls.caller, \
  queue.state, calls.outcome, coalesce(calls.trunk, queue.trunk), coalesce(calls.attempts, queue.attempts, 0), calls.accepted_at, \
  queue.due_at, coalesce(calls.dialled_at, queue.dialled_at), coalesce(calls.rang_at, queue.rang_at), \
  coalesce(calls.answered_at, queue.answered_at), calls.ended_at, calls.sip_code, calls.reason";

fn record(row: &Row) -> Result<CallRecord, StoreError> {
    let number = |column: usize| row.get::<_, Option<i16>>(column);
    let at = |column: usize| row.get::<_, Option<i64>>(column).map(time).transpose();
    Ok(CallRecord {
        sid: parsed(row.get(0))?,
        account: parsed(row.get(1))?,
        app: parsed(row.get(2))?,
        called: row.get(3),
        number: PhoneNumber::from_stored(row.get(4), row.get(5)),
        caller: row.get(6),
        state: number(7)
            .and_then(CallState::from_number)
            .unwrap_or(CallState::Ended),
        outcome: number(8).and_then(Outcome::from_number),
        trunk: row.get(9),
        attempts: u32::try_from(row.get::<_, i32>(10)).unwrap_or(0),
        accepted_at: time(row.get(11))?,
        due_at: at(12)?,
        dialled_at: at(13)?,
        rang_at: at(14)?,
        answered_at: at(15)?,
        ended_at: at(16)?,
        sip_code: number(17).and_then(|code| u16::try_from(code).ok()),
        reason: row.get(18),
    })
}

#[async_trait]
impl Records for PostgresStore {
    async fn call_record(&self, sid: &CallSid) -> Result<Option<CallRecord>, StoreError> {
        let query = format!(
            "SELECT {RECORD} FROM calls LEFT JOIN call_queue AS queue USING (call_sid) WHERE call_sid = $1"
        );
        let row = self.query_opt(&query, &[&sid.as_str()]).await?;
        row.as_ref().map(record).transpose()
    }

    async fn list_calls(&self, filter: CallFilter) -> Result<Vec<CallRecord>, StoreError> {
        let join = if filter.alive { "JOIN" } else { "LEFT JOIN" };
        let query = format!(
            "SELECT {RECORD} FROM calls {join} call_queue AS queue USING (call_sid) \
             WHERE ($1::text IS NULL OR calls.account_sid = $1) AND ($2::text IS NULL OR call_sid < $2) ORDER BY call_sid DESC LIMIT $3"
        );
        let rows = self
            .query(
                &query,
                &[
                    &filter.account.as_ref().map(AccountSid::as_str),
                    &filter.before.as_ref().map(CallSid::as_str),
                    &i64::from(filter.limit),
                ],
            )
            .await?;
        rows.iter().map(record).collect()
    }

    async fn set_switch(
        &self,
        name: &str,
        value: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let client = self.client().await?;
        match value {
            Some(value) => {
                let query = "INSERT INTO switches (name, value, set_at) VALUES ($1, $2, $3) \
                             ON CONFLICT (name) DO UPDATE SET value = $2, set_at = $3";
                client
                    .execute(query, &[&name, &value, &now.as_millisecond()])
                    .await?
            }
            None => {
                client
                    .execute("DELETE FROM switches WHERE name = $1", &[&name])
                    .await?
            }
        };
        Ok(())
    }

    async fn switches(&self) -> Result<Vec<(String, String)>, StoreError> {
        let rows = self
            .query("SELECT name, value FROM switches ORDER BY name", &[])
            .await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    async fn bar_number(
        &self,
        digits: &str,
        barred: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let client = self.client().await?;
        let changed = if barred {
            let query =
                "INSERT INTO do_not_call (number, added_at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
            client
                .execute(query, &[&digits, &now.as_millisecond()])
                .await?
        } else {
            client
                .execute("DELETE FROM do_not_call WHERE number = $1", &[&digits])
                .await?
        };
        Ok(changed == 1)
    }

    async fn barred_numbers(&self) -> Result<Vec<String>, StoreError> {
        let rows = self
            .query("SELECT number FROM do_not_call ORDER BY number", &[])
            .await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}
