//! What is known of a call's sound: one place, while it lasts and when it is over.

use std::net::SocketAddr;
use std::time::Duration;

use g711::Codec;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MediaStats {
    /// Agreed on with the answer, or with early media before it.
    pub codec: Option<Codec>,
    pub encrypted: bool,
    /// Where the sound goes: as the peer described it, or as its packets showed.
    pub peer: Option<SocketAddr>,
    pub packets_sent: u32,
    pub packets_late: u32,
    /// The longest that a packet left after its moment.
    pub worst_lateness: Duration,
    pub packets_received: u32,
    /// Missing from what the peer has sent to us.
    pub packets_lost: u32,
    /// How unevenly the peer's packets arrive (RFC 3550 section 6.4.1), now and at its worst.
    pub jitter: Duration,
    pub worst_jitter: Duration,
    /// What the peer said of our packets in its last report, if it ever sent one.
    pub reported: Option<PeerStats>,
    /// To the peer and back, by its last report that tells.
    pub round_trip: Option<Duration>,
    /// Neither sound nor reports came for longer than allowed, and so the call was ended.
    pub peer_vanished: bool,
}

/// How our packets fared on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerStats {
    /// Of all that we sent; less than nothing if packets came twice.
    pub lost: i32,
    /// Lost since the report before, in 256ths, and the worst of these figures.
    pub fraction_lost: u8,
    pub worst_fraction_lost: u8,
    pub jitter: Duration,
}
