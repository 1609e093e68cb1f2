//! Every outcome of a call, one row each. The API, the bills and the documents read this table.

use std::str::FromStr;

use serde::Serialize;

macro_rules! outcomes {
    ($($name:ident = $number:literal, $word:literal, $state:literal, $meaning:literal;)+) => {
        /// Stored as its number. The numbers never change their meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        #[repr(i16)]
        pub enum Outcome { $($name = $number),+ }

        impl Outcome {
            pub const ALL: &'static [Outcome] = &[$(Outcome::$name),+];

            /// Returns the word in bills, logs and the command line.
            pub fn as_str(self) -> &'static str {
                match self { $(Outcome::$name => $word),+ }
            }

            /// Returns the state in the callback: 0 talked, 1 not answered, 2 failed.
            pub fn callback_state(self) -> char {
                match self { $(Outcome::$name => $state),+ }
            }

            pub fn meaning(self) -> &'static str {
                match self { $(Outcome::$name => $meaning),+ }
            }
        }
    };
}

outcomes! {
    Talked = 0, "talked", '0', "someone answered";
    NotAnswered = 1, "not-answered", '1', "it rang and nobody answered in time";
    Busy = 2, "busy", '1', "the called party was busy";
    Declined = 3, "declined", '1', "the called party declined";
    Cancelled = 4, "cancelled", '1', "cancelled by the operator or with its account before it was answered";
    NoRoute = 5, "no-route", '2', "the routes changed while it was queued, and none covers the number any more";
    TrunkFailure = 6, "trunk-failure", '2', "no trunk could carry the call";
    InvalidNumber = 7, "invalid-number", '2', "the network does not know the number";
    Expired = 8, "expired", '2', "it waited in the queue for longer than allowed";
    Interrupted = 9, "interrupted", '2', "the server was lost during the call";
    PromptFailed = 10, "prompt-failed", '2', "the prompt could not be rendered: an audio file is not playable, or the text is too long to be spoken";
    Confirmed = 11, "confirmed", '0', "someone answered and pressed the key that was asked for";
    Unconfirmed = 12, "unconfirmed", '1', "someone answered, and nobody pressed the key that was asked for";
    Stopped = 13, "stopped", '1', "someone answered, and wants no more calls";
    Machine = 14, "machine", '1', "a machine answered, and the request wanted to know";
}

impl FromStr for Outcome {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut outcomes = Self::ALL.iter().copied();
        let found = outcomes.find(|outcome| outcome.as_str() == text);
        found.ok_or_else(|| {
            let words: Vec<_> = Self::ALL.iter().map(|outcome| outcome.as_str()).collect();
            format!("`{text}` is not one of: {}", words.join(", "))
        })
    }
}

impl Outcome {
    pub fn number(self) -> i16 {
        self as i16
    }

    /// Returns whether the network was used and reported about the called party. An operator may charge for such a call although nobody
    /// answered.
    pub fn was_tried(self) -> bool {
        matches!(self, Self::NotAnswered | Self::Busy | Self::Declined)
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|outcome| outcome.number() == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_and_states_are_those_of_the_callback() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_number(outcome.number()), Some(*outcome));
            assert!(matches!(outcome.callback_state(), '0'..='2'));
        }
    }
}
