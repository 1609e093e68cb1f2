//! How notices end, and what is said of them then.

use jiff::Timestamp;

use super::super::hearing::AnsweredBy;
use super::super::outcome::Outcome;

/// How a notice ended. Stored as its number; the numbers never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum NoticeEnding {
    /// Somebody answered, and no key was asked for.
    Talked = 0,
    /// Somebody pressed the key that was asked for.
    Confirmed = 1,
    /// Every number has had its tries.
    Exhausted = 2,
    /// It was given up after its time.
    Expired = 3,
    Cancelled = 4,
    /// What it was about is over: its incident was resolved.
    Resolved = 5,
    /// The next attempt could not be paid.
    Unpaid = 6,
    /// Somebody had answered when the server was lost: nobody is told twice.
    Interrupted = 7,
}

impl NoticeEnding {
    pub const ALL: [Self; 8] = [
        Self::Talked,
        Self::Confirmed,
        Self::Exhausted,
        Self::Expired,
        Self::Cancelled,
        Self::Resolved,
        Self::Unpaid,
        Self::Interrupted,
    ];

    /// The word in callbacks and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Talked => "talked",
            Self::Confirmed => "confirmed",
            Self::Exhausted => "exhausted",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Resolved => "resolved",
            Self::Unpaid => "unpaid",
            Self::Interrupted => "interrupted",
        }
    }

    pub fn number(self) -> i16 {
        self as i16
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|ending| ending.number() == number)
    }

    /// The state in the callback, of a notice whose furthest attempt had this outcome.
    pub fn callback_state(self, outcome: Outcome) -> char {
        match self {
            Self::Cancelled | Self::Resolved => '1',
            Self::Unpaid => '2',
            _ => outcome.callback_state(),
        }
    }
}

/// A notice that is over: what is said of it as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeEnd {
    pub ending: NoticeEnding,
    /// Of the attempt that came furthest.
    pub outcome: Outcome,
    /// Attempts that were dialled.
    pub attempts: u16,
    pub confirmed: Option<Confirmation>,
    /// Of the attempt that came furthest, where the request wanted to know.
    pub answered_by: Option<AnsweredBy>,
    /// The times of the attempt that decided, or else of the last one that was dialled.
    pub dialled_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    pub ended_at: Timestamp,
}

/// Who has confirmed a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    /// Their number, as the client wrote it.
    pub called: String,
    pub key: char,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_read_back_and_decide_about_the_state() {
        for ending in NoticeEnding::ALL {
            assert_eq!(NoticeEnding::from_number(ending.number()), Some(ending));
        }
        for (ending, outcome, state) in [
            (NoticeEnding::Talked, Outcome::Talked, '0'),
            (NoticeEnding::Exhausted, Outcome::Busy, '1'),
            (NoticeEnding::Exhausted, Outcome::TrunkFailure, '2'),
            (NoticeEnding::Cancelled, Outcome::TrunkFailure, '1'),
            (NoticeEnding::Resolved, Outcome::Cancelled, '1'),
            (NoticeEnding::Unpaid, Outcome::Busy, '2'),
            (NoticeEnding::Expired, Outcome::Expired, '2'),
        ] {
            assert_eq!(
                ending.callback_state(outcome),
                state,
                "{ending:?} {outcome:?}"
            );
        }
    }
}
