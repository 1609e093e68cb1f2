//! Who gets a connection, and for how long. A stranger is turned away before anything is read, a peer has so many connections and no more,
//! and one on which nothing is said is closed.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::peers::KnownPeers;
use super::refusals::{RefusalCounts, SipRefusal};

/// Each costs some 130 kB while it is read. A peer needs one; some open one for each call that they end.
pub(super) const CONNECTIONS_PER_PEER: usize = 64;
pub(super) const CONNECTIONS: usize = 512;
/// For the handshake of TLS.
pub(super) const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// Whoever connects has something to say.
pub(super) const FIRST_MESSAGE_TIME: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Doorkeeper {
    /// Who may connect; `None` for an endpoint that anybody may call.
    peers: Option<Arc<KnownPeers>>,
    refusals: Arc<RefusalCounts>,
    open: Mutex<HashMap<IpAddr, HashMap<u16, Arc<Notify>>>>,
}

/// The place of one connection, free again when it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    doorkeeper: Arc<Doorkeeper>,
    peer: SocketAddr,
    heard: Arc<Notify>,
}

impl Doorkeeper {
    pub fn new(peers: Option<Arc<KnownPeers>>, refusals: Arc<RefusalCounts>) -> Arc<Self> {
        Arc::new(Self {
            peers,
            refusals,
            open: Mutex::default(),
        })
    }

    /// A place for a connection, if its peer may have one.
    pub fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<ConnectionPlace> {
        let mut known = self.peers.iter();
        if !known.all(|peers| peers.contain(peer.ip(), Instant::now())) {
            self.refusals.count(SipRefusal::Connection, peer);
            return None;
        }
        let place = self.take_place(peer);
        if place.is_none() {
            self.refusals.count(SipRefusal::ExcessConnection, peer);
        }
        place
    }

    fn take_place(self: &Arc<Self>, peer: SocketAddr) -> Option<ConnectionPlace> {
        let mut open = self.lock();
        let all: usize = open.values().map(HashMap::len).sum();
        let of_peer = open.get(&peer.ip()).map_or(0, HashMap::len);
        if all >= CONNECTIONS || of_peer >= CONNECTIONS_PER_PEER {
            return None;
        }
        let heard = Arc::new(Notify::new());
        let of_peer = open.entry(peer.ip()).or_default();
        of_peer.insert(peer.port(), Arc::clone(&heard));
        Some(ConnectionPlace {
            doorkeeper: Arc::clone(self),
            peer,
            heard,
        })
    }

    /// A whole message has come on a connection.
    pub fn heard(&self, peer: SocketAddr) {
        let open = self.lock();
        let connection = open.get(&peer.ip()).and_then(|open| open.get(&peer.port()));
        if let Some(heard) = connection {
            heard.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, HashMap<u16, Arc<Notify>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionPlace {
    /// Waits for the first whole message. False if it takes too long.
    pub async fn is_heard(&self) -> bool {
        let heard = tokio::time::timeout(FIRST_MESSAGE_TIME, self.heard.notified());
        heard.await.is_ok()
    }

    /// Counts it as one that is not worth its place.
    pub fn refuse(&self) {
        let refusals = &self.doorkeeper.refusals;
        refusals.count(SipRefusal::ExcessConnection, self.peer);
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut open = self.doorkeeper.lock();
        if let Some(of_peer) = open.get_mut(&self.peer.ip()) {
            // Another connection may have the same port by now.
            let is_ours = |heard: &Arc<Notify>| Arc::ptr_eq(heard, &self.heard);
            if of_peer.get(&self.peer.port()).is_some_and(is_ours) {
                of_peer.remove(&self.peer.port());
            }
            if of_peer.is_empty() {
                open.remove(&self.peer.ip());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doorkeeper() -> Arc<Doorkeeper> {
        Doorkeeper::new(None, Arc::default())
    }

    fn peer(host: usize, port: usize) -> SocketAddr {
        let host = u8::try_from(host).unwrap();
        SocketAddr::from(([192, 0, 2, host], u16::try_from(port).unwrap()))
    }

    #[test]
    fn a_peer_has_so_many_connections_and_all_together_have_so_many() {
        let doorkeeper = doorkeeper();
        let of_one = |host| {
            let places = (0..100).filter_map(|port| doorkeeper.admit(peer(host, 1000 + port)));
            places.collect::<Vec<_>>()
        };
        let mut places = of_one(1);
        assert_eq!(places.len(), CONNECTIONS_PER_PEER);
        places.extend((2..100).flat_map(of_one));
        assert_eq!(places.len(), CONNECTIONS);
        assert!(doorkeeper.admit(peer(200, 1)).is_none());
        let first = places.remove(0);
        drop(first);
        let again = doorkeeper.admit(peer(200, 1));
        assert!(again.is_some());
        drop((places, again));
        assert!(doorkeeper.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_says_nothing_is_noticed_and_whoever_speaks_stays() {
        let doorkeeper = doorkeeper();
        let silent = doorkeeper.admit(peer(1, 1)).unwrap();
        let speaks = doorkeeper.admit(peer(1, 2)).unwrap();
        doorkeeper.heard(peer(1, 2));
        assert!(speaks.is_heard().await);
        assert!(!silent.is_heard().await);
    }
}
