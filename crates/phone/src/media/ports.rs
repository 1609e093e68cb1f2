//! A pair of ports per call: RTP on an even one, RTCP on the next (RFC 3550 section 11).

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Hands out ports from a range, in turn, so that a port that was just given back is used again as late as possible: stray packets of the
/// call before must not be heard in the next one.
#[derive(Debug)]
pub struct Ports {
    first: u16,
    pairs: u32,
    next: AtomicU32,
}

/// Two sockets that belong to one call; the ports are free again when it is dropped.
#[derive(Debug)]
pub struct PortPair {
    pub rtp: Arc<UdpSocket>,
    pub rtcp: Arc<UdpSocket>,
    pub port: u16,
}

impl Ports {
    /// The range must hold at least one even port and the odd one after it.
    pub fn new(range: &RangeInclusive<u16>) -> Option<Self> {
        let first = range.start().checked_next_multiple_of(2)?;
        let count = (u32::from(*range.end()) + 1).checked_sub(u32::from(first))?;
        let pairs = count / 2;
        (pairs > 0).then_some(Self {
            first,
            pairs,
            next: AtomicU32::new(0),
        })
    }

    /// The next pair that is free on this address; ports that others use are passed over.
    pub fn open(&self, address: IpAddr) -> io::Result<PortPair> {
        for _ in 0..self.pairs {
            let place = self.next.fetch_add(1, Ordering::Relaxed) % self.pairs;
            let port = self.first + u16::try_from(place * 2).expect("within the range of ports");
            let Ok(rtp) = UdpSocket::bind((address, port)) else {
                continue;
            };
            let Ok(rtcp) = UdpSocket::bind((address, port + 1)) else {
                continue;
            };
            return Ok(PortPair {
                rtp: Arc::new(rtp),
                rtcp: Arc::new(rtcp),
                port,
            });
        }
        Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!("no pair of ports is free on {address}"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn pairs_are_even_and_different_and_come_back() {
        let ports = Ports::new(&(47_101..=47_120)).unwrap();
        let open: Vec<_> = std::iter::from_fn(|| ports.open(HERE).ok()).collect();
        let numbers: HashSet<_> = open.iter().map(|pair| pair.port).collect();
        assert_eq!(numbers.len(), open.len());
        assert!(
            open.len() <= 9
                && numbers
                    .iter()
                    .all(|port| port % 2 == 0 && (47_102..47_120).contains(port))
        );
        drop(open);
        assert!(ports.open(HERE).is_ok());
    }

    #[test]
    fn a_range_without_a_pair_is_none() {
        for range in [1..=1, 65_535..=65_535, 5..=6] {
            assert!(Ports::new(&range).is_none(), "{range:?}");
        }
        assert!(Ports::new(&(65_534..=65_535)).is_some());
    }
}
