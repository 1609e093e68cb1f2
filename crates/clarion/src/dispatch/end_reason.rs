//! Why a call ended as it did: what the telephone's ending means for the record.

use phone::ending::{Cause, Failure};

use crate::domain::outcome::Outcome;

/// Why a call ended as it did.
#[derive(Debug, Clone)]
pub struct EndReason {
    pub outcome: Outcome,
    pub sip_code: Option<u16>,
    pub text: Option<String>,
}

impl EndReason {
    pub fn plain(outcome: Outcome) -> Self {
        Self {
            outcome,
            sip_code: None,
            text: None,
        }
    }

    pub fn because(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self {
            text: Some(reason.into()),
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
                // It rang, or may have, and then our lease was not certain any more.
                Cause::Withheld | Cause::LeaveLost => Outcome::Interrupted,
            },
            sip_code: failure.response.as_ref().map(|(code, _)| *code),
            // The peer's own words: whatever bytes it has sent, what is kept is a line of text.
            text: Some(failure.to_string().replace(char::is_control, " ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_is_kept_as_a_line_of_text() {
        let failure = Failure {
            cause: Cause::Busy,
            response: Some((486, "Bu\0sy\r\nHere".to_owned())),
            q850: None,
            rang: true,
        };
        let reason_of_end = EndReason::of_failure(&failure);
        assert_eq!(reason_of_end.outcome, Outcome::Busy);
        let reason = reason_of_end.text.unwrap();
        assert!(!reason.contains(char::is_control), "{reason:?}");
    }
}
