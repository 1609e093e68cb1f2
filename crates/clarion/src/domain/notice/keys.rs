//! The keys of a notice: which ones are asked for, and what a callee has chosen by pressing them.

use serde::{Deserialize, Serialize};

use super::super::outcome::Outcome;
use super::super::prompt::Prompt;
use super::super::voice_name::VoiceName;

/// What every telephone has.
const KEYS: &str = "0123456789*#";

/// How a stop is stored; a confirmation is stored as its key.
const STOP: &str = "stop";

/// What is asked of a callee. Keys of different meanings differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeKeys {
    /// Whoever presses one of these has confirmed; none where an answer is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirm: Vec<char>,
    /// Plays the message again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<char>,
    /// Pressed twice: no more calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<char>,
    /// How long a key is waited for after the message, in seconds.
    pub wait: u16,
    /// What asks for the key, where the request brings it; otherwise the platform's sentence does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Prompt>,
    /// Who speaks the platform's sentences, where the request or its application has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<VoiceName>,
}

/// Reads one key.
pub fn key(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let key = characters.next().filter(|key| KEYS.contains(*key))?;
    characters.next().is_none().then_some(key)
}

/// What a callee has said by keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CalleeChoice {
    /// The message was understood; with which key.
    Confirmed(char),
    /// No more calls.
    Stopped,
}

impl CalleeChoice {
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Confirmed(_) => Outcome::Confirmed,
            Self::Stopped => Outcome::Stopped,
        }
    }

    /// The key of a confirmation.
    pub fn confirming_key(self) -> Option<char> {
        match self {
            Self::Confirmed(key) => Some(key),
            Self::Stopped => None,
        }
    }

    pub fn to_stored(self) -> String {
        match self {
            Self::Confirmed(key) => key.to_string(),
            Self::Stopped => STOP.to_owned(),
        }
    }

    pub fn from_stored(text: &str) -> Option<Self> {
        match text {
            STOP => Some(Self::Stopped),
            confirmed => key(confirmed).map(Self::Confirmed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_that_every_telephone_has() {
        for text in ["0", "9", "*", "#"] {
            assert_eq!(key(text), text.chars().next());
        }
        for text in ["", "12", "A", "a", " 1", "１", "stop"] {
            assert_eq!(key(text), None, "{text}");
        }
    }

    #[test]
    fn choices_read_back() {
        for choice in [
            CalleeChoice::Confirmed('1'),
            CalleeChoice::Confirmed('#'),
            CalleeChoice::Stopped,
        ] {
            assert_eq!(CalleeChoice::from_stored(&choice.to_stored()), Some(choice));
        }
        assert_eq!(CalleeChoice::from_stored("yes"), None);
    }
}
