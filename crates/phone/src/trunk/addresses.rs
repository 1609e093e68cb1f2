//! The addresses of a trunk's hosts, and which of them are there.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::Trunk;
use super::health::MISSES_ALLOWED;
use crate::signalling::Host;

/// How long addresses are used before the name servers are asked again. They are also asked when nobody answers at these addresses.
const ADDRESSES_LAST: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// With the place of the host that it belongs to.
    known: Vec<(SocketAddr, usize)>,
    asked: Option<Instant>,
    states: HashMap<SocketAddr, AddressState>,
}

/// What OPTIONS has shown of an address.
#[derive(Debug, Clone, Copy, Default)]
struct AddressState {
    has_answered: bool,
    /// In a row.
    misses: u32,
}

impl AddressState {
    fn is_down(self) -> bool {
        self.misses >= MISSES_ALLOWED
    }
}

impl Addresses {
    fn all(&self) -> Vec<SocketAddr> {
        self.known.iter().map(|(address, _)| *address).collect()
    }

    fn of_host(&self, place: usize) -> impl Iterator<Item = SocketAddr> {
        let of_it = self.known.iter().filter(move |(_, host)| *host == place);
        of_it.map(|(address, _)| *address)
    }

    fn is_down(&self, address: SocketAddr) -> bool {
        let state = self.states.get(&address);
        state.is_some_and(|state| state.is_down())
    }
}

impl Trunk {
    /// From now on the trunk is heard, also about calls of an earlier process.
    pub(super) fn introduce(self: &Arc<Self>) {
        for network in &self.config.peer_networks {
            self.signalling.add_peer_network(*network);
        }
        for address in self.hosts().filter_map(Host::address) {
            self.signalling.add_peer(address);
        }
        if self.hosts().any(|host| host.address().is_none()) {
            let trunk = Arc::clone(self);
            // What goes wrong is told when the trunk is needed.
            tokio::spawn(async move { trunk.addresses().await });
        }
    }

    /// All addresses of the trunk, host after host, in the order in which they are to be tried.
    pub async fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        {
            let addresses = self.lock();
            let fresh = addresses
                .asked
                .is_some_and(|asked| asked.elapsed() < ADDRESSES_LAST);
            if fresh {
                return Ok(addresses.all());
            }
        }
        let (mut found, mut missing) = (Vec::new(), None);
        for (place, host) in self.hosts().enumerate() {
            match self.look_up(place, host).await {
                Ok(addresses) => {
                    found.extend(addresses.into_iter().map(|address| (address, place)));
                }
                Err(error) => missing = Some(error),
            }
        }
        if found.is_empty() {
            return Err(missing.unwrap_or_else(|| "it has no address".to_owned()));
        }
        if let Some(error) = missing {
            let trunk = &self.config.name;
            tracing::warn!(
                trunk,
                error,
                "a host of the trunk cannot be looked up; calls take the others"
            );
        }
        let mut known: Vec<(SocketAddr, usize)> = Vec::with_capacity(found.len());
        for (address, place) in found {
            if !known.iter().any(|(other, _)| *other == address) {
                self.signalling.add_peer(address.ip());
                if let Some(host) = self.hosts().nth(place) {
                    self.signalling.expect_host(address, host);
                }
                known.push((address, place));
            }
        }
        let mut addresses = self.lock();
        addresses
            .states
            .retain(|address, _| known.iter().any(|(other, _)| other == address));
        addresses.known = known;
        addresses.asked = Some(Instant::now());
        Ok(addresses.all())
    }

    /// Name servers fail too; the addresses of a minute ago are the best that is known.
    async fn look_up(&self, place: usize, host: &Host) -> Result<Vec<SocketAddr>, String> {
        let transport = self.signalling.transport();
        let error = match self.resolver.addresses(host, transport).await {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        let known: Vec<_> = self.lock().of_host(place).collect();
        if known.is_empty() {
            return Err(error);
        }
        tracing::warn!(trunk = self.config.name, %host, error, "a name of the trunk cannot be looked up; its old addresses are used");
        Ok(known)
    }

    /// The addresses that are worth a call: those that are down are left out, unless all are.
    pub async fn usable_addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let all = self.addresses().await?;
        let addresses = self.lock();
        let there = all.iter().copied();
        let there: Vec<_> = there
            .filter(|address| !addresses.is_down(*address))
            .collect();
        Ok(if there.is_empty() { all } else { there })
    }

    /// The addresses that were found last; nobody is asked.
    pub fn known_addresses(&self) -> Vec<SocketAddr> {
        self.lock().all()
    }

    /// The hosts that packets are sent to.
    fn hosts(&self) -> impl Iterator<Item = &Host> {
        let first = self.config.proxy.as_ref().unwrap_or(&self.config.host);
        std::iter::once(first).chain(&self.config.more_hosts)
    }

    /// The host that is called at an address.
    pub(super) fn host_at(&self, address: SocketAddr) -> &Host {
        let addresses = self.lock();
        let mut known = addresses.known.iter();
        let place = known.find(|(other, _)| *other == address);
        let further = place.and_then(|(_, place)| place.checked_sub(1));
        let further = further.and_then(|place| self.config.more_hosts.get(place));
        further.unwrap_or(&self.config.host)
    }

    /// Whether an address has answered OPTIONS.
    pub(super) fn note_answer(&self, address: SocketAddr, answered: &Result<(), String>) {
        let mut addresses = self.lock();
        let is_one_of_many = addresses.known.len() > 1;
        let state = addresses.states.entry(address).or_default();
        let was_down = state.is_down();
        state.has_answered |= answered.is_ok();
        // Some of those that we register with never answer OPTIONS: their silence counts only after they have answered once.
        let counts = state.has_answered || self.config.register.is_none();
        state.misses = match answered {
            Ok(()) => 0,
            Err(_) => state.misses.saturating_add(u32::from(counts)),
        };
        let trunk = &self.config.name;
        match (was_down, state.is_down(), answered) {
            (false, true, Err(why)) if is_one_of_many => {
                tracing::warn!(
                    trunk,
                    why,
                    "an address of the trunk is down; calls take the others"
                );
            }
            (true, false, _) if is_one_of_many => {
                tracing::info!(trunk, %address, "an address of the trunk is up again");
            }
            _ => {}
        }
    }

    /// It has answered OPTIONS before, and does not any more.
    pub(super) fn has_fallen_silent(&self, address: SocketAddr) -> bool {
        let addresses = self.lock();
        let state = addresses.states.get(&address);
        state.is_some_and(|state| state.has_answered && state.is_down())
    }

    /// Nobody answered at the known addresses: the name servers are asked again before the next call.
    pub fn expire_addresses(&self) {
        self.lock().asked = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Addresses> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
