//! How the test phone behaves when it is called.

use std::time::Duration;

use g711::EncodedAudio;

use super::LineSound;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Say nothing at all for this time.
    pub slow: Duration,
    /// Ring after this time; `None`: do not ring before the answer.
    pub ring: Option<Duration>,
    /// Ring with this sound (183 with a description).
    pub early_media: Option<EncodedAudio>,
    pub then: Then,
    /// Send this after the answer, before any keys.
    pub says: Option<EncodedAudio>,
    /// Keys are pressed after so long.
    pub listens: Duration,
    pub key_form: KeyForm,
    /// One of this many packets is dropped; zero drops none.
    pub deaf_to_every: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// Answer after this time.
    Answer {
        after: Duration,
        hang_up: Option<Duration>,
        keys: String,
    },
    /// Refuse with this code after this time.
    Refuse { after: Duration, code: u16 },
    /// Ring until the caller gives up.
    Nothing,
}

/// How the phone presses its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// Packets of RFC 4733, where the caller takes them.
    Packets,
    /// Tones: the phone does not know telephone-event.
    Tones,
    /// Tones, although telephone-event was agreed on.
    TonesAllTheSame,
}

/// The behaviour of numbers by their suffix, the first column; every other number answers.
pub const NUMBERS: [(&str, &str); 18] = [
    ("0001", "answers at once"),
    ("0002", "is busy"),
    ("0003", "rings and never answers"),
    ("0004", "declines"),
    ("0005", "answers and hangs up after a second"),
    ("0006", "answers after five seconds"),
    ("0007", "fails at the trunk (503)"),
    ("0008", "does not exist (404)"),
    ("0009", "plays a tone while it rings, then answers"),
    ("0010", "answers and presses 1 2 3"),
    ("0011", "hears nine packets of ten"),
    ("0012", "listens for two seconds and presses 1"),
    ("0013", "listens for two seconds and presses 9 twice"),
    ("0014", "answers and says a word"),
    (
        "0015",
        "is an answering machine: a greeting of five seconds, then a beep",
    ),
    ("0016", "answers, and the line has a busy tone"),
    ("0017", "plays a busy tone while it rings, then fails (480)"),
    (
        "0018",
        "plays an announcement while it rings, then fails (480)",
    ),
];

impl Script {
    pub fn answer() -> Self {
        Self {
            slow: Duration::ZERO,
            ring: Some(Duration::ZERO),
            early_media: None,
            then: Then::Answer {
                after: Duration::ZERO,
                hang_up: None,
                keys: String::new(),
            },
            says: None,
            listens: Duration::from_millis(200),
            key_form: KeyForm::Packets,
            deaf_to_every: 0,
        }
    }

    pub fn refuse(code: u16) -> Self {
        Self {
            ring: None,
            then: Then::Refuse {
                after: Duration::ZERO,
                code,
            },
            ..Self::answer()
        }
    }

    pub fn never_answer() -> Self {
        Self {
            then: Then::Nothing,
            ..Self::answer()
        }
    }

    pub fn answer_after(after: Duration) -> Self {
        Self {
            then: Then::Answer {
                after,
                hang_up: None,
                keys: String::new(),
            },
            ..Self::answer()
        }
    }

    pub fn hang_up_after(time: Duration) -> Self {
        Self {
            then: Then::Answer {
                after: Duration::ZERO,
                hang_up: Some(time),
                keys: String::new(),
            },
            ..Self::answer()
        }
    }

    pub fn press(keys: &str) -> Self {
        Self {
            then: Then::Answer {
                after: Duration::ZERO,
                hang_up: None,
                keys: keys.to_owned(),
            },
            ..Self::answer()
        }
    }

    /// What a line that rings sounds like, for a second.
    pub fn ringing_tone() -> EncodedAudio {
        LineSound::default().tone(&[425.0], 1000).encode()
    }

    pub fn say(sound: &LineSound) -> Self {
        Self {
            says: Some(sound.encode()),
            ..Self::answer()
        }
    }

    /// Ring with this sound, and refuse after it.
    pub fn refuse_after(sound: &LineSound, code: u16) -> Self {
        Self {
            early_media: Some(sound.encode()),
            then: Then::Refuse {
                after: sound.length(),
                code,
            },
            ..Self::answer()
        }
    }

    /// What [`NUMBERS`] says of a number.
    pub fn of_number(number: &str) -> Self {
        let suffix = NUMBERS
            .iter()
            .map(|(suffix, _)| *suffix)
            .find(|suffix| number.ends_with(suffix));
        match suffix {
            Some("0002") => Self {
                ring: Some(Duration::ZERO),
                ..Self::refuse(486)
            },
            Some("0003") => Self::never_answer(),
            Some("0004") => Self {
                ring: Some(Duration::ZERO),
                ..Self::refuse(603)
            },
            Some("0005") => Self::hang_up_after(Duration::from_secs(1)),
            Some("0006") => Self::answer_after(Duration::from_secs(5)),
            Some("0007") => Self::refuse(503),
            Some("0008") => Self::refuse(404),
            Some("0009") => Self {
                early_media: Some(Self::ringing_tone()),
                ..Self::answer_after(Duration::from_secs(1))
            },
            Some("0010") => Self::press("123"),
            Some("0011") => Self {
                deaf_to_every: 10,
                ..Self::answer()
            },
            Some("0012") => Self {
                listens: Duration::from_secs(2),
                ..Self::press("1")
            },
            Some("0013") => Self {
                listens: Duration::from_secs(2),
                ..Self::press("99")
            },
            Some("0014") => Self::say(&LineSound::person()),
            Some("0015") => Self::say(&LineSound::machine()),
            Some("0016") => Self::say(&LineSound::busy(20)),
            Some("0017") => Self::refuse_after(&LineSound::busy(8), 480),
            Some("0018") => Self::refuse_after(&LineSound::announcement(), 480),
            _ => Self::answer(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_the_table_behaves_in_its_own_way() {
        let mut seen = Vec::new();
        for (suffix, what) in NUMBERS {
            let script = Script::of_number(&format!("138{suffix}"));
            assert!(!seen.contains(&script), "{suffix} {what}");
            seen.push(script);
        }
        assert_eq!(Script::of_number("13912345678"), Script::answer());
    }
}
