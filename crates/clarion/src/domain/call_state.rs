//! The life of a call: which state may follow which. Every store guards its updates with this one table.

use std::str::FromStr;

use serde::Serialize;

/// Stored as its number. The numbers never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(i16)]
pub enum CallState {
    /// The call is accepted and durable, and waits for its turn.
    Queued = 0,
    /// A node holds the call's lease and prepares it. Nothing has been sent yet.
    Claimed = 1,
    /// Is committed before the first INVITE leaves. From here on the call is never dialled a second time by itself.
    Dialling = 2,
    Ringing = 3,
    Answered = 4,
    /// The call has its one outcome, its one bill line and its one owed callback.
    Ended = 5,
}

impl CallState {
    pub const ALL: [CallState; 6] = [
        CallState::Queued,
        CallState::Claimed,
        CallState::Dialling,
        CallState::Ringing,
        CallState::Answered,
        CallState::Ended,
    ];

    pub fn number(self) -> i16 {
        self as i16
    }

    /// The word in JSON, in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Claimed => "claimed",
            Self::Dialling => "dialling",
            Self::Ringing => "ringing",
            Self::Answered => "answered",
            Self::Ended => "ended",
        }
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }

    /// Returns whether this state may become `next`: the transition table.
    pub fn may_become(self, next: CallState) -> bool {
        use CallState::{Answered, Claimed, Dialling, Ended, Queued, Ringing};
        match self {
            Queued => matches!(next, Claimed | Ended),
            // The call returns to the queue if its node is lost before it dialled.
            Claimed => matches!(next, Queued | Dialling | Ended),
            // The call returns to the queue only if nothing has rung: every trunk is down, full or answers 503.
            Dialling => matches!(next, Queued | Ringing | Answered | Ended),
            Ringing => matches!(next, Answered | Ended),
            Answered => matches!(next, Ended),
            Ended => false,
        }
    }
}

impl FromStr for CallState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| {
            let words = Self::ALL.map(Self::as_str).join(", ");
            format!("`{text}` is not one of: {words}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_leads_to_the_end_and_nothing_leads_out_of_it() {
        for state in CallState::ALL {
            assert_eq!(
                state.may_become(CallState::Ended),
                state != CallState::Ended
            );
            assert!(!CallState::Ended.may_become(state));
            assert!(!state.may_become(state));
            assert_eq!(CallState::from_number(state.number()), Some(state));
        }
    }

    #[test]
    fn nothing_that_has_rung_is_queued_again() {
        assert!(!CallState::Ringing.may_become(CallState::Queued));
        assert!(!CallState::Answered.may_become(CallState::Queued));
    }
}
