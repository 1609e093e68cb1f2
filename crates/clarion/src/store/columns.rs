//! Reading the columns of a row, whichever database it came from. What a type of the domain wrote is read by that type's own parser.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use tokio_postgres::types::{FromSql, Type};

use super::StoreError;
use crate::domain::money::Money;

pub trait Columns {
    fn optional_text(&self, column: usize) -> Result<Option<&str>, StoreError>;
    fn optional_integer(&self, column: usize) -> Result<Option<i64>, StoreError>;
    fn flag(&self, column: usize) -> Result<bool, StoreError>;

    fn text(&self, column: usize) -> Result<&str, StoreError> {
        there(self.optional_text(column)?, column)
    }

    fn string(&self, column: usize) -> Result<String, StoreError> {
        self.text(column).map(str::to_owned)
    }

    fn optional_string(&self, column: usize) -> Result<Option<String>, StoreError> {
        Ok(self.optional_text(column)?.map(str::to_owned))
    }

    fn parsed<T: FromStr<Err: Display>>(&self, column: usize) -> Result<T, StoreError> {
        self.text(column)?.parse().map_err(StoreError::failed)
    }

    fn optional_parsed<T: FromStr<Err: Display>>(
        &self,
        column: usize,
    ) -> Result<Option<T>, StoreError> {
        let parsed = self.optional_text(column)?.map(str::parse);
        parsed.transpose().map_err(StoreError::failed)
    }

    fn number<T: TryFrom<i64>>(&self, column: usize) -> Result<T, StoreError> {
        there(self.optional_number(column)?, column)
    }

    fn optional_number<T: TryFrom<i64>>(&self, column: usize) -> Result<Option<T>, StoreError> {
        let number = self.optional_integer(column)?.map(|stored| {
            T::try_from(stored).map_err(|_| broken(column, "holds a number out of its range"))
        });
        number.transpose()
    }

    fn time(&self, column: usize) -> Result<Timestamp, StoreError> {
        there(self.optional_time(column)?, column)
    }

    fn optional_time(&self, column: usize) -> Result<Option<Timestamp>, StoreError> {
        let time = self
            .optional_integer(column)?
            .map(Timestamp::from_millisecond);
        time.transpose().map_err(StoreError::failed)
    }

    fn money(&self, column: usize) -> Result<Money, StoreError> {
        self.number(column).map(Money::from_millionths)
    }

    fn optional_money(&self, column: usize) -> Result<Option<Money>, StoreError> {
        Ok(self.optional_integer(column)?.map(Money::from_millionths))
    }
}

fn there<T>(value: Option<T>, column: usize) -> Result<T, StoreError> {
    value.ok_or_else(|| broken(column, "is empty"))
}

fn broken(column: usize, what: &str) -> StoreError {
    StoreError::failed(format!("column {column} {what}"))
}

impl Columns for rusqlite::Row<'_> {
    fn optional_text(&self, column: usize) -> Result<Option<&str>, StoreError> {
        let value = self.get_ref(column)?;
        value.as_str_or_null().map_err(StoreError::failed)
    }

    fn optional_integer(&self, column: usize) -> Result<Option<i64>, StoreError> {
        let value = self.get_ref(column)?;
        value.as_i64_or_null().map_err(StoreError::failed)
    }

    fn flag(&self, column: usize) -> Result<bool, StoreError> {
        Ok(self.get(column)?)
    }
}

impl Columns for tokio_postgres::Row {
    fn optional_text(&self, column: usize) -> Result<Option<&str>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn optional_integer(&self, column: usize) -> Result<Option<i64>, StoreError> {
        let integer: Option<Integer> = self.try_get(column)?;
        Ok(integer.map(|Integer(number)| number))
    }

    fn flag(&self, column: usize) -> Result<bool, StoreError> {
        Ok(self.try_get(column)?)
    }
}

/// A whole number of any width: SQLite knows one, PostgreSQL three.
struct Integer(i64);

impl<'a> FromSql<'a> for Integer {
    fn from_sql(
        ty: &Type,
        raw: &'a [u8],
    ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(match *ty {
            Type::INT2 => i16::from_sql(ty, raw)?.into(),
            Type::INT4 => i32::from_sql(ty, raw)?.into(),
            _ => i64::from_sql(ty, raw)?,
        }))
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT2 | Type::INT4 | Type::INT8)
    }
}
