//! The setting `database`: where all data is kept. `store` opens the database; nothing else asks which kind it is.

use std::fmt;
use std::path::PathBuf;

use url::Url;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    Sqlite(PathBuf),
    /// As the driver reads it: `postgres://user:password@host/name`.
    Postgres(String),
}

impl Database {
    pub fn parse(url: &str) -> Result<Self, String> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            if path.is_empty() {
                return Err("name a file after `sqlite:`".to_owned());
            }
            return Ok(Self::Sqlite(PathBuf::from(path)));
        }
        if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            return match url.parse::<tokio_postgres::Config>() {
                Ok(_) => Ok(Self::Postgres(url.to_owned())),
                Err(error) => Err(format!(
                    "is not an address such as postgres://user:password@host/name: {error}"
                )),
            };
        }
        Err("must begin with `sqlite:` or `postgres:`".to_owned())
    }
}

/// Writes the setting without its password, for messages.
impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => match Url::parse(url) {
                Ok(mut url) => {
                    if url.password().is_some() {
                        // This fails only for URLs that cannot have a password.
                        let _ = url.set_password(Some("…"));
                    }
                    write!(f, "{url}")
                }
                Err(_) => f.write_str("postgres:…"),
            },
        }
    }
}
