//! One pair of sockets for all calls of a trunk: fewer system calls and fewer ports. Calls are told apart by the address in the peer's
//! description. So the real address of a peer cannot be learned, and two calls cannot have the same peer address.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::inbound_handle::InboundHandle;
use super::ports::{PortPair, Ports};
use super::receiver::{Listening, RtpReceiver};

type CallsByPeer = HashMap<SocketAddr, InboundHandle>;

#[derive(Debug, Default)]
struct Peers(Mutex<CallsByPeer>);

impl Peers {
    fn calls(&self) -> MutexGuard<'_, CallsByPeer> {
        self.0
            .lock()
            .expect("nothing panics while it changes the table")
    }

    fn receive(&self, bytes: &[u8], from: SocketAddr, now: Instant) {
        let inbound = self.calls().get(&from).cloned();
        if let Some(inbound) = inbound {
            // The address is known before, so nothing is learned here.
            inbound.receive(bytes, from, now, |_| ());
        }
    }
}

/// The owner of the trunk keeps it; calls keep it alive while they last.
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
                peers.receive(bytes, from, now);
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

    /// Receives from these addresses, the first of which must not be another call's.
    pub(super) fn enter(
        &self,
        rtp: SocketAddr,
        rtcp: SocketAddr,
        inbound: &InboundHandle,
    ) -> Option<PeerEntry> {
        let mut calls = self.peers.calls();
        let mut addresses = Vec::with_capacity(2);
        for address in [rtp, rtcp] {
            if let Entry::Vacant(entry) = calls.entry(address) {
                entry.insert(inbound.clone());
                addresses.push(address);
            } else if addresses.is_empty() {
                return None;
            }
        }
        Some(PeerEntry {
            peers: Arc::clone(&self.peers),
            addresses,
        })
    }
}

/// A call's entry in the table, until it is dropped.
#[derive(Debug)]
pub(super) struct PeerEntry {
    peers: Arc<Peers>,
    addresses: Vec<SocketAddr>,
}

impl Drop for PeerEntry {
    fn drop(&mut self) {
        let mut calls = self.peers.calls();
        for address in &self.addresses {
            calls.remove(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::inbound::Inbound;
    use super::*;
    use supervisor::Supervisor;

    #[test]
    fn a_peers_address_belongs_to_one_call_at_a_time() {
        let receiver = RtpReceiver::start(&Supervisor::new()).unwrap();
        let ports = Ports::new(&(47_400..=47_499)).unwrap();
        let line = SharedLine::open(&ports, &receiver, "127.0.0.1".parse().unwrap()).unwrap();
        let inbound = || InboundHandle::new(Inbound::new(Instant::now(), 1, Box::new(|_| ())));
        let address = |port| SocketAddr::from(([192, 0, 2, 1], port));
        let first = line.enter(address(4000), address(4001), &inbound());
        assert!(
            line.enter(address(4000), address(5001), &inbound())
                .is_none()
        );
        // Somebody else's RTCP address is not worth a call.
        let second = line
            .enter(address(5000), address(4001), &inbound())
            .unwrap();
        assert_eq!(second.addresses, [address(5000)]);
        drop(first);
        assert!(
            line.enter(address(4000), address(4000), &inbound())
                .is_some()
        );
    }
}
