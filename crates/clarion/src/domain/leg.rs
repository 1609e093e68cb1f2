//! A leg of a call, when it is over: one INVITE to one address, and what became of it.

use std::net::SocketAddr;
use std::time::Duration;

use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leg {
    pub trunk: String,
    pub address: SocketAddr,
    /// `udp`, `tcp` or `tls`.
    pub transport: String,
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
    pub media: LegMedia,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HungUpBy {
    Us,
    Them,
    /// It was refused, or nothing ever came back.
    Nobody,
}

/// The figures of a leg's sound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LegMedia {
    /// As it is called in a session description.
    pub codec: Option<String>,
    pub packets_sent: u32,
    pub packets_late: u32,
    pub packets_received: u32,
    pub packets_lost: u32,
    /// Of the peer's packets, at the end and at its worst.
    pub jitter: Duration,
    pub worst_jitter: Duration,
}
