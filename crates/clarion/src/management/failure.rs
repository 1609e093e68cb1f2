//! Why a verb did not do what it was asked for.

use thiserror::Error;

use super::settings::SettingError;
use crate::domain::status_code::Refusal;
use crate::domain::wording::{Wording, wording};
use crate::store::StoreError;

#[derive(Debug, Error)]
pub enum ManagementError {
    /// A setting has a value that its rule forbids.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A rule forbids it, in a sentence.
    #[error("{0}")]
    Rule(Wording),
    /// A request of an application would be refused like this.
    #[error("{}", .0.message)]
    Refused(Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was not made.
    #[error("the change cannot be noted in the audit trail, so it is not made: {0}")]
    NotNoted(StoreError),
    /// Something else than the database: a disk, a folder, a server that is away.
    #[error("{0:#}")]
    Failed(anyhow::Error),
}

impl ManagementError {
    /// What was named is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Store(StoreError::Missing(_)))
    }

    /// A rule forbids it, or what is there already: whoever asked can know better. Anything else is no fault of theirs.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Setting(_)
                | Self::Rule(_)
                | Self::Refused(_)
                | Self::Store(StoreError::Exists(_) | StoreError::Conflict(_))
        )
    }

    /// For operators, in both languages as far as it is one of our rules.
    pub fn wording(&self) -> Wording {
        match self {
            Self::Rule(rule) | Self::Store(StoreError::Conflict(rule)) => rule.clone(),
            Self::Refused(refusal) => refusal.wording(),
            Self::Store(StoreError::Exists(what)) => {
                wording!("{what} exists already", "{what}已存在"; what)
            }
            error => Wording::quoting(error),
        }
    }

    pub(super) fn rule(sentence: impl Into<Wording>) -> Self {
        Self::Rule(sentence.into())
    }

    pub(super) fn missing(what: impl Into<String>) -> Self {
        Self::Store(StoreError::Missing(what.into()))
    }
}

impl From<anyhow::Error> for ManagementError {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<StoreError>() {
            Ok(error) => Self::Store(error),
            Err(error) => Self::Failed(error),
        }
    }
}

impl From<Refusal> for ManagementError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
