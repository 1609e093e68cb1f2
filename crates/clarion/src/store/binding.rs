//! A value that is given to a statement, whichever database it goes to, so that the values of a shared statement are listed once.

use std::borrow::Cow;

use bytes::BytesMut;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::domain::money::Money;

/// A duration as it is written into columns.
pub fn millis(time: SignedDuration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[derive(Debug, Clone)]
pub enum Bind<'a> {
    Null,
    Flag(bool),
    Integer(i64),
    Text(Cow<'a, str>),
}

impl Bind<'_> {
    pub fn of(value: impl Into<Self>) -> Self {
        value.into()
    }

    pub fn into_owned(self) -> Bind<'static> {
        match self {
            Self::Null => Bind::Null,
            Self::Flag(flag) => Bind::Flag(flag),
            Self::Integer(number) => Bind::Integer(number),
            Self::Text(text) => Bind::Text(Cow::Owned(text.into_owned())),
        }
    }
}

impl<'a, T: Into<Bind<'a>>> From<Option<T>> for Bind<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<'a> From<&'a str> for Bind<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Bind<'a> {
    fn from(text: &'a String) -> Self {
        text.as_str().into()
    }
}

impl From<String> for Bind<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<Date> for Bind<'_> {
    fn from(day: Date) -> Self {
        day.to_string().into()
    }
}

impl From<bool> for Bind<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i64> for Bind<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<u32> for Bind<'_> {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<Money> for Bind<'_> {
    fn from(amount: Money) -> Self {
        Self::Integer(amount.millionths())
    }
}

impl From<Timestamp> for Bind<'_> {
    fn from(time: Timestamp) -> Self {
        Self::Integer(time.as_millisecond())
    }
}

impl rusqlite::ToSql for Bind<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Flag(flag) => ToSqlOutput::Owned((*flag).into()),
            Self::Integer(number) => ToSqlOutput::Owned((*number).into()),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

impl ToSql for Bind<'_> {
    /// PostgreSQL says how wide a number it wants; one that does not fit is refused.
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Flag(flag) => flag.to_sql(ty, out),
            Self::Integer(number) => match *ty {
                Type::INT2 => i16::try_from(*number)?.to_sql(ty, out),
                Type::INT4 => i32::try_from(*number)?.to_sql(ty, out),
                Type::INT8 => number.to_sql(ty, out),
                _ => Err(format!("a number was given where {ty} is wanted").into()),
            },
            Self::Text(text) => text.as_ref().to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
