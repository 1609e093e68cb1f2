//! The setting `database`: where all data is kept. `store` opens the database; nothing else asks which kind it is.

use std::fmt;
use std::path::PathBuf;

use super::postgres::{PostgresConfig, StatementDeadlines};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    Sqlite(PathBuf),
    Postgres(Box<PostgresConfig>),
}

impl Database {
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            if path.is_empty() {
                return Err("name a file after `sqlite:`".to_owned());
            }
            return Ok(Self::Sqlite(PathBuf::from(path)));
        }
        if text.starts_with("postgres:") || text.starts_with("postgresql:") {
            return PostgresConfig::parse(text).map(|config| Self::Postgres(Box::new(config)));
        }
        Err("must begin with `sqlite:` or `postgres:`".to_owned())
    }

    /// Whether the setting itself holds a password.
    pub fn has_password(&self) -> bool {
        matches!(self, Self::Postgres(config) if config.address.password.is_some())
    }

    /// SQLite has none: its statements are answered by this process.
    pub(super) fn with_deadlines(self, deadlines: StatementDeadlines) -> Self {
        match self {
            Self::Sqlite(path) => Self::Sqlite(path),
            Self::Postgres(config) => Self::Postgres(Box::new(PostgresConfig {
                deadlines,
                ..*config
            })),
        }
    }
}

/// Writes the setting without its password, for messages.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(config) => config.fmt(f),
        }
    }
}
