//! How a PostgreSQL is reached, and how long it may take to answer. The address is written as for libpq, whose documentation says what each
//! parameter means. One that is not honoured is refused by its name.

mod address;
mod given;
mod hosts;
mod parameters;
#[cfg(test)]
mod tests;
mod url;

use std::fmt;
use std::time::Duration;

pub use self::address::{
    ChannelBinding, DatabasePassword, HostOrder, Keepalive, PostgresAddress, PostgresHost,
    PostgresTls, RootCertificates, SessionTarget, SslMode, SslNegotiation, UserFile,
};
use super::section::{Mistake, Section};

/// A PostgreSQL as the store uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresConfig {
    pub address: PostgresAddress,
    pub deadlines: StatementDeadlines,
}

impl PostgresConfig {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Ok(Self {
            address: PostgresAddress::parse(text)?,
            deadlines: StatementDeadlines::default(),
        })
    }

    /// The address as it was written, with its password: for another program that connects by itself.
    pub fn url(&self) -> &str {
        self.address.url()
    }
}

/// For messages: without the password.
impl fmt::Display for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// `[store]`: how long the database may take to answer before its connection is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementDeadlines {
    pub usual: Duration,
    /// For what reads or changes many rows.
    pub long: Duration,
}

impl Default for StatementDeadlines {
    fn default() -> Self {
        Self {
            usual: Duration::from_secs(5),
            long: Duration::from_secs(300),
        }
    }
}

impl StatementDeadlines {
    pub(super) fn read(section: &mut Section) -> Result<Self, Mistake> {
        let deadlines = Self {
            usual: section.seconds("statement_seconds", 1..=60)?,
            long: section.seconds("long_statement_seconds", 1..=86_400)?,
        };
        if deadlines.long < deadlines.usual {
            return Err(section.mistake(
                "long_statement_seconds",
                "must not be less than statement_seconds",
            ));
        }
        Ok(deadlines)
    }
}
