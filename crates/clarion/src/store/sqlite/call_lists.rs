//! Lists of numbers that accounts keep, in SQLite.

use async_trait::async_trait;
use rusqlite::params_from_iter;

use super::SqliteStore;
use super::query::Query;
use crate::domain::account::AccountSid;
use crate::domain::call_list::{CallList, ListName};
use crate::store::statements::{accounts, call_lists};
use crate::store::{ListBook, StoreError};

#[async_trait]
impl ListBook for SqliteStore {
    async fn add_list(&self, list: CallList) -> Result<(), StoreError> {
        self.write_beside(move |db| {
            if !db.exists(accounts::FIND.sqlite, [list.account.as_str()])? {
                return Err(StoreError::no_account(&list.account));
            }
            let values = call_lists::values(&list);
            match db.run(call_lists::ADD.sqlite, params_from_iter(values))? {
                1 => Ok(()),
                _ => Err(StoreError::list_exists(&list)),
            }
        })
        .await
    }

    async fn set_list(&self, list: CallList) -> Result<(), StoreError> {
        self.write_beside(move |db| {
            let values = call_lists::values(&list);
            match db.run(call_lists::SET.sqlite, params_from_iter(values))? {
                1 => Ok(()),
                _ => Err(StoreError::no_list(&list.account, &list.name)),
            }
        })
        .await
    }

    async fn remove_list(&self, account: &AccountSid, name: &ListName) -> Result<(), StoreError> {
        let (account, name) = (account.clone(), name.clone());
        self.write_beside(move |db| {
            let values = [account.as_str(), name.as_str()];
            match db.run(call_lists::REMOVE.sqlite, values)? {
                1 => Ok(()),
                _ => Err(StoreError::no_list(&account, &name)),
            }
        })
        .await
    }

    async fn lists(&self, account: &AccountSid) -> Result<Vec<CallList>, StoreError> {
        let account = account.clone();
        self.read(move |db| {
            db.rows(call_lists::ALL.sqlite, [account.as_str()], |row| {
                call_lists::list(row)
            })
        })
        .await
    }

    async fn lists_named(
        &self,
        account: &AccountSid,
        names: &[ListName],
    ) -> Result<Vec<CallList>, StoreError> {
        let (account, names) = (account.clone(), names.to_vec());
        self.read(move |db| {
            let mut found = Vec::new();
            for name in &names {
                let values = [account.as_str(), name.as_str()];
                found.extend(db.row(call_lists::FIND.sqlite, values, |row| call_lists::list(row))?);
            }
            Ok(found)
        })
        .await
    }
}
