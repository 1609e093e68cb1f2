//! How the functions of this folder ask a connection: every statement is prepared once a connection.

use rusqlite::{Connection, Params, Row};

use super::failure::stop_if_damaged;
use crate::store::StoreError;

pub trait Query {
    /// How many rows were changed.
    fn run(&self, sql: &str, values: impl Params) -> Result<usize, StoreError>;
    /// The first row, if there is one.
    fn row<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError>;
    fn rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError>;

    /// The one row that a count has, or a table that always has one.
    fn only_row<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let row = self.row(sql, values, read)?;
        row.ok_or_else(|| StoreError::failed("a row is missing"))
    }

    fn exists(&self, sql: &str, values: impl Params) -> Result<bool, StoreError> {
        Ok(self.row(sql, values, |_| Ok(()))?.is_some())
    }
}

impl Query for Connection {
    fn run(&self, sql: &str, values: impl Params) -> Result<usize, StoreError> {
        Ok(self.prepare_cached(sql)?.execute(values)?)
    }

    fn row<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        rows.next()?.map(read).transpose()
    }

    fn rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(values)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }
}

/// Every error of every statement passes here, so that damage cannot go unseen as the failure of one request or one change.
impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        stop_if_damaged(&error);
        Self::failed(error)
    }
}
