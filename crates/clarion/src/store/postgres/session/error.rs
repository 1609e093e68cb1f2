//! What is known of a statement that was not answered as it should have been.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::Effect;
use crate::store::StoreError;

#[derive(Debug, Clone)]
pub enum StatementError {
    /// The server said no, or the driver before it was asked. Nothing was changed.
    Refused { code: Option<String>, text: String },
    /// There was no answer, and nothing was changed.
    NotDone(String),
    /// There was no answer: it may have been done.
    Unknown(String),
}

impl StatementError {
    pub(super) fn unanswered(effect: Effect, text: String) -> Self {
        match effect {
            Effect::Nothing => Self::NotDone(text),
            Effect::Lasting => Self::Unknown(text),
        }
    }

    /// A server that says itself that it does not know is believed, and so is something between us and it that has lost the server.
    pub(super) fn new(effect: Effect, error: &Error) -> Self {
        let text = describe(error);
        match error.code().map(SqlState::code) {
            Some(code) if code.starts_with("08") || code == "40003" => {
                Self::unanswered(effect, text)
            }
            None if is_lost(error) => Self::unanswered(effect, text),
            code => Self::Refused {
                code: code.map(str::to_owned),
                text,
            },
        }
    }

    /// An answer about the data. Everything else (a lost connection, a server that is shutting down or starting, a deadlock) may pass.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Refused { code, .. } => !code.as_ref().is_some_and(|code| {
                ["25006", "40", "53", "55", "57", "58"]
                    .iter()
                    .any(|class| code.starts_with(class))
            }),
            Self::NotDone(_) | Self::Unknown(_) => false,
        }
    }

    /// There is a row already that this one must not be beside.
    pub fn is_duplicate(&self) -> bool {
        matches!(self, Self::Refused { code: Some(code), .. } if code == SqlState::UNIQUE_VIOLATION.code())
    }

    /// The disk of the server is full.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Refused { code: Some(code), .. } if code == SqlState::DISK_FULL.code())
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    pub fn text(&self) -> &str {
        match self {
            Self::Refused { text, .. } | Self::NotDone(text) | Self::Unknown(text) => text,
        }
    }
}

impl From<StatementError> for StoreError {
    fn from(error: StatementError) -> Self {
        match error {
            full if full.is_full() => Self::NoRoom,
            StatementError::Refused { text, .. } | StatementError::NotDone(text) => {
                Self::Failed(text)
            }
            StatementError::Unknown(text) => Self::Unknown(text),
        }
    }
}

impl std::fmt::Display for StatementError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for StatementError {}

/// After these the session is not used again: the server has become a standby, has forgotten or outgrown what we have prepared, or does not
/// speak as it should.
pub(super) fn spoils(error: &Error) -> bool {
    let codes = [
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::FEATURE_NOT_SUPPORTED,
    ];
    error
        .code()
        .map_or(is_lost(error), |code| codes.contains(code))
}

/// The answer did not come whole. What the driver says of a value has another cause: it was not sent, or has been read.
fn is_lost(error: &Error) -> bool {
    let of_the_wire = |cause: &(dyn std::error::Error + 'static)| cause.is::<std::io::Error>();
    error.code().is_none() && error.source().is_none_or(of_the_wire)
}

/// `Display` of the driver's error hides what the server said, and what lies below.
pub(super) fn describe(error: &Error) -> String {
    if let Some(server) = error.as_db_error() {
        return format!("{}: {}", server.code().code(), server.message());
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// For reading the columns of a row.
impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        Self::Failed(describe(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_of_the_server_is_told_from_other_failures() {
        let refused = |code: &str| StatementError::Refused {
            code: Some(code.to_owned()),
            text: format!("{code}: could not extend file"),
        };
        assert!(!refused("53100").is_final(), "there may be room later");
        assert!(matches!(refused("53100").into(), StoreError::NoRoom));
        assert!(matches!(refused("53200").into(), StoreError::Failed(_)));
    }
}
