//! The do-not-call lists of accounts, in SQLite.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params, params_from_iter};

use super::SqliteStore;
use super::query::Query;
use crate::domain::account::AccountSid;
use crate::domain::do_not_call::{DoNotCallEntry, DoNotCallSource};
use crate::store::statements::do_not_call;
use crate::store::{DoNotCallBook, StoreError};

/// Adds a number within the transaction of whoever asks. False if it was there.
pub(super) fn add(
    db: &Connection,
    account: &AccountSid,
    digits: &str,
    source: &DoNotCallSource,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let values = do_not_call::values(account, digits, source, now);
    Ok(db.run(do_not_call::ADD.sqlite, params_from_iter(values))? == 1)
}

#[async_trait]
impl DoNotCallBook for SqliteStore {
    async fn add_do_not_call(
        &self,
        account: &AccountSid,
        numbers: Vec<String>,
        source: DoNotCallSource,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let account = account.clone();
        self.write_beside(move |db| {
            let mut added = 0;
            for digits in &numbers {
                added += u64::from(add(db, &account, digits, &source, now)?);
            }
            Ok(added)
        })
        .await
    }

    async fn remove_do_not_call(
        &self,
        account: &AccountSid,
        digits: &str,
    ) -> Result<bool, StoreError> {
        let (account, digits) = (account.clone(), digits.to_owned());
        self.write_beside(move |db| {
            let values = [account.as_str(), digits.as_str()];
            Ok(db.run(do_not_call::REMOVE.sqlite, values)? == 1)
        })
        .await
    }

    async fn on_do_not_call(
        &self,
        account: &AccountSid,
        digits: &[&str],
    ) -> Result<HashSet<String>, StoreError> {
        let digits: Vec<_> = digits.iter().map(ToString::to_string).collect();
        let account = account.clone();
        self.read(move |db| {
            let mut found = HashSet::new();
            for digits in digits {
                if db.exists(do_not_call::FIND.sqlite, [account.as_str(), &digits])? {
                    found.insert(digits);
                }
            }
            Ok(found)
        })
        .await
    }

    async fn do_not_call_entry(
        &self,
        account: &AccountSid,
        digits: &str,
    ) -> Result<Option<DoNotCallEntry>, StoreError> {
        let (account, digits) = (account.clone(), digits.to_owned());
        self.read(move |db| {
            let values = [account.as_str(), digits.as_str()];
            db.row(do_not_call::FIND.sqlite, values, |row| {
                do_not_call::entry(row)
            })
        })
        .await
    }

    async fn do_not_call_page(
        &self,
        account: &AccountSid,
        after: &str,
        limit: u32,
    ) -> Result<Vec<DoNotCallEntry>, StoreError> {
        let (account, after) = (account.clone(), after.to_owned());
        self.read(move |db| {
            let values = params![account.as_str(), after, limit];
            db.rows(do_not_call::PAGE.sqlite, values, |row| {
                do_not_call::entry(row)
            })
        })
        .await
    }
}
