//! A leg of a call, when it is over: one INVITE to one address, and what became of it.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;

use super::hearing::Hearing;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leg {
    pub trunk: String,
    pub address: SocketAddr,
    /// `udp`, `tcp` or `tls`; `None` if its process is gone, and its trunk too.
    pub transport: Option<String>,
    pub sent_at: Timestamp,
    pub rang_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    pub ended_at: Timestamp,
    /// The code of the final response, if one came.
    pub sip_code: Option<u16>,
    /// The cause that the telephone network gave (Q.850).
    pub q850_cause: Option<u8>,
    /// One line of text, in the words of the network or of the peer.
    pub phrase: Option<String>,
    pub hung_up_by: HungUpBy,
    /// Where we have.
    pub hang_up_reason: Option<HangUpReason>,
    /// What the callee pressed, in order.
    pub keys: Vec<LegKey>,
    /// Where somebody has listened, and there was something to know.
    pub heard: Option<Hearing>,
    pub media: LegMedia,
}

impl Leg {
    /// What the far end said: the code of its final response and its words, as far as there are any.
    pub fn response(&self) -> Option<String> {
        match (self.sip_code, &self.phrase) {
            (Some(code), Some(phrase)) => Some(format!("{code} {phrase}")),
            (Some(code), None) => Some(code.to_string()),
            (None, phrase) => phrase.clone(),
        }
    }
}

/// A key that the callee pressed, so long after the answer. Written as `1@2340`, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegKey {
    pub key: char,
    pub after: Duration,
}

impl fmt::Display for LegKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.after.as_millis())
    }
}

impl FromStr for LegKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("not a key with its time: {text:?}");
        let (key, after) = text.split_once('@').ok_or_else(wrong)?;
        Ok(Self {
            key: key.parse().map_err(|_| wrong())?,
            after: Duration::from_millis(after.parse().map_err(|_| wrong())?),
        })
    }
}

/// Stored as its number. The numbers never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i16)]
pub enum HungUpBy {
    /// It was refused, or nothing ever came back.
    Nobody = 0,
    Us = 1,
    Them = 2,
    /// Its process is gone: what became of the leg after the last commit is not known.
    Unknown = 3,
}

impl HungUpBy {
    const ALL: [HungUpBy; 4] = [
        HungUpBy::Nobody,
        HungUpBy::Us,
        HungUpBy::Them,
        HungUpBy::Unknown,
    ];

    pub fn number(self) -> i16 {
        self as i16
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|side| side.number() == number)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Us => "us",
            Self::Them => "them",
            Self::Unknown => "unknown",
        }
    }
}

/// Why we have hung up. Stored by its name, which never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HangUpReason {
    Played,
    PlaybackFailed,
    LongestTalk,
    HeldTooLong,
    Vanished,
    Asked,
    Machine,
    Tone,
    BadAnswer,
    NoAnswer,
    NoProgress,
}

impl HangUpReason {
    pub const ALL: [HangUpReason; 11] = [
        HangUpReason::Played,
        HangUpReason::PlaybackFailed,
        HangUpReason::LongestTalk,
        HangUpReason::HeldTooLong,
        HangUpReason::Vanished,
        HangUpReason::Asked,
        HangUpReason::Machine,
        HangUpReason::Tone,
        HangUpReason::BadAnswer,
        HangUpReason::NoAnswer,
        HangUpReason::NoProgress,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Played => "played",
            Self::PlaybackFailed => "playback-failed",
            Self::LongestTalk => "longest-talk",
            Self::HeldTooLong => "held-too-long",
            Self::Vanished => "vanished",
            Self::Asked => "asked",
            Self::Machine => "machine",
            Self::Tone => "tone",
            Self::BadAnswer => "bad-answer",
            Self::NoAnswer => "no-answer",
            Self::NoProgress => "no-progress",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }

    /// For people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Played => "everything was played",
            Self::PlaybackFailed => "the sound could not be sent any more",
            Self::LongestTalk => "it had talked for as long as it may",
            Self::HeldTooLong => "it was held for too long",
            Self::Vanished => "the far end had vanished",
            Self::Asked => "it was cancelled, or the server stopped",
            Self::Machine => "a machine had answered",
            Self::Tone => "the network said by a tone that there is nobody",
            Self::BadAnswer => "the answer made no sense",
            Self::NoAnswer => "it had rung for as long as it may",
            Self::NoProgress => "nothing rang in time",
        }
    }
}

/// The figures of a leg's sound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LegMedia {
    /// As it is called in a session description.
    pub codec: Option<String>,
    /// Where it was sent to.
    pub address: Option<SocketAddr>,
    /// The message, and how much of it was sent; without silence and keys.
    pub to_play: Duration,
    pub played: Duration,
    pub packets_sent: u32,
    pub packets_late: u32,
    pub packets_received: u32,
    pub packets_lost: u32,
    /// Of the peer's packets, at the end and at its worst.
    pub jitter: Duration,
    pub worst_jitter: Duration,
    /// To the peer and back.
    pub round_trip: Option<Duration>,
    /// Our packets that did not reach the peer, as it says; negative where packets came twice.
    pub peer_lost: Option<i32>,
}
