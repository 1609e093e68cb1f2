//! What a callee has chosen by pressing a key.

use super::outcome::Outcome;

/// What every telephone has.
const KEYS: &str = "0123456789*#";

/// How a stop is stored; a confirmation is stored as its key.
const STOP: &str = "stop";

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
