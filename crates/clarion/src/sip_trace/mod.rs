//! The last SIP messages of this node, for people who have to show a carrier what was said (`clarion call trace`).
//!
//! `phone` shows every message, without its secrets; the ring keeps as many as it has room for; the door hands them to the command line.
//! Nothing is written to a disk, and nothing waits for it.

mod door;
mod filter;
mod pcapng;
mod ring;
mod text;

use std::fmt;
use std::net::SocketAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::door::{TraceAnswer, TraceDoor, ask, path_in};
pub use self::filter::TraceFilter;
pub use self::pcapng::write_pcapng;
pub use self::ring::TraceRing;
pub use self::text::write_text;

/// A message as it is kept and handed out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptMessage {
    pub at: Timestamp,
    /// We have sent it; otherwise we have received it.
    pub sent: bool,
    pub transport: String,
    pub local: SocketAddr,
    /// Unknown where the message does not say where it goes.
    pub peer: Option<SocketAddr>,
    pub call_id: String,
    pub text: String,
}

impl KeptMessage {
    /// Where it comes from and where it goes to.
    fn ends(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        if self.sent {
            (Some(self.local), self.peer)
        } else {
            (self.peer, Some(self.local))
        }
    }

    pub fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// The value of the first header of this name, if there is one.
    fn header(&self, name: &str) -> Option<&str> {
        let head = self
            .text
            .lines()
            .skip(1)
            .take_while(|line| !line.is_empty());
        head.filter_map(|line| line.split_once(':'))
            .find(|(known, _)| known.trim().eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }
}

/// An address that may be unknown.
struct Shown(Option<SocketAddr>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
fn message(call_id: &str, peer: &str, text: &str) -> KeptMessage {
    KeptMessage {
        at: Timestamp::from_millisecond(1_795_000_000_123).unwrap(),
        sent: true,
        transport: "udp".to_owned(),
        local: "192.0.2.1:5060".parse().unwrap(),
        peer: Some(peer.parse().unwrap()),
        call_id: call_id.to_owned(),
        text: text.to_owned(),
    }
}
