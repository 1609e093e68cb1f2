//! Operators of the console and their sign-ins, in SQLite.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{params, params_from_iter};

use super::SqliteStore;
use super::query::Query;
use crate::domain::operator::{Operator, OperatorChange, OperatorName, OperatorRole, SignIn};
use crate::store::statements::operators;
use crate::store::{OperatorBook, StoreError};

#[async_trait]
impl OperatorBook for SqliteStore {
    async fn add_operator(&self, operator: Operator) -> Result<(), StoreError> {
        self.write_beside(move |db| {
            let values = operators::values(&operator);
            match db.run(operators::ADD.sqlite, params_from_iter(values))? {
                1 => Ok(()),
                _ => Err(StoreError::operator_exists(&operator.name)),
            }
        })
        .await
    }

    async fn operator(&self, name: &OperatorName) -> Result<Option<Operator>, StoreError> {
        let name = name.clone();
        self.read(move |db| {
            db.row(operators::FIND.sqlite, [name.as_str()], |row| {
                operators::operator(row)
            })
        })
        .await
    }

    async fn operators(&self) -> Result<Vec<Operator>, StoreError> {
        self.read(|db| db.rows(operators::ALL.sqlite, [], |row| operators::operator(row)))
            .await
    }

    async fn change_operator(
        &self,
        name: &OperatorName,
        change: OperatorChange,
    ) -> Result<Operator, StoreError> {
        let name = name.clone();
        self.write_beside(move |db| {
            let values = params_from_iter(operators::change_values(&name, &change));
            let changed = db.row(operators::CHANGE.sqlite, values, |row| {
                operators::operator(row)
            })?;
            changed.ok_or_else(|| StoreError::no_operator(&name))
        })
        .await
    }

    async fn remove_operator(&self, name: &OperatorName) -> Result<(), StoreError> {
        let name = name.clone();
        self.write_beside(
            move |db| match db.run(operators::REMOVE.sqlite, [name.as_str()])? {
                1 => Ok(()),
                _ => Err(StoreError::no_operator(&name)),
            },
        )
        .await
    }

    async fn add_sign_in(&self, sign_in: SignIn) -> Result<(), StoreError> {
        self.write_beside(move |db| {
            let now = params![sign_in.created_at.as_millisecond()];
            db.run(operators::FORGET_EXPIRED.sqlite, now)?;
            let values = params_from_iter(operators::sign_in_values(&sign_in));
            db.run(operators::ADD_SIGN_IN.sqlite, values)?;
            Ok(())
        })
        .await
    }

    async fn sign_in(
        &self,
        id_hash: &str,
        now: Timestamp,
    ) -> Result<Option<(SignIn, OperatorRole)>, StoreError> {
        let id_hash = id_hash.to_owned();
        self.read(move |db| {
            let values = params![id_hash, now.as_millisecond()];
            db.row(operators::SIGN_IN.sqlite, values, |row| {
                operators::sign_in(row)
            })
        })
        .await
    }

    async fn renew_sign_in(
        &self,
        id_hash: &str,
        seen_at: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let id_hash = id_hash.to_owned();
        self.write_beside(move |db| {
            let values = operators::renewal_values(&id_hash, seen_at, expires_at);
            db.run(operators::RENEW_SIGN_IN.sqlite, params_from_iter(values))?;
            Ok(())
        })
        .await
    }

    async fn end_sign_in(&self, id_hash: &str) -> Result<(), StoreError> {
        let id_hash = id_hash.to_owned();
        self.write_beside(move |db| {
            db.run(operators::END_SIGN_IN.sqlite, [&id_hash])?;
            Ok(())
        })
        .await
    }
}
