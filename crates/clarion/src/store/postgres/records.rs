//! What applications and operators ask and switch, in PostgreSQL.

use async_trait::async_trait;
use jiff::Timestamp;

use super::PostgresStore;
use crate::domain::account::AccountSid;
use crate::domain::attempt::CallHistory;
use crate::domain::call::{CallProgress, CallSid};
use crate::domain::call_record::CallRecord;
use crate::domain::call_state::CallState;
use crate::store::columns::Columns;
use crate::store::statements::{legs, postgres, queue, records};
use crate::store::{BarredChange, Records, StoreError};

/// One change after the other: a revision that is seen is never followed by an earlier one. Any number serves that no other lock has.
const TURN: &str = "WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(7146003105)), \
   forgotten AS (DELETE FROM do_not_call_changes WHERE changed_at < $3), ";
const BAR: &str = postgres!(
    TURN,
    "added AS (INSERT INTO do_not_call (number, added_at) SELECT $1, $2 FROM turn ON CONFLICT DO NOTHING RETURNING number) \
     INSERT INTO do_not_call_changes (number, is_barred, changed_at) SELECT number, TRUE, $2 FROM added"
);
const UNBAR: &str = postgres!(
    TURN,
    "removed AS (DELETE FROM do_not_call WHERE number IN (SELECT $1 FROM turn) RETURNING number) \
     INSERT INTO do_not_call_changes (number, is_barred, changed_at) SELECT number, FALSE, $2 FROM removed"
);

#[async_trait]
impl Records for PostgresStore {
    async fn call_progress(
        &self,
        account: &AccountSid,
        sid: &CallSid,
    ) -> Result<Option<CallProgress>, StoreError> {
        let values: super::Values<'_> = &[&sid.as_str(), &account.as_str()];
        let row = self.query_opt(records::PROGRESS.postgres, values).await?;
        row.as_ref().map(records::progress).transpose()
    }

    async fn call_record(&self, sid: &CallSid) -> Result<Option<CallRecord>, StoreError> {
        let row = self
            .query_opt(records::CALL.postgres, &[&sid.as_str()])
            .await?;
        row.as_ref().map(records::record).transpose()
    }

    async fn call_history(&self, sid: &CallSid) -> Result<CallHistory, StoreError> {
        let attempts = self
            .query(legs::ATTEMPTS.postgres, &[&sid.as_str()])
            .await?;
        let legs = self.query(legs::LEGS.postgres, &[&sid.as_str()]).await?;
        Ok(CallHistory {
            attempts: attempts
                .iter()
                .map(legs::attempt)
                .collect::<Result<_, _>>()?,
            legs: legs.iter().map(legs::leg).collect::<Result<_, _>>()?,
        })
    }

    async fn set_switch(
        &self,
        name: &str,
        value: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let now = now.as_millisecond();
        match value {
            Some(value) => {
                self.execute(records::SET_SWITCH.postgres, &[&name, &value, &now])
                    .await?
            }
            None => {
                self.execute(records::RESET_SWITCH.postgres, &[&name])
                    .await?
            }
        };
        Ok(())
    }

    async fn switches(&self) -> Result<Vec<(String, String)>, StoreError> {
        let rows = self.query(records::SWITCHES.postgres, &[]).await?;
        rows.iter().map(records::switch).collect()
    }

    async fn bar_number(
        &self,
        digits: &str,
        barred: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let statement = if barred { BAR } else { UNBAR };
        let now = now.as_millisecond();
        let forgotten = now - records::CHANGES_KEPT_MS;
        let changed = self
            .execute(statement, &[&digits, &now, &forgotten])
            .await?;
        Ok(changed == 1)
    }

    async fn barred_numbers(&self) -> Result<Vec<String>, StoreError> {
        let rows = self.query(records::BARRED.postgres, &[]).await?;
        rows.iter().map(|row| row.string(0)).collect()
    }

    async fn barred_revision(&self) -> Result<i64, StoreError> {
        let row = self.query_one(records::BARRED_REVISION.postgres, &[]);
        row.await?.number(0)
    }

    async fn barred_changes(&self, after: i64) -> Result<Vec<BarredChange>, StoreError> {
        let values: super::Values<'_> = &[&after];
        let rows = self.query(records::BARRED_CHANGES.postgres, values).await?;
        rows.iter().map(records::barred_change).collect()
    }

    async fn cancel_call_of(
        &self,
        account: &AccountSid,
        sid: &CallSid,
        before_answer: bool,
    ) -> Result<Option<CallState>, StoreError> {
        let values: super::Values<'_> = &[&sid.as_str(), &account.as_str(), &before_answer];
        let row = self.query_opt(queue::CANCEL_OF.postgres, values).await?;
        row.as_ref().map(queue::call_state).transpose()
    }

    fn oldest_node(&self) -> usize {
        self.signals.oldest_node()
    }

    async fn cancel_calls_of(&self, account: &AccountSid) -> Result<u64, StoreError> {
        self.execute(records::CANCEL_CALLS_OF.postgres, &[&account.as_str()])
            .await
    }
}
