//! The hosts that we talk to: those of the trunks, as their names resolve now and have resolved lately, and the networks that the operator
//! names besides. Only they are heard, get a connection, and are helped to end a call that we do not remember.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;

/// A name may resolve to one of its addresses today and to another tomorrow. Calls of before are shorter than this.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);
/// Trunks have few addresses; a name that resolves to ever new ones must not fill the memory.
const LIMIT: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct KnownPeers(Mutex<Peers>);

#[derive(Debug, Default)]
struct Peers {
    /// With the time at which each was found last.
    hosts: HashMap<IpAddr, Instant>,
    networks: Vec<IpNet>,
}

impl KnownPeers {
    pub fn add(&self, peer: IpAddr, now: Instant) {
        let mut peers = self.lock();
        let hosts = &mut peers.hosts;
        let peer = peer.to_canonical();
        if hosts.len() >= LIMIT && !hosts.contains_key(&peer) {
            let oldest = hosts.iter().min_by_key(|(_, found)| **found);
            if let Some(oldest) = oldest.map(|(host, _)| *host) {
                hosts.remove(&oldest);
            }
        }
        hosts.insert(peer, now);
    }

    pub fn add_network(&self, network: IpNet) {
        let networks = &mut self.lock().networks;
        if !networks.contains(&network) {
            networks.push(network);
        }
    }

    pub fn contain(&self, peer: IpAddr, now: Instant) -> bool {
        let peer = peer.to_canonical();
        let peers = self.lock();
        let found = peers.hosts.get(&peer);
        found.is_some_and(|found| now.saturating_duration_since(*found) < REMEMBERED)
            || peers.networks.iter().any(|network| network.contains(&peer))
    }

    fn lock(&self) -> MutexGuard<'_, Peers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_host_is_known_for_a_day_after_it_was_found_last() {
        let (peers, now) = (KnownPeers::default(), Instant::now());
        peers.add(host("192.0.2.1"), now);
        assert!(peers.contain(host("192.0.2.1"), now));
        // However the socket writes it.
        assert!(peers.contain(host("::ffff:192.0.2.1"), now));
        assert!(!peers.contain(host("192.0.2.2"), now));
        peers.add(host("192.0.2.1"), now + REMEMBERED / 2);
        assert!(peers.contain(host("192.0.2.1"), now + REMEMBERED));
        assert!(!peers.contain(host("192.0.2.1"), now + REMEMBERED * 2));
    }

    #[test]
    fn the_networks_of_the_operator_are_known_for_ever() {
        let (peers, now) = (KnownPeers::default(), Instant::now());
        peers.add_network("192.0.2.0/24".parse().unwrap());
        assert!(peers.contain(host("192.0.2.77"), now + REMEMBERED * 9));
        assert!(!peers.contain(host("192.0.3.1"), now));
    }

    #[test]
    fn of_too_many_hosts_the_oldest_is_forgotten() {
        let (peers, now) = (KnownPeers::default(), Instant::now());
        let number = |number: u32| IpAddr::from(number.to_be_bytes());
        for place in 0..5000 {
            peers.add(number(place), now + Duration::from_millis(place.into()));
        }
        assert_eq!(peers.lock().hosts.len(), LIMIT);
        let later = now + Duration::from_secs(5);
        assert!(peers.contain(number(4999), later) && peers.contain(number(904), later));
        assert!(!peers.contain(number(903), later));
    }
}
