//! The addresses that we talk to. Only these peers are helped to end a call that we do not remember.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Trunks have few addresses; a name that resolves to ever new ones must not fill the memory.
const LIMIT: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct KnownPeers(Mutex<HashSet<IpAddr>>);

impl KnownPeers {
    pub fn add(&self, peer: IpAddr) {
        let mut peers = self.lock();
        if peers.len() > LIMIT {
            peers.clear();
        }
        peers.insert(peer);
    }

    pub fn contains(&self, peer: IpAddr) -> bool {
        self.lock().contains(&peer)
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<IpAddr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
