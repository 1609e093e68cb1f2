//! What one call hears: every packet that its sockets bring is judged here. No sockets; the time comes as an argument.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::dtmf::KeyListener;
use super::latch::Latch;
use super::receiver_stats::{ReceiverStats, samples};
use super::rtcp::{self, ReportClock};
use super::rtp::{self, Packet};
use super::srtp::{MasterKey, Opener, Suite};
use super::stats::{MediaStats, PeerStats};
use g711::Codec;

/// Something for whoever has the call.
#[derive(Debug)]
pub enum InboundEvent<'a> {
    /// The peer pressed a key.
    Key(char),
    /// A packet of sound in the agreed codec, in clear.
    Sound(Packet<'a>, Instant),
}

/// What a call does with what it hears.
pub type OnInbound = Box<dyn FnMut(InboundEvent<'_>) + Send>;

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

pub struct Inbound {
    began: Instant,
    our_source: u32,
    on_heard: OnInbound,
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
    reception: ReceiverStats,
    last_heard: Instant,
    peer_clock: Option<(u32, Instant)>,
    reported: Option<PeerStats>,
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

impl Inbound {
    pub fn new(began: Instant, our_source: u32, on_heard: OnInbound) -> Self {
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
            reception: ReceiverStats::new(began),
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
            (self.on_heard)(InboundEvent::Key(key));
        } else if is_sound {
            (self.on_heard)(InboundEvent::Sound(packet, now));
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
        if let Some(pacer) = report.pacer {
            self.peer_clock = Some((pacer, now));
        }
        let Some(about_us) = report.about_us else {
            return;
        };
        let fraction_lost = about_us.block.fraction_lost;
        let worst = self.reported.map_or(0, |before| before.worst_fraction_lost);
        self.reported = Some(PeerStats {
            lost: about_us.block.lost,
            fraction_lost,
            worst_fraction_lost: worst.max(fraction_lost),
            jitter: samples(about_us.block.jitter),
        });
        let pacer = ReportClock::at(now.saturating_duration_since(self.began));
        self.round_trip = about_us.round_trip(pacer).or(self.round_trip);
    }

    /// What we have to report about the peer.
    pub fn report(&mut self, now: Instant) -> Option<rtcp::OutgoingBlock> {
        let last_report = self
            .peer_clock
            .map(|(pacer, came)| (pacer, now.saturating_duration_since(came)));
        Some(rtcp::OutgoingBlock {
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

    pub fn add_to(&self, facts: &mut MediaStats) {
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

impl std::fmt::Debug for Inbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hearing")
            .field("peer", &self.peer)
            .field("reception", &self.reception)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
