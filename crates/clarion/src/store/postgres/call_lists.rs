//! Lists of numbers that accounts keep, in PostgreSQL.

use async_trait::async_trait;

use super::{PostgresStore, bound};
use crate::domain::account::AccountSid;
use crate::domain::call_list::{CallList, ListName};
use crate::store::statements::{accounts, call_lists, postgres};
use crate::store::{ListBook, StoreError};

const NAMED: &str = postgres!(
    call_lists::LIST,
    " WHERE account_sid = $1 AND name = ANY($2)"
);

#[async_trait]
impl ListBook for PostgresStore {
    async fn add_list(&self, list: CallList) -> Result<(), StoreError> {
        let client = self.client().await?;
        let account: super::Values<'_> = &[&list.account.as_str()];
        let account = client.query_opt_once(accounts::FIND.postgres, account);
        if account.await?.is_none() {
            return Err(StoreError::no_account(&list.account));
        }
        let values = call_lists::values(&list);
        let added = client
            .execute_once(call_lists::ADD.postgres, &bound(&values))
            .await?;
        match added {
            1 => Ok(()),
            _ => Err(StoreError::list_exists(&list)),
        }
    }

    async fn set_list(&self, list: CallList) -> Result<(), StoreError> {
        let values = call_lists::values(&list);
        let set = self
            .execute(call_lists::SET.postgres, &bound(&values))
            .await?;
        match set {
            1 => Ok(()),
            _ => Err(StoreError::no_list(&list.account, &list.name)),
        }
    }

    async fn remove_list(&self, account: &AccountSid, name: &ListName) -> Result<(), StoreError> {
        let values: super::Values<'_> = &[&account.as_str(), &name.as_str()];
        match self.execute(call_lists::REMOVE.postgres, values).await? {
            1 => Ok(()),
            _ => Err(StoreError::no_list(account, name)),
        }
    }

    async fn lists(&self, account: &AccountSid) -> Result<Vec<CallList>, StoreError> {
        let rows = self
            .query(call_lists::ALL.postgres, &[&account.as_str()])
            .await?;
        rows.iter().map(call_lists::list).collect()
    }

    async fn lists_named(
        &self,
        account: &AccountSid,
        names: &[ListName],
    ) -> Result<Vec<CallList>, StoreError> {
        let names: Vec<_> = names.iter().map(ListName::as_str).collect();
        let rows = self.query(NAMED, &[&account.as_str(), &names]).await?;
        rows.iter().map(call_lists::list).collect()
    }
}
