//! What is kept of a leg when it is over.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::ending::{Failure, Side};
use crate::media::ears::{Answerer, LineTone};
use crate::media::stats::MediaStats;
use crate::signalling::Transport;

/// Nobody needs more of what a peer says, and peers may say anything.
const LONGEST_PHRASE: usize = 200;

/// One INVITE that was sent, with what became of it. Its repetitions with credentials belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegRecord {
    pub address: SocketAddr,
    pub transport: Transport,
    pub sent_at: Instant,
    pub rang_at: Option<Instant>,
    pub answered_at: Option<Instant>,
    pub ended_at: Instant,
    /// The code of the final response, if one came.
    pub code: Option<u16>,
    /// The cause that the telephone network gave (Q.850).
    pub cause: Option<u8>,
    /// The network's words for the cause, or else those of the final response: one line of text that is not too long.
    pub phrase: Option<String>,
    /// `None` if the peer refused it, or never said anything.
    pub hung_up_by: Option<Side>,
    /// Where we have.
    pub why_hung_up: Option<WhyHungUp>,
    /// What the callee pressed, in order.
    pub keys: Vec<KeyPress>,
    /// Where somebody has listened, and there was something to know.
    pub heard: Option<HeardLine>,
    pub media: MediaStats,
}

/// Why we have hung up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyHungUp {
    /// Everything was played.
    Played,
    /// The sound could not be sent any more.
    PlaybackFailed,
    LongestTalk,
    HeldTooLong,
    /// The far end was gone before.
    Vanished,
    /// Whoever has placed the call wants it no more.
    Asked,
    /// A machine has answered.
    Machine,
    /// The network has said by tones that there is nobody.
    Tone,
    /// The answer makes no sense.
    BadAnswer,
    /// It has rung for as long as it may.
    NoAnswer,
    /// Nothing has rung in the time that the trunk has for that.
    NoProgress,
}

/// What was heard on a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeardLine {
    /// `None` if nobody answered.
    pub answered_by: Option<Answerer>,
    pub tone: Option<LineTone>,
    /// How long it took to know.
    pub after: Duration,
}

/// A key that the callee has pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPress {
    pub key: char,
    pub at: Instant,
}

/// A leg that is not over yet.
#[derive(Debug)]
pub(crate) struct OpenLeg {
    address: SocketAddr,
    transport: Transport,
    sent_at: Instant,
    rang_at: Option<Instant>,
}

impl OpenLeg {
    /// It is sent now.
    pub fn new(address: SocketAddr, transport: Transport) -> Self {
        Self {
            address,
            transport,
            sent_at: Instant::now(),
            rang_at: None,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// It rings now. True for the first time: many switches repeat their 180 every few seconds.
    pub fn rings(&mut self) -> bool {
        let first = self.rang_at.is_none();
        self.rang_at.get_or_insert_with(Instant::now);
        first
    }

    /// It is over without an answer.
    pub fn failed(
        &self,
        failure: &Failure,
        why_hung_up: Option<WhyHungUp>,
        media: MediaStats,
    ) -> LegRecord {
        let response = failure.response.as_ref();
        let q850 = failure.q850.as_ref();
        let words = q850.and_then(|q850| q850.text.as_deref());
        let words = words.or_else(|| response.map(|(_, phrase)| phrase.as_str()));
        LegRecord {
            code: response.map(|(code, _)| *code),
            cause: q850.map(|q850| q850.cause),
            phrase: words.map(one_line),
            hung_up_by: why_hung_up.map(|_| Side::Us),
            why_hung_up,
            ..self.record(media)
        }
    }

    /// Somebody answered it, and one side has hung up.
    pub fn answered(&self, call: &AnsweredLeg, media: MediaStats) -> LegRecord {
        LegRecord {
            answered_at: Some(call.answered_at),
            ended_at: call.ended_at,
            code: Some(call.code),
            hung_up_by: Some(call.hung_up_by),
            why_hung_up: call.why_hung_up,
            keys: call.keys.clone(),
            heard: call.heard,
            ..self.record(media)
        }
    }

    fn record(&self, media: MediaStats) -> LegRecord {
        LegRecord {
            address: self.address,
            transport: self.transport,
            sent_at: self.sent_at,
            rang_at: self.rang_at,
            answered_at: None,
            ended_at: Instant::now(),
            code: None,
            cause: None,
            phrase: None,
            hung_up_by: None,
            why_hung_up: None,
            keys: Vec::new(),
            heard: None,
            media,
        }
    }
}

/// How an answered leg went.
#[derive(Debug)]
pub(crate) struct AnsweredLeg {
    pub code: u16,
    pub answered_at: Instant,
    pub ended_at: Instant,
    pub hung_up_by: Side,
    pub why_hung_up: Option<WhyHungUp>,
    pub keys: Vec<KeyPress>,
    pub heard: Option<HeardLine>,
}

fn one_line(text: &str) -> String {
    let letters = text.chars().filter(|letter| !letter.is_control());
    letters.take(LONGEST_PHRASE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ending::{Cause, Q850};

    fn failed(phrase: &str, q850: Option<Q850>) -> LegRecord {
        let failure = Failure {
            response: Some((486, phrase.to_owned())),
            q850,
            ..Failure::plain(Cause::Busy)
        };
        let leg = OpenLeg::new("192.0.2.1:5060".parse().unwrap(), Transport::Udp);
        leg.failed(&failure, None, MediaStats::default())
    }

    #[test]
    fn the_words_of_a_peer_are_kept_as_a_line_that_is_not_too_long() {
        let record = failed(&format!("Bu\0sy\r\n {}", "好".repeat(500)), None);
        let phrase = record.phrase.unwrap();
        assert!(phrase.starts_with("Busy 好"), "{phrase}");
        assert_eq!(phrase.chars().count(), LONGEST_PHRASE);
        assert_eq!((record.code, record.cause), (Some(486), None));
    }

    #[test]
    fn the_words_of_the_network_say_more_than_those_of_the_response() {
        let q850 = |text: Option<&str>| {
            Some(Q850 {
                cause: 17,
                text: text.map(str::to_owned),
            })
        };
        let phrase = |q850| failed("Busy Here", q850).phrase.unwrap();
        assert_eq!(phrase(q850(Some("User busy"))), "User busy");
        assert_eq!(phrase(q850(None)), "Busy Here");
        assert_eq!(failed("Busy Here", q850(None)).cause, Some(17));
    }

    #[test]
    fn a_leg_rings_once() {
        let mut leg = OpenLeg::new("192.0.2.1:5060".parse().unwrap(), Transport::Udp);
        assert!(leg.rings());
        let record = leg.failed(
            &Failure::plain(Cause::NoAnswer),
            None,
            MediaStats::default(),
        );
        assert!(!leg.rings());
        let again = leg.failed(
            &Failure::plain(Cause::NoAnswer),
            None,
            MediaStats::default(),
        );
        assert_eq!(again.rang_at, record.rang_at);
    }
}
