//! One pair of sockets for all calls of a trunk: fewer system calls and fewer ports. Calls are told apart by the address in the peer's
//! description, so that nothing can be learned about where a peer really is, and two calls cannot have the same peer address.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::inbound::Inbound;
use super::ports::{PortPair, Ports};
use super::receiver::{Listening, RtpReceiver};

type Ears = HashMap<SocketAddr, Arc<Mutex<Inbound>>>;

#[derive(Debug, Default)]
struct Peers(Mutex<Ears>);

impl Peers {
    fn ears(&self) -> MutexGuard<'_, Ears> {
        self.0
            .lock()
            .expect("nothing panics while it changes the table")
    }

    fn hear(&self, bytes: &[u8], from: SocketAddr, now: Instant) {
        let hearing = self.ears().get(&from).cloned();
        if let Some(hearing) = hearing {
            let mut hearing = hearing.lock().expect("hearing does not panic");
            hearing.hear(bytes, from, now);
        }
    }
}

/// Kept by whoever keeps the trunk; calls hold on to it while they last.
#[derive(Debug)]
pub struct SharedLine {
    pair: PortPair,
    peers: Arc<Peers>,
    _listening: [Listening; 2],
}

impl SharedLine {
    pub(super) fn open(ports: &Ports, receiver: &RtpReceiver, address: IpAddr) -> io::Result<Self> {
        let pair = ports.open_shared(address)?;
        let peers = Arc::new(Peers::default());
        let listen = |socket: &Arc<UdpSocket>| {
            let peers = Arc::clone(&peers);
            receiver.listen_for_many(Arc::clone(socket), move |bytes, from, now| {
                peers.hear(bytes, from, now);
            })
        };
        Ok(Self {
            _listening: [listen(&pair.rtp)?, listen(&pair.rtcp)?],
            pair,
            peers,
        })
    }

    pub(super) fn pair(&self) -> &PortPair {
        &self.pair
    }

    /// Hears the peer at these addresses, the first of which must not be another call's.
    pub(super) fn enter(
        &self,
        rtp: SocketAddr,
        rtcp: SocketAddr,
        hearing: &Arc<Mutex<Inbound>>,
    ) -> Option<Place> {
        let mut ears = self.peers.ears();
        let mut addresses = Vec::with_capacity(2);
        for address in [rtp, rtcp] {
            if let Entry::Vacant(place) = ears.entry(address) {
                place.insert(Arc::clone(hearing));
                addresses.push(address);
            } else if addresses.is_empty() {
                return None;
            }
        }
        Some(Place {
            peers: Arc::clone(&self.peers),
            addresses,
        })
    }
}

/// A call's place in the table, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    peers: Arc<Peers>,
    addresses: Vec<SocketAddr>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut ears = self.peers.ears();
        for address in &self.addresses {
            ears.remove(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peers_address_belongs_to_one_call_at_a_time() {
        let receiver = RtpReceiver::start().unwrap();
        let ports = Ports::new(&(47_400..=47_499)).unwrap();
        let line = SharedLine::open(&ports, &receiver, "127.0.0.1".parse().unwrap()).unwrap();
        let hearing = || {
            let hearing = Inbound::new(Instant::now(), 1, Box::new(|_| ()));
            Arc::new(Mutex::new(hearing))
        };
        let address = |port| SocketAddr::from(([192, 0, 2, 1], port));
        let first = line.enter(address(4000), address(4001), &hearing());
        assert!(
            line.enter(address(4000), address(5001), &hearing())
                .is_none()
        );
        // Somebody else's RTCP address is not worth a call.
        let second = line
            .enter(address(5000), address(4001), &hearing())
            .unwrap();
        assert_eq!(second.addresses, [address(5000)]);
        drop(first);
        assert!(
            line.enter(address(4000), address(4000), &hearing())
                .is_some()
        );
    }
}
