//! The do-not-call lists of accounts, in PostgreSQL.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;

use super::session::Session;
use super::{PostgresStore, bound};
use crate::domain::account::AccountSid;
use crate::domain::call::CallSid;
use crate::domain::do_not_call::{DoNotCallEntry, DoNotCallSource};
use crate::store::columns::Columns;
use crate::store::statements::{do_not_call, postgres};
use crate::store::{DoNotCallBook, StoreError};

/// In the order of the digits: two who add the same numbers never wait for each other in a circle.
const ADD_ALL: &str = postgres!(
    "INSERT INTO account_do_not_call (account_sid, number, added_at, source, call_sid) \
     SELECT $1, number, $3, $4, $5 FROM unnest($2::text[]) AS number ORDER BY number ON CONFLICT DO NOTHING"
);
const AMONG: &str =
    postgres!("SELECT number FROM account_do_not_call WHERE account_sid = $1 AND number = ANY($2)");

/// Adds a number within the transaction of whoever asks. False if it was there.
pub(super) async fn add(
    session: &Session,
    account: &AccountSid,
    digits: &str,
    source: &DoNotCallSource,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let values = do_not_call::values(account, digits, source, now);
    let added = session
        .execute(do_not_call::ADD.postgres, &bound(&values))
        .await?;
    Ok(added == 1)
}

#[async_trait]
impl DoNotCallBook for PostgresStore {
    async fn add_do_not_call(
        &self,
        account: &AccountSid,
        numbers: Vec<String>,
        source: DoNotCallSource,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        if let [digits] = &numbers[..] {
            let client = self.client().await?;
            return Ok(u64::from(
                add(&client, account, digits, &source, now).await?,
            ));
        }
        let values: super::Values<'_> = &[
            &account.as_str(),
            &numbers,
            &now.as_millisecond(),
            &source.as_str(),
            &source.call().map(CallSid::as_str),
        ];
        let client = self.long_client().await?;
        Ok(client.execute(ADD_ALL, values).await?)
    }

    async fn remove_do_not_call(
        &self,
        account: &AccountSid,
        digits: &str,
    ) -> Result<bool, StoreError> {
        let values: super::Values<'_> = &[&account.as_str(), &digits];
        Ok(self.execute(do_not_call::REMOVE.postgres, values).await? == 1)
    }

    async fn on_do_not_call(
        &self,
        account: &AccountSid,
        digits: &[&str],
    ) -> Result<HashSet<String>, StoreError> {
        let rows = self.query(AMONG, &[&account.as_str(), &digits]).await?;
        rows.iter().map(|row| row.string(0)).collect()
    }

    async fn do_not_call_entry(
        &self,
        account: &AccountSid,
        digits: &str,
    ) -> Result<Option<DoNotCallEntry>, StoreError> {
        let values: super::Values<'_> = &[&account.as_str(), &digits];
        let row = self.query_opt(do_not_call::FIND.postgres, values).await?;
        row.as_ref().map(do_not_call::entry).transpose()
    }

    async fn do_not_call_page(
        &self,
        account: &AccountSid,
        after: &str,
        limit: u32,
    ) -> Result<Vec<DoNotCallEntry>, StoreError> {
        let values: super::Values<'_> = &[&account.as_str(), &after, &i64::from(limit)];
        let rows = self.query(do_not_call::PAGE.postgres, values).await?;
        rows.iter().map(do_not_call::entry).collect()
    }
}
