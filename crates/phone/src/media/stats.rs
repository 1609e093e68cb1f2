//! The figures of a call's media, while it lasts and when it is over.

use std::net::SocketAddr;
use std::time::Duration;

use g711::Codec;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MediaStats {
    /// Agreed on with the answer, or with early media before it.
    pub codec: Option<Codec>,
    pub encrypted: bool,
    /// The peer's address, as it was described or learned.
    pub peer: Option<SocketAddr>,
    /// The sounds of the playback plan, and how much of them has been sent; without silence and keys.
    pub to_play: Duration,
    pub played: Duration,
    pub packets_sent: u32,
    pub packets_late: u32,
    /// The longest delay of a packet after its due time.
    pub worst_lateness: Duration,
    pub packets_received: u32,
    /// The peer's packets that did not arrive.
    pub packets_lost: u32,
    /// The jitter of the peer's packets (RFC 3550 section 6.4.1), now and at its worst.
    pub jitter: Duration,
    pub worst_jitter: Duration,
    /// What the peer said of our packets in its last report, if it ever sent one.
    pub reported: Option<PeerStats>,
    /// The time to the peer and back, by its last report that tells it.
    pub round_trip: Option<Duration>,
}

/// What the peer reports about our packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerStats {
    /// Lost packets of all that we sent; negative if packets came twice.
    pub lost: i32,
    /// Lost since the report before, in 256ths, and the worst of these figures.
    pub fraction_lost: u8,
    pub worst_fraction_lost: u8,
    pub jitter: Duration,
}
