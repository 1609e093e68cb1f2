//! What applications and operators ask and switch, in PostgreSQL.

use async_trait::async_trait;
use jiff::Timestamp;

use super::PostgresStore;
use crate::domain::account::AccountSid;
use crate::domain::attempt::CallHistory;
use crate::domain::call::{CallProgress, CallSid};
use crate::domain::claim::{CallFilter, CallRecord};
use crate::store::columns::Columns;
use crate::store::statements::{legs, records};
use crate::store::{Records, StoreError};

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

    async fn list_calls(&self, filter: CallFilter) -> Result<Vec<CallRecord>, StoreError> {
        let rows = self
            .query(
                records::list(&filter).postgres,
                &[
                    &filter.account.as_ref().map(AccountSid::as_str),
                    &filter.before.as_ref().map(CallSid::as_str),
                    &i64::from(filter.limit),
                ],
            )
            .await?;
        rows.iter().map(records::record).collect()
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
        let changed = if barred {
            let now = now.as_millisecond();
            self.execute(records::BAR.postgres, &[&digits, &now])
                .await?
        } else {
            self.execute(records::UNBAR.postgres, &[&digits]).await?
        };
        Ok(changed == 1)
    }

    async fn barred_numbers(&self) -> Result<Vec<String>, StoreError> {
        let rows = self.query(records::BARRED.postgres, &[]).await?;
        rows.iter().map(|row| row.string(0)).collect()
    }
}
