//! A pair of ports per call: RTP on an even one, RTCP on the next (RFC 3550 section 11).

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustix::net::sockopt;

use super::port_deck::PortDeck;

/// Expedited forwarding (RFC 3246), what voice asks of the network.
pub const EXPEDITED: u8 = 46;
/// The kernel's buffer for packets that we have not read, unless told otherwise. A packet of sound takes about a kilobyte there, so this is
/// some 300 ms; more would only cost memory when somebody floods a port.
pub const RTP_BUFFER: usize = 16 * 1024;
const RTCP_BUFFER: usize = 4 * 1024;
/// For sockets that all calls of a trunk share.
const SHARED_BUFFER: usize = 4 * 1024 * 1024;

/// Hands out ports from a range, at random.
#[derive(Debug)]
pub struct Ports {
    first: u16,
    pairs: u16,
    decks: Arc<Decks>,
    dscp: Option<u8>,
    rtp_buffer: usize,
}

/// The free ports of each address that we bind.
#[derive(Debug, Default)]
struct Decks(Mutex<HashMap<IpAddr, PortDeck>>);

impl Decks {
    fn with<T>(&self, access: impl FnOnce(&mut HashMap<IpAddr, PortDeck>) -> T) -> T {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Two sockets that belong together.
#[derive(Debug)]
pub struct PortPair {
    pub rtp: Arc<UdpSocket>,
    pub rtcp: Arc<UdpSocket>,
    pub lease: PortLease,
}

/// The ports of a pair, which are free again when it is dropped.
#[derive(Debug)]
pub struct PortLease {
    address: IpAddr,
    port: u16,
    decks: Arc<Decks>,
}

impl PortLease {
    /// The even port; that of RTCP is the next.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for PortLease {
    fn drop(&mut self) {
        self.decks.with(|decks| {
            if let Some(deck) = decks.get_mut(&self.address) {
                deck.put_back(self.port, Instant::now());
            }
        });
    }
}

impl Ports {
    /// The range must hold at least one even port and the odd one after it.
    pub fn new(range: &RangeInclusive<u16>) -> Option<Self> {
        let first = range.start().checked_next_multiple_of(2)?;
        let count = (u32::from(*range.end()) + 1).checked_sub(u32::from(first))?;
        let pairs = u16::try_from(count / 2).ok()?;
        (pairs > 0).then_some(Self {
            first,
            pairs,
            decks: Arc::default(),
            dscp: None,
            rtp_buffer: RTP_BUFFER,
        })
    }

    /// Marks the packets of all sockets (RFC 2474).
    #[must_use]
    pub fn marking(mut self, dscp: Option<u8>) -> Self {
        self.dscp = dscp;
        self
    }

    /// Keeps this many bytes of each call that we have not read.
    #[must_use]
    pub fn buffering(mut self, bytes: usize) -> Self {
        self.rtp_buffer = bytes;
        self
    }

    /// A pair that is free on this address; ports that others use are passed over.
    pub fn open(&self, address: IpAddr) -> io::Result<PortPair> {
        let pair = self.bind(address)?;
        self.prepare(&pair.rtp, address, self.rtp_buffer);
        self.prepare(&pair.rtcp, address, RTCP_BUFFER);
        Ok(pair)
    }

    /// A pair for many calls.
    pub fn open_shared(&self, address: IpAddr) -> io::Result<PortPair> {
        let pair = self.bind(address)?;
        for socket in [&pair.rtp, &pair.rtcp] {
            self.prepare(socket, address, SHARED_BUFFER);
            let _ = sockopt::set_socket_send_buffer_size(socket, SHARED_BUFFER);
        }
        Ok(pair)
    }

    fn bind(&self, address: IpAddr) -> io::Result<PortPair> {
        for _ in 0..self.pairs {
            let Some(lease) = self.lease(address) else {
                break;
            };
            match bind_pair(lease) {
                // Others use it.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                bound => return bound,
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!("no pair of ports is free on {address}"),
        ))
    }

    fn lease(&self, address: IpAddr) -> Option<PortLease> {
        let evens = (self.first..=u16::MAX).step_by(2);
        let port = self.decks.with(|decks| {
            let deck = decks.entry(address);
            deck.or_insert_with(|| PortDeck::new(evens.take(self.pairs.into())))
                .draw(Instant::now())
        });
        Some(PortLease {
            address,
            port: port?,
            decks: Arc::clone(&self.decks),
        })
    }

    /// Options that help: a kernel that refuses one of them is no reason not to talk.
    fn prepare(&self, socket: &UdpSocket, address: IpAddr, buffer: usize) {
        let _ = sockopt::set_socket_recv_buffer_size(socket, buffer);
        let Some(dscp) = self.dscp else {
            return;
        };
        // The two bits below it belong to congestion notification.
        let class = (dscp & 0x3f) << 2;
        let _ = match address {
            IpAddr::V4(_) => sockopt::set_ip_tos(socket, class),
            IpAddr::V6(_) => sockopt::set_ipv6_tclass(socket, class.into()),
        };
    }
}

fn bind_pair(lease: PortLease) -> io::Result<PortPair> {
    Ok(PortPair {
        rtp: Arc::new(UdpSocket::bind((lease.address, lease.port))?),
        rtcp: Arc::new(UdpSocket::bind((lease.address, lease.port + 1))?),
        lease,
    })
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
        let numbers: HashSet<_> = open.iter().map(|pair| pair.lease.port()).collect();
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
    fn the_ports_of_calls_cannot_be_guessed_from_those_before() {
        let ports = Ports::new(&(46_000..=46_999)).unwrap();
        let open: Vec<_> = (0..100).map(|_| ports.open(HERE).unwrap()).collect();
        let followed = open
            .windows(2)
            .filter(|two| two[0].lease.port() + 2 == two[1].lease.port());
        assert!(followed.count() < 20);
    }

    #[test]
    fn a_range_that_is_full_is_known_to_be_without_trying_its_ports() {
        let ports = Ports::new(&(45_900..=45_999)).unwrap();
        let leases: Vec<_> = std::iter::from_fn(|| ports.lease(HERE)).collect();
        assert_eq!(leases.len(), 50);
        // Nobody is bound to any of them: a search would have found one.
        assert!(ports.open(HERE).is_err());
        drop(leases);
        assert!(ports.open(HERE).is_ok());
    }

    #[test]
    fn a_range_without_a_pair_is_none() {
        for range in [1..=1, 65_535..=65_535, 5..=6] {
            assert!(Ports::new(&range).is_none(), "{range:?}");
        }
        assert!(Ports::new(&(65_534..=65_535)).is_some());
    }

    #[test]
    fn packets_are_marked_as_voice_where_that_is_wanted() {
        let six = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);
        for (dscp, class) in [(None, 0), (Some(EXPEDITED), 0xb8)] {
            let ports = Ports::new(&(47_200..=47_299)).unwrap().marking(dscp);
            let pair = ports.open(HERE).unwrap();
            assert_eq!(sockopt::ip_tos(&pair.rtp).unwrap(), class);
            assert_eq!(sockopt::ip_tos(&pair.rtcp).unwrap(), class);
            // Not every machine has IPv6.
            if let Ok(pair) = ports.open(six) {
                assert_eq!(sockopt::ipv6_tclass(&pair.rtp).unwrap(), u32::from(class));
            }
        }
    }

    #[test]
    fn a_flood_of_one_port_costs_little_memory() {
        let pair = Ports::new(&(47_300..=47_399)).unwrap().open(HERE).unwrap();
        // The kernel counts twice what was asked for.
        for (socket, limit) in [(&pair.rtp, 2 * RTP_BUFFER), (&pair.rtcp, 2 * RTCP_BUFFER)] {
            assert!(sockopt::socket_recv_buffer_size(socket).unwrap() <= limit);
        }
    }
}
