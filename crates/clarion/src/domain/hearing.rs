//! What was heard on a leg by those who listened: who answered, and what the network said by tones.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Stored as its number. The numbers never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum AnsweredBy {
    Human = 0,
    /// An answering machine, or a fax.
    Machine = 1,
    /// The call was over before it was known, or nobody had answered but the network.
    Unknown = 2,
}

impl AnsweredBy {
    pub const ALL: [Self; 3] = [Self::Human, Self::Machine, Self::Unknown];

    pub fn number(self) -> i16 {
        self as i16
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.number() == number)
    }

    /// The word in callbacks, on the command line and in the record of a leg.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Machine => "machine",
            Self::Unknown => "unknown",
        }
    }
}

/// What the network said, or a fax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeardTone {
    Busy,
    Congestion,
    Dial,
    /// The three tones before an announcement.
    Special,
    Fax,
    /// A voice before the answer, and then a refusal.
    Announcement,
}

impl HeardTone {
    pub const ALL: [Self; 6] = [
        Self::Busy,
        Self::Congestion,
        Self::Dial,
        Self::Special,
        Self::Fax,
        Self::Announcement,
    ];

    /// The word on the command line and in the record of a leg.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Congestion => "congestion",
            Self::Dial => "dial",
            Self::Special => "sit",
            Self::Fax => "fax",
            Self::Announcement => "announcement",
        }
    }
}

/// Written as `machine/-@2340`, with the milliseconds that it took; `-` where there is nothing to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hearing {
    /// `None` if nobody answered.
    pub answered_by: Option<AnsweredBy>,
    pub tone: Option<HeardTone>,
    /// How long it took to know.
    pub after: Duration,
}

const NOTHING: &str = "-";

impl fmt::Display for Hearing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answered_by = self.answered_by.map_or(NOTHING, AnsweredBy::as_str);
        let tone = self.tone.map_or(NOTHING, HeardTone::as_str);
        write!(f, "{answered_by}/{tone}@{}", self.after.as_millis())
    }
}

impl FromStr for Hearing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (heard, after) = text.split_once('@')?;
            let (answered_by, tone) = heard.split_once('/')?;
            Some(Self {
                answered_by: word(answered_by, &AnsweredBy::ALL, AnsweredBy::as_str).ok()?,
                tone: word(tone, &HeardTone::ALL, HeardTone::as_str).ok()?,
                after: Duration::from_millis(after.parse().ok()?),
            })
        };
        read().ok_or_else(|| format!("not what was heard on a leg: {text:?}"))
    }
}

/// One of these, or none of them where nothing is said. Any other word is a mistake.
fn word<T: Copy>(text: &str, all: &[T], as_str: fn(T) -> &'static str) -> Result<Option<T>, ()> {
    if text == NOTHING {
        return Ok(None);
    }
    let found = all.iter().copied().find(|one| as_str(*one) == text);
    found.map(Some).ok_or(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_heard_reads_back() {
        let mut seen = std::collections::HashSet::new();
        for answered_by in AnsweredBy::ALL.map(Some).into_iter().chain([None]) {
            for tone in HeardTone::ALL.map(Some).into_iter().chain([None]) {
                let hearing = Hearing {
                    answered_by,
                    tone,
                    after: Duration::from_millis(1840),
                };
                let text = hearing.to_string();
                assert_eq!(text.parse(), Ok(hearing));
                assert!(seen.insert(text));
            }
            let number = answered_by.map(AnsweredBy::number);
            assert_eq!(number.and_then(AnsweredBy::from_number), answered_by);
        }
        for wrong in [
            "",
            "human",
            "human@1",
            "nobody/-@1",
            "-/-@",
            "-/-@x",
            "-/-/-@1",
        ] {
            assert!(wrong.parse::<Hearing>().is_err(), "{wrong}");
        }
    }
}
