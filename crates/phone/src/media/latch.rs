//! Symmetric RTP (RFC 4961) towards a peer behind a NAT: it listens at the address that it sends from, whatever its description says.
//!
//! An attacker who makes us believe a wrong address hears the message, so an address is hard to prove. It is learned once, within a few
//! seconds after the description came. Only whole RTP of the agreed payload types counts (and only authentic packets, where the stream is
//! encrypted), several in a row from one address and one source. A packet from the described address settles it at once, and if two
//! strangers speak, neither is believed. After that the address is fixed and everybody else is ignored.
//!
//! Unless the operator says otherwise, only the ports are learned: packets count that come from the host of the description, or from the
//! one that we signal with, where most of those that hide a NAT relay the sound too.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::rtp::Packet;

/// How long a peer may take until its first packets arrive. A NAT opens with the first of them.
const OPEN: Duration = Duration::from_secs(5);
/// The packets in a row that prove an address: 100 ms of sound.
const IN_A_ROW: u8 = 5;

/// Whose packets may show where the peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Believed {
    Anybody,
    /// The host of the description, and the one that we signal with.
    Hosts {
        sip_peer: Option<IpAddr>,
    },
}

#[derive(Debug)]
pub struct Latch {
    described: SocketAddr,
    believed: Believed,
    closes: Instant,
    stranger: Option<Stranger>,
}

#[derive(Debug)]
struct Stranger {
    address: SocketAddr,
    source: u32,
    sequence: u16,
    in_a_row: u8,
}

impl Stranger {
    fn is_followed_by(&self, packet: &Packet<'_>) -> bool {
        self.source == packet.source && self.sequence.wrapping_add(1) == packet.sequence
    }
}

impl Latch {
    pub fn new(described: SocketAddr, believed: Believed, now: Instant) -> Self {
        Self {
            described,
            believed,
            closes: now + OPEN,
            stranger: None,
        }
    }

    /// Judges a packet. Returns the address that is fixed from now on, or `None` while nothing is decided.
    pub fn receive(
        &mut self,
        from: SocketAddr,
        packet: &Packet<'_>,
        now: Instant,
    ) -> Option<SocketAddr> {
        if from == self.described || now >= self.closes {
            return Some(self.described);
        }
        if !self.believes(from.ip()) {
            return None;
        }
        let mut in_a_row = 1;
        if let Some(stranger) = &self.stranger {
            if stranger.address != from {
                return Some(self.described);
            }
            if stranger.is_followed_by(packet) {
                in_a_row = stranger.in_a_row + 1;
            }
        }
        if in_a_row == IN_A_ROW {
            return Some(from);
        }
        self.stranger = Some(Stranger {
            address: from,
            source: packet.source,
            sequence: packet.sequence,
            in_a_row,
        });
        None
    }

    fn believes(&self, host: IpAddr) -> bool {
        match self.believed {
            Believed::Anybody => true,
            Believed::Hosts { sip_peer } => host == self.described.ip() || sip_peer == Some(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Wait {
        latch: Latch,
        now: Instant,
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    impl Wait {
        fn new() -> Self {
            Self::believing(Believed::Anybody)
        }

        fn believing(believed: Believed) -> Self {
            let now = Instant::now();
            Self {
                latch: Latch::new(address("192.0.2.1:4000"), believed, now),
                now,
            }
        }

        /// Sound that goes on for a while. Returns what it has settled.
        fn hear(&mut self, from: &str) -> Option<SocketAddr> {
            (1..=20).find_map(|sequence| self.receive(from, 1, sequence))
        }

        fn receive(&mut self, from: &str, source: u32, sequence: u16) -> Option<SocketAddr> {
            let packet = Packet {
                payload_type: 8,
                marker: false,
                sequence,
                timestamp: 0,
                source,
                payload: &[],
            };
            self.latch.receive(address(from), &packet, self.now)
        }
    }

    #[test]
    fn a_steady_stranger_is_the_peer_behind_its_nat() {
        let mut wait = Wait::new();
        for sequence in 65_534..=u16::MAX {
            assert_eq!(wait.receive("203.0.113.9:7000", 1, sequence), None);
        }
        assert_eq!(wait.receive("203.0.113.9:7000", 1, 0), None);
        assert_eq!(wait.receive("203.0.113.9:7000", 1, 1), None);
        let peer = address("203.0.113.9:7000");
        assert_eq!(wait.receive("203.0.113.9:7000", 1, 2), Some(peer));
    }

    #[test]
    fn the_described_address_settles_it_at_once() {
        let mut wait = Wait::new();
        assert_eq!(wait.receive("203.0.113.9:7000", 1, 1), None);
        let described = address("192.0.2.1:4000");
        assert_eq!(wait.receive("192.0.2.1:4000", 2, 1), Some(described));
    }

    #[test]
    fn only_the_hosts_of_the_description_and_of_the_signalling_are_believed() {
        let sip_peer = Some("198.51.100.4".parse().unwrap());
        let hosts = Believed::Hosts { sip_peer };
        for believed in ["192.0.2.1:7000", "198.51.100.4:7000"] {
            let mut wait = Wait::believing(hosts);
            assert_eq!(wait.hear("203.0.113.9:7000"), None);
            // What a stranger has said before does not keep the peer from being found.
            assert_eq!(wait.hear(believed), Some(address(believed)));
        }
        let mut wait = Wait::believing(Believed::Hosts { sip_peer: None });
        assert_eq!(wait.hear("198.51.100.4:7000"), None);
    }

    #[test]
    fn of_two_strangers_neither_is_believed() {
        let mut wait = Wait::new();
        assert_eq!(wait.receive("203.0.113.9:7000", 1, 1), None);
        let described = address("192.0.2.1:4000");
        assert_eq!(wait.receive("203.0.113.9:7001", 1, 2), Some(described));
    }

    #[test]
    fn packets_that_do_not_follow_each_other_win_no_belief() {
        let mut wait = Wait::new();
        for sequence in (0..100).step_by(2) {
            assert_eq!(wait.receive("203.0.113.9:7000", 1, sequence), None);
        }
        for source in 0..100 {
            assert_eq!(wait.receive("203.0.113.9:7000", source, 500), None);
        }
    }

    #[test]
    fn later_nobody_is_believed() {
        let mut wait = Wait::new();
        wait.now += OPEN;
        let described = address("192.0.2.1:4000");
        assert_eq!(wait.receive("203.0.113.9:7000", 1, 1), Some(described));
    }
}
