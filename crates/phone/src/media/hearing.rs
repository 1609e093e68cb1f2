//! What one call hears: every packet that its sockets bring is judged here. No sockets; the time comes as an argument.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::dtmf::KeyListener;
use super::facts::{Facts, Reported};
use super::latch::Latch;
use super::reception::{Reception, samples};
use super::rtcp::{self, ReportClock};
use super::rtp::{self, Packet};
use super::srtp::{MasterKey, Opener, Suite};
use crate::codec::Codec;

/// Something for whoever has the call.
#[derive(Debug)]
pub enum Heard<'a> {
    /// The peer pressed a key.
    Key(char),
    /// A packet of sound in the agreed codec, in clear.
    Sound(Packet<'a>, Instant),
}

/// What a call does with what it hears.
pub type OnHeard = Box<dyn FnMut(Heard<'_>) + Send>;

/// From where the peer sends.
#[derive(Debug)]
enum Peer {
    /// Nothing is agreed on yet.
    Unknown,
    Fixed {
        rtp: SocketAddr,
    },
    /// Behind a NAT: its packets will tell.
    Learning(Latch),
}

pub struct Hearing {
    began: Instant,
    our_source: u32,
    on_heard: OnHeard,
    peer: Peer,
    /// Where the peer says that it sends from and listens: RTP and RTCP.
    described: Option<(SocketAddr, SocketAddr)>,
    /// Where reports go to.
    rtcp: Option<SocketAddr>,
    symmetric: bool,
    codec: Option<Codec>,
    telephone_event: Option<u8>,
    /// Keys count from the answer on; in early media they are somebody else's.
    answered: bool,
    keys: KeyListener,
    opener: Option<(MasterKey, Opener)>,
    clear: Vec<u8>,
    reception: Reception,
    last_heard: Instant,
    peer_clock: Option<(u32, Instant)>,
    reported: Option<Reported>,
    round_trip: Option<Duration>,
}

/// What the peer's description says about what we shall hear.
#[derive(Debug, Clone)]
pub struct Expected {
    pub rtp: SocketAddr,
    pub rtcp: SocketAddr,
    pub codec: Codec,
    pub telephone_event: Option<u8>,
    pub key: Option<(Suite, MasterKey)>,
    pub symmetric: bool,
    pub answered: bool,
}

impl Hearing {
    pub fn new(began: Instant, our_source: u32, on_heard: OnHeard) -> Self {
        Self {
            began,
            our_source,
            on_heard,
            peer: Peer::Unknown,
            described: None,
            rtcp: None,
            symmetric: false,
            codec: None,
            telephone_event: None,
            answered: false,
            keys: KeyListener::default(),
            opener: None,
            clear: Vec::new(),
            reception: Reception::new(began),
            last_heard: began,
            peer_clock: None,
            reported: None,
            round_trip: None,
        }
    }

    /// Takes over what the peer has described, for the first time or again. True if its address is to be learned now, so that the socket must
    /// be open to anybody.
    pub fn expect(&mut self, expected: Expected, now: Instant) -> bool {
        let described = (expected.rtp, expected.rtcp);
        let moved = self.described != Some(described);
        // A peer that sent nothing before it answered could not be learned then.
        let answers = expected.answered && !self.answered;
        let elsewhere = matches!(self.peer, Peer::Fixed { rtp } if rtp != expected.rtp);
        let learns = expected.symmetric && (moved || (answers && !elsewhere));
        if learns {
            self.peer = Peer::Learning(Latch::new(expected.rtp, now));
        } else if moved {
            self.peer = Peer::Fixed { rtp: expected.rtp };
        }
        if moved {
            self.rtcp = Some(expected.rtcp);
        }
        self.described = Some(described);
        self.symmetric = expected.symmetric;
        self.codec = Some(expected.codec);
        self.telephone_event = expected.telephone_event;
        self.answered = expected.answered;
        // The same key again keeps what was counted with it: the rollovers, and what must not be heard twice.
        self.opener = match (self.opener.take(), expected.key) {
            (Some((known, opener)), Some((_, key))) if known == key => Some((known, opener)),
            (_, Some((suite, key))) => {
                let opener = Opener::new(suite, &key);
                Some((key, opener))
            }
            (_, None) => None,
        };
        self.last_heard = now;
        learns
    }

    /// Judges a packet of either socket. An address comes back when the peer's has just been learned.
    pub fn hear(&mut self, bytes: &[u8], from: SocketAddr, now: Instant) -> Option<SocketAddr> {
        if rtp::is_rtcp(bytes) {
            self.hear_rtcp(bytes, from, now);
            return None;
        }
        if matches!(self.peer, Peer::Fixed { rtp } if rtp != from) {
            return None;
        }
        let mut clear = std::mem::take(&mut self.clear);
        let opened = match &mut self.opener {
            Some((_, opener)) => opener.open_rtp(bytes, &mut clear),
            None => Some(bytes),
        };
        let learned = opened
            .and_then(Packet::parse)
            .and_then(|packet| self.hear_rtp(packet, from, now));
        self.clear = clear;
        learned
    }

    fn hear_rtp(
        &mut self,
        packet: Packet<'_>,
        from: SocketAddr,
        now: Instant,
    ) -> Option<SocketAddr> {
        let is_sound = self
            .codec
            .is_some_and(|codec| codec.payload_type() == packet.payload_type);
        let is_key = self.telephone_event == Some(packet.payload_type);
        let learned = match &mut self.peer {
            Peer::Unknown => return None,
            Peer::Fixed { .. } => None,
            Peer::Learning(_) if !(is_sound || is_key) => return None,
            Peer::Learning(latch) => {
                let rtp = latch.hear(from, &packet, now)?;
                self.fix(rtp);
                Some(rtp)
            }
        };
        // What settled it may itself come from somebody else.
        if !matches!(self.peer, Peer::Fixed { rtp } if rtp == from) {
            return learned;
        }
        self.last_heard = now;
        self.reception.hear(&packet, now, is_sound);
        if is_key
            && self.answered
            && let Some(key) = self.keys.hear(packet.timestamp, packet.payload)
        {
            (self.on_heard)(Heard::Key(key));
        } else if is_sound {
            (self.on_heard)(Heard::Sound(packet, now));
        }
        learned
    }

    fn fix(&mut self, rtp: SocketAddr) {
        self.peer = Peer::Fixed { rtp };
        self.rtcp = self.described.map(|described| match described {
            (told, rtcp) if told == rtp => rtcp,
            (told, rtcp) if told == rtcp => rtp,
            // Of RTCP behind a NAT nothing is known until some arrives; the next port is the best guess (RFC 3550 section 11).
            _ => SocketAddr::new(rtp.ip(), rtp.port().saturating_add(1)),
        });
    }

    fn hear_rtcp(&mut self, bytes: &[u8], from: SocketAddr, now: Instant) {
        let Peer::Fixed { rtp } = self.peer else {
            return;
        };
        // Ports of RTCP change on their way through a NAT; whose they are is known by the address.
        if from.ip() != rtp.ip() && self.rtcp != Some(from) {
            return;
        }
        let mut clear = std::mem::take(&mut self.clear);
        let opened = match &mut self.opener {
            Some((_, opener)) => opener.open_rtcp(bytes, &mut clear),
            None => Some(bytes),
        };
        let report = opened.and_then(|bytes| rtcp::read(bytes, self.our_source));
        self.clear = clear;
        let Some(report) = report else {
            return;
        };
        self.last_heard = now;
        if self.symmetric {
            self.rtcp = Some(from);
        }
        if let Some(clock) = report.clock {
            self.peer_clock = Some((clock, now));
        }
        let Some(about_us) = report.about_us else {
            return;
        };
        let fraction_lost = about_us.block.fraction_lost;
        let worst = self.reported.map_or(0, |before| before.worst_fraction_lost);
        self.reported = Some(Reported {
            lost: about_us.block.lost,
            fraction_lost,
            worst_fraction_lost: worst.max(fraction_lost),
            jitter: samples(about_us.block.jitter),
        });
        let clock = ReportClock::at(now.saturating_duration_since(self.began));
        self.round_trip = about_us.round_trip(clock).or(self.round_trip);
    }

    /// What we have to report about the peer.
    pub fn report(&mut self, now: Instant) -> Option<rtcp::Heard> {
        let last_report = self
            .peer_clock
            .map(|(clock, came)| (clock, now.saturating_duration_since(came)));
        Some(rtcp::Heard {
            block: self.reception.report()?,
            last_report,
        })
    }

    pub fn last_heard(&self) -> Instant {
        self.last_heard
    }

    /// Where reports go to.
    pub fn rtcp(&self) -> Option<SocketAddr> {
        self.rtcp
    }

    pub fn add_to(&self, facts: &mut Facts) {
        facts.codec = self.codec;
        facts.encrypted = self.opener.is_some();
        if let Peer::Fixed { rtp } = self.peer {
            facts.peer = Some(rtp);
        }
        facts.packets_received = self.reception.received();
        facts.packets_lost = self.reception.lost();
        facts.jitter = self.reception.jitter();
        facts.worst_jitter = self.reception.worst_jitter();
        facts.reported = self.reported;
        facts.round_trip = self.round_trip;
    }
}

impl std::fmt::Debug for Hearing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hearing")
            .field("peer", &self.peer)
            .field("reception", &self.reception)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::dtmf;
    use crate::media::rtp::Numbers;
    use crate::media::srtp::{RTP_GROWTH, RtpSealer};
    use std::sync::{Arc, Mutex};

    const SUITE: Suite = Suite::AesCm128HmacSha1Tag80;

    struct Lab {
        hearing: Hearing,
        keys: Arc<Mutex<String>>,
        now: Instant,
        numbers: Numbers,
    }

    fn peer() -> SocketAddr {
        "192.0.2.1:4000".parse().unwrap()
    }

    fn stranger() -> SocketAddr {
        "203.0.113.9:4000".parse().unwrap()
    }

    fn expected() -> Expected {
        Expected {
            rtp: peer(),
            rtcp: "192.0.2.1:4001".parse().unwrap(),
            codec: Codec::Pcma,
            telephone_event: Some(101),
            key: None,
            symmetric: false,
            answered: true,
        }
    }

    impl Lab {
        fn new(expected: Expected) -> Self {
            let now = Instant::now();
            let keys = Arc::new(Mutex::new(String::new()));
            let pressed = Arc::clone(&keys);
            let on_heard = move |heard: Heard<'_>| {
                if let Heard::Key(key) = heard {
                    pressed.lock().unwrap().push(key);
                }
            };
            let mut hearing = Hearing::new(now, 7, Box::new(on_heard));
            hearing.expect(expected, now);
            let numbers = Numbers {
                source: 1,
                sequence: 0,
                timestamp: 0,
            };
            Self {
                hearing,
                keys,
                now,
                numbers,
            }
        }

        fn key(&mut self, event: u8) -> Vec<u8> {
            let timestamp = self.numbers.timestamp;
            self.numbers.timestamp += 1600;
            let header = self.numbers.header(101, true, timestamp);
            [&header[..], &dtmf::payload(event, 160, false)].concat()
        }

        fn hear(&mut self, bytes: &[u8], from: SocketAddr) -> Option<SocketAddr> {
            self.hearing.hear(bytes, from, self.now)
        }

        fn keys(&self) -> String {
            self.keys.lock().unwrap().clone()
        }

        fn facts(&self) -> Facts {
            let mut facts = Facts::default();
            self.hearing.add_to(&mut facts);
            facts
        }
    }

    #[test]
    fn strangers_are_not_heard_and_do_not_keep_a_call_alive() {
        let mut lab = Lab::new(expected());
        let (one, two) = (lab.key(1), lab.key(2));
        lab.now += Duration::from_secs(3);
        lab.hear(&one, stranger());
        lab.hear(&[0x80, 201, 0, 1, 0, 0, 0, 1], stranger());
        assert_eq!(lab.now - lab.hearing.last_heard(), Duration::from_secs(3));
        lab.hear(&two, peer());
        assert_eq!(lab.keys(), "2");
        assert_eq!(lab.hearing.last_heard(), lab.now);
        assert_eq!(lab.facts().packets_received, 1);
    }

    #[test]
    fn keys_in_early_media_are_not_ours() {
        let mut lab = Lab::new(Expected {
            answered: false,
            ..expected()
        });
        let (one, two) = (lab.key(1), lab.key(2));
        lab.hear(&one, peer());
        assert_eq!((lab.keys().as_str(), lab.facts().packets_received), ("", 1));
        lab.hearing.expect(expected(), lab.now);
        lab.hear(&two, peer());
        assert_eq!(lab.keys(), "2");
    }

    #[test]
    fn a_peer_behind_a_nat_is_learned_and_then_fixed() {
        let mut lab = Lab::new(Expected {
            symmetric: true,
            ..expected()
        });
        let mut learned = None;
        for event in 0..6 {
            let packet = lab.key(event);
            learned = learned.or(lab.hear(&packet, stranger()));
        }
        assert_eq!(learned, Some(stranger()));
        assert_eq!(lab.facts().peer, Some(stranger()));
        assert_eq!(
            lab.hearing.rtcp(),
            Some("203.0.113.9:4001".parse().unwrap())
        );
        // From now on the described address is as strange as any other.
        let nine = lab.key(9);
        lab.hear(&nine, peer());
        assert!(!lab.keys().contains('9'), "{}", lab.keys());
    }

    #[test]
    fn a_peer_that_was_silent_until_it_answered_is_learned_then() {
        let early = Expected {
            symmetric: true,
            answered: false,
            ..expected()
        };
        let answered = Expected {
            answered: true,
            ..early.clone()
        };
        let mut lab = Lab::new(early);
        lab.now += Duration::from_secs(30);
        assert!(lab.hearing.expect(answered.clone(), lab.now));
        for event in 0..6 {
            let packet = lab.key(event);
            lab.hear(&packet, stranger());
        }
        assert_eq!(lab.facts().peer, Some(stranger()));
        // A hold and what comes after it change nothing about that.
        assert!(!lab.hearing.expect(answered, lab.now));
        assert_eq!(lab.facts().peer, Some(stranger()));
    }

    #[test]
    fn other_payload_types_teach_nothing() {
        let mut lab = Lab::new(Expected {
            symmetric: true,
            ..expected()
        });
        for _ in 0..20 {
            let header = lab.numbers.header(96, false, 0);
            assert_eq!(lab.hear(&header, stranger()), None);
        }
    }

    #[test]
    fn of_an_encrypted_call_only_what_is_authentic_is_heard() {
        let key = MasterKey::random().unwrap();
        let mut lab = Lab::new(Expected {
            key: Some((SUITE, key.clone())),
            symmetric: true,
            ..expected()
        });
        let mut sealer = RtpSealer::new(SUITE, &key);
        for event in 0..6 {
            let forged = lab.key(event);
            assert_eq!(lab.hear(&forged, stranger()), None);
        }
        let mut packet = lab.key(5);
        let length = packet.len();
        packet.extend([0; RTP_GROWTH]);
        sealer.seal(&mut packet, length);
        assert_eq!(lab.hear(&packet, peer()), Some(peer()));
        lab.hear(&packet, peer());
        assert_eq!((lab.keys().as_str(), lab.facts().encrypted), ("5", true));
        // The same key offered again does not open the door to old packets.
        lab.hearing.expect(
            Expected {
                key: Some((SUITE, key)),
                ..expected()
            },
            lab.now,
        );
        lab.hear(&packet, peer());
        assert_eq!(lab.keys(), "5");
    }

    #[test]
    fn the_peers_reports_are_in_the_facts() {
        let mut lab = Lab::new(expected());
        let block = super::super::reception::Block {
            source: 7,
            fraction_lost: 26,
            lost: 5,
            highest: 100,
            jitter: 80,
        };
        let report = |fraction_lost, name| {
            rtcp::Report {
                source: 1,
                name,
                sent: None,
                heard: Some(rtcp::Heard {
                    block: super::super::reception::Block {
                        fraction_lost,
                        ..block
                    },
                    last_report: None,
                }),
                goodbye: false,
            }
            .write()
        };
        lab.hear(&report(26, "a"), "192.0.2.1:9999".parse().unwrap());
        lab.hear(&report(3, "a"), "192.0.2.1:4001".parse().unwrap());
        lab.hear(&report(255, "a"), stranger());
        let expected = Reported {
            lost: 5,
            fraction_lost: 3,
            worst_fraction_lost: 26,
            jitter: Duration::from_millis(10),
        };
        assert_eq!(lab.facts().reported, Some(expected));
    }
}
