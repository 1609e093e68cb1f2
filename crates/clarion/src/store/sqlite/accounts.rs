//! Accounts and applications in SQLite.

use async_trait::async_trait;
use rusqlite::{Connection, params_from_iter};

use super::SqliteStore;
use super::query::Query;
use crate::domain::account::{
    Account, AccountChange, AccountSid, AppId, Application, ApplicationChange,
};
use crate::store::statements::{Statement, accounts};
use crate::store::{AccountBook, StoreError};

#[async_trait]
impl AccountBook for SqliteStore {
    async fn add_account(&self, account: Account) -> Result<(), StoreError> {
        self.write_beside(move |db| match find(db, &account.sid)? {
            Some(_) => Err(StoreError::account_exists(&account.sid)),
            None => save(db, &account),
        })
        .await
    }

    async fn account(&self, sid: &AccountSid) -> Result<Option<Account>, StoreError> {
        let sid = sid.clone();
        self.read(move |db| find(db, &sid)).await
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.read(|db| db.rows(accounts::ALL.sqlite, [], |row| accounts::account(row)))
            .await
    }

    async fn change_account(
        &self,
        sid: &AccountSid,
        change: AccountChange,
    ) -> Result<Account, StoreError> {
        let sid = sid.clone();
        self.write_beside(move |db| {
            let mut account = find(db, &sid)?.ok_or_else(|| StoreError::no_account(&sid))?;
            account.apply(change.clone());
            save(db, &account)?;
            Ok(account)
        })
        .await
    }

    async fn add_application(&self, application: Application) -> Result<(), StoreError> {
        self.write_beside(move |db| add_application(db, &application))
            .await
    }

    async fn application(&self, id: &AppId) -> Result<Option<Application>, StoreError> {
        let id = id.clone();
        self.read(move |db| find_application(db, &id)).await
    }

    async fn applications(
        &self,
        account: Option<&AccountSid>,
    ) -> Result<Vec<Application>, StoreError> {
        let account = account.cloned();
        self.read(move |db| {
            let read = |row: &rusqlite::Row<'_>| accounts::application(row);
            match &account {
                Some(sid) => db.rows(accounts::APPLICATIONS.sqlite, [sid.as_str()], read),
                None => db.rows(accounts::ALL_APPLICATIONS.sqlite, [], read),
            }
        })
        .await
    }

    async fn change_application(
        &self,
        id: &AppId,
        change: ApplicationChange,
    ) -> Result<Application, StoreError> {
        let id = id.clone();
        self.write_beside(move |db| {
            let found = find_application(db, &id)?;
            let mut application = found.ok_or_else(|| StoreError::no_application(&id))?;
            application.apply(change.clone());
            save_application(db, &application)?;
            Ok(application)
        })
        .await
    }
}

fn find(db: &Connection, sid: &AccountSid) -> Result<Option<Account>, StoreError> {
    db.row(accounts::FIND.sqlite, [sid.as_str()], |row| {
        accounts::account(row)
    })
}

fn save(db: &Connection, account: &Account) -> Result<(), StoreError> {
    let values = accounts::account_values(account);
    db.run(accounts::SAVE.sqlite, params_from_iter(values))?;
    let sid = account.sid.as_str();
    replace_list(
        db,
        (accounts::CLEAR_NUMBER_RULES, accounts::ADD_NUMBER_RULE),
        sid,
        &account.display_numbers,
    )?;
    replace_list(
        db,
        (accounts::CLEAR_NETWORKS, accounts::ADD_NETWORK),
        sid,
        &account.allowed_networks,
    )
}

fn replace_list<T: ToString>(
    db: &Connection,
    (clear, add): (Statement, Statement),
    sid: &str,
    values: &[T],
) -> Result<(), StoreError> {
    db.run(clear.sqlite, [sid])?;
    for value in values {
        db.run(add.sqlite, [sid, &value.to_string()])?;
    }
    Ok(())
}

fn add_application(db: &Connection, application: &Application) -> Result<(), StoreError> {
    if find(db, &application.account)?.is_none() {
        return Err(StoreError::no_account(&application.account));
    }
    match find_application(db, &application.id)? {
        Some(_) => Err(StoreError::application_exists(&application.id)),
        None => save_application(db, application),
    }
}

fn find_application(db: &Connection, id: &AppId) -> Result<Option<Application>, StoreError> {
    db.row(accounts::FIND_APPLICATION.sqlite, [id.as_str()], |row| {
        accounts::application(row)
    })
}

fn save_application(db: &Connection, application: &Application) -> Result<(), StoreError> {
    let values = accounts::application_values(application);
    db.run(accounts::SAVE_APPLICATION.sqlite, params_from_iter(values))?;
    Ok(())
}
