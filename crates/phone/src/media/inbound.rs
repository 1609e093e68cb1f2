//! What one call receives: every packet of its sockets is judged here. It has no socket, and the time comes as an argument.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::dtmf::KeyListener;
use super::ear_listener::EarListener;
use super::ears::EarReport;
use super::latch::{Believed, Latch};
use super::receiver_stats::{ReceiverStats, samples};
use super::rtcp::{self, ReportClock};
use super::rtp::{self, Packet};
use super::srtp::Opener;
use super::stats::{MediaStats, PeerStats};
use super::tone_listener::ToneListener;
use crate::sdp::{MasterKey, Suite};
use g711::Codec;

/// Something for the owner of the call.
#[derive(Debug)]
pub enum InboundEvent<'a> {
    /// The peer pressed a key, and tells so by packets.
    Key(char),
    /// The peer's sound has the tones of a key.
    Tone(char),
    /// The ears know more than before.
    Heard,
    /// A packet of sound in the agreed codec, in clear.
    Sound(Packet<'a>, Instant),
}

/// What a call does with what it receives.
pub type OnInbound = Box<dyn FnMut(InboundEvent<'_>) + Send>;

/// From where the peer sends.
#[derive(Debug)]
enum Peer {
    /// Nothing is agreed on yet.
    Unknown,
    Fixed {
        rtp: SocketAddr,
    },
    /// Behind a NAT: its address is learned from its packets.
    Learning(Latch),
}

pub struct Inbound {
    began: Instant,
    our_source: u32,
    on_event: OnInbound,
    peer: Peer,
    /// The peer's addresses by its own description: RTP and RTCP.
    described: Option<(SocketAddr, SocketAddr)>,
    /// The address that reports go to.
    rtcp: Option<SocketAddr>,
    symmetric: bool,
    codec: Option<Codec>,
    telephone_event: Option<u8>,
    /// Keys count from the answer on; in early media they are somebody else's.
    answered: bool,
    keys: KeyListener,
    /// Where the peer may press keys as tones.
    tones: Option<Box<ToneListener>>,
    /// Where somebody wants to know who is on the line.
    ears: Option<Box<EarListener>>,
    opener: Option<(MasterKey, Opener)>,
    clear: Vec<u8>,
    receiver_stats: ReceiverStats,
    last_received: Instant,
    /// When the last packet came after the answer.
    heard: Option<Instant>,
    peer_clock: Option<(u32, Instant)>,
    reported: Option<PeerStats>,
    round_trip: Option<Duration>,
}

/// What the peer's description says about the packets that will come.
#[derive(Debug, Clone)]
pub struct InboundParameters {
    pub rtp: SocketAddr,
    pub rtcp: SocketAddr,
    pub codec: Codec,
    pub telephone_event: Option<u8>,
    /// Listen for keys in the sound, where there is no telephone-event.
    pub inband_keys: bool,
    pub key: Option<(Suite, MasterKey)>,
    /// Where the peer's address is learned from its packets: from whose.
    pub symmetric: Option<Believed>,
    pub answered: bool,
}

impl Inbound {
    pub fn new(began: Instant, our_source: u32, on_event: OnInbound) -> Self {
        Self {
            began,
            our_source,
            on_event,
            peer: Peer::Unknown,
            described: None,
            rtcp: None,
            symmetric: false,
            codec: None,
            telephone_event: None,
            answered: false,
            keys: KeyListener::default(),
            tones: None,
            ears: None,
            opener: None,
            clear: Vec::new(),
            receiver_stats: ReceiverStats::new(began),
            last_received: began,
            heard: None,
            peer_clock: None,
            reported: None,
            round_trip: None,
        }
    }

    /// Takes over what the peer has described, for the first time or again. Returns true if the peer's address is to be learned now, so that
    /// the socket must be open to anybody.
    pub fn apply(&mut self, parameters: InboundParameters, now: Instant) -> bool {
        let described = (parameters.rtp, parameters.rtcp);
        let moved = self.described != Some(described);
        // A peer that sent nothing before its answer could not be learned then.
        let answers = parameters.answered && !self.answered;
        let elsewhere = matches!(self.peer, Peer::Fixed { rtp } if rtp != parameters.rtp);
        let due = moved || (answers && !elsewhere);
        let believed = parameters.symmetric.filter(|_| due);
        if let Some(believed) = believed {
            self.peer = Peer::Learning(Latch::new(parameters.rtp, believed, now));
        } else if moved {
            self.peer = Peer::Fixed {
                rtp: parameters.rtp,
            };
        }
        if moved {
            self.rtcp = Some(parameters.rtcp);
        }
        self.described = Some(described);
        self.symmetric = parameters.symmetric.is_some();
        self.codec = Some(parameters.codec);
        self.telephone_event = parameters.telephone_event;
        self.answered = parameters.answered;
        let listens =
            parameters.inband_keys && parameters.answered && parameters.telephone_event.is_none();
        self.tones = listens.then(|| self.tones.take().unwrap_or_default());
        // The same key again keeps what was counted with it: the rollovers, and what must not be received twice.
        self.opener = match (self.opener.take(), parameters.key) {
            (Some((known, opener)), Some((_, key))) if known == key => Some((known, opener)),
            (_, Some((suite, key))) => {
                let opener = Opener::new(suite, &key);
                Some((key, opener))
            }
            (_, None) => None,
        };
        self.last_received = now;
        believed.is_some()
    }

    /// Judges a packet of either socket. Returns the peer's address if this packet has settled it.
    pub fn receive(&mut self, bytes: &[u8], from: SocketAddr, now: Instant) -> Option<SocketAddr> {
        if rtp::is_rtcp(bytes) {
            self.receive_rtcp(bytes, from, now);
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
            .and_then(|packet| self.receive_rtp(packet, from, now));
        self.clear = clear;
        learned
    }

    fn receive_rtp(
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
                let rtp = latch.receive(from, &packet, now)?;
                self.fix(rtp);
                Some(rtp)
            }
        };
        // The packet that settled it may itself come from somebody else.
        if !matches!(self.peer, Peer::Fixed { rtp } if rtp == from) {
            return learned;
        }
        self.hear(now);
        self.receiver_stats.receive(&packet, now, is_sound);
        self.listen_for_tones(&packet, is_sound);
        self.let_hear(&packet, is_sound);
        if is_key
            && self.answered
            && let Some(key) = self.keys.receive(packet.timestamp, packet.payload)
        {
            (self.on_event)(InboundEvent::Key(key));
        } else if is_sound {
            (self.on_event)(InboundEvent::Sound(packet, now));
        }
        learned
    }

    fn listen_for_tones(&mut self, packet: &Packet<'_>, is_sound: bool) {
        if let Some(tones) = &mut self.tones
            && let Some(codec) = self.codec
        {
            let payload = if is_sound { packet.payload } else { &[] };
            let on_event = &mut self.on_event;
            tones.receive(packet, payload, codec, |key| {
                on_event(InboundEvent::Tone(key));
            });
        }
    }

    fn let_hear(&mut self, packet: &Packet<'_>, is_sound: bool) {
        if let Some(ears) = &mut self.ears
            && let Some(codec) = self.codec
        {
            let payload = if is_sound { packet.payload } else { &[] };
            if ears.receive(packet, payload, codec) {
                (self.on_event)(InboundEvent::Heard);
            }
        }
    }

    /// The ears listen from now on and know nothing yet, or listen no more.
    pub fn set_ears(&mut self, listens: bool) {
        self.ears = listens.then(Box::default);
    }

    /// What the ears know, where they listen.
    pub fn ear_report(&self) -> Option<EarReport> {
        self.ears.as_ref().map(|ears| ears.report())
    }

    fn fix(&mut self, rtp: SocketAddr) {
        self.peer = Peer::Fixed { rtp };
        self.rtcp = self.described.map(|described| match described {
            (told, rtcp) if told == rtp => rtcp,
            (told, rtcp) if told == rtcp => rtp,
            // The RTCP port behind a NAT is unknown until a packet arrives; the next port is the best guess (RFC 3550 section 11).
            _ => SocketAddr::new(rtp.ip(), rtp.port().saturating_add(1)),
        });
    }

    fn receive_rtcp(&mut self, bytes: &[u8], from: SocketAddr, now: Instant) {
        let Peer::Fixed { rtp } = self.peer else {
            return;
        };
        // The ports of RTCP change on their way through a NAT; the address tells whose they are.
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
        self.hear(now);
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
        self.reported = Some(PeerStats {
            lost: about_us.block.lost,
            fraction_lost,
            worst_fraction_lost: worst.max(fraction_lost),
            jitter: samples(about_us.block.jitter),
        });
        let clock = ReportClock::at(now.saturating_duration_since(self.began));
        self.round_trip = about_us.round_trip(clock).or(self.round_trip);
    }

    /// A packet of the peer has come.
    fn hear(&mut self, now: Instant) {
        self.last_received = now;
        if self.answered {
            self.heard = Some(now);
        }
    }

    /// When the last packet came after the answer, if one did.
    pub fn heard(&self) -> Option<Instant> {
        self.heard
    }

    /// The block about the peer for our next report.
    pub fn report(&mut self, now: Instant) -> Option<rtcp::OutgoingBlock> {
        let last_report = self
            .peer_clock
            .map(|(clock, came)| (clock, now.saturating_duration_since(came)));
        Some(rtcp::OutgoingBlock {
            block: self.receiver_stats.report()?,
            last_report,
        })
    }

    pub fn last_received(&self) -> Instant {
        self.last_received
    }

    /// The address that reports go to.
    pub fn rtcp(&self) -> Option<SocketAddr> {
        self.rtcp
    }

    pub fn add_to(&self, stats: &mut MediaStats) {
        stats.codec = self.codec;
        stats.encrypted = self.opener.is_some();
        if let Peer::Fixed { rtp } = self.peer {
            stats.peer = Some(rtp);
        }
        stats.packets_received = self.receiver_stats.received();
        stats.packets_lost = self.receiver_stats.lost();
        stats.jitter = self.receiver_stats.jitter();
        stats.worst_jitter = self.receiver_stats.worst_jitter();
        stats.reported = self.reported;
        stats.round_trip = self.round_trip;
    }
}

impl std::fmt::Debug for Inbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbound")
            .field("peer", &self.peer)
            .field("receiver_stats", &self.receiver_stats)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
