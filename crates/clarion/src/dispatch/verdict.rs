//! Why a call ended as it did: what the telephone's ending means for the record.

use phone::ending::{Cause, Failure};

use crate::domain::outcome::Outcome;

/// Why a call ended as it did.
#[derive(Debug, Clone)]
pub struct Verdict {
    pub outcome: Outcome,
    pub sip_code: Option<u16>,
    pub reason: Option<String>,
}

impl Verdict {
    pub fn plain(outcome: Outcome) -> Self {
        Self {
            outcome,
            sip_code: None,
            reason: None,
        }
    }

    pub fn because(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
            ..Self::plain(outcome)
        }
    }

    pub fn of_failure(failure: &Failure) -> Self {
        Self {
            outcome: match failure.cause {
                Cause::Busy => Outcome::Busy,
                Cause::Declined => Outcome::Declined,
                Cause::NoAnswer => Outcome::NotAnswered,
                Cause::Cancelled => Outcome::Cancelled,
                Cause::NoRoute => Outcome::InvalidNumber,
                Cause::Unavailable
                | Cause::Rejected
                | Cause::BadMedia
                | Cause::TimedOut
                | Cause::TransportDown => Outcome::TrunkFailure,
            },
            sip_code: failure.response.as_ref().map(|(code, _)| *code),
            reason: Some(failure.to_string()),
        }
    }
}
