//! Places for connections: so many in all, and so many for one address. A connection that has not shown who it is, although it has had the time,
//! gives way to a new one, the oldest first. So nobody keeps others out by holding connections open. A few places more are for those who watch over the
//! server: they hear that it is busy.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::KnownClient;
use crate::client_network::network_of;
use crate::config::HttpConfig;

/// The time for a handshake and a request. A younger connection does not give way.
const TO_INTRODUCE_ITSELF: Duration = Duration::from_secs(3);
/// Places beyond the limits, for those who watch over the server.
const FOR_WATCHERS: usize = 4;

#[derive(Debug)]
pub struct ClientPlaces {
    limit: usize,
    limit_of_address: usize,
    /// The connections of a trusted proxy are those of many clients.
    trusted: Vec<IpNet>,
    /// From here, the server is watched.
    watchers: Vec<IpNet>,
    table: Mutex<Table>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: BTreeMap<u64, Connection>,
    /// Those that may have to give way, by their age.
    strangers: BTreeSet<u64>,
    of_address: HashMap<IpAddr, BTreeSet<u64>>,
}

#[derive(Debug)]
struct Connection {
    address: IpAddr,
    began: Instant,
    known: KnownClient,
    gives_way: CancellationToken,
}

/// Why there is no place.
#[derive(Debug, PartialEq, Eq)]
enum NoPlace {
    /// All are taken. When one must give way at the latest, unless it shows who it is.
    Full(Option<Instant>),
    /// This address has its part.
    OfAddress,
}

/// A connection's place, given back on drop.
#[derive(Debug)]
pub struct ClientPlace {
    places: Arc<ClientPlaces>,
    id: u64,
    address: IpAddr,
    pub known: KnownClient,
    gives_way: CancellationToken,
}

impl ClientPlaces {
    pub fn new(config: &HttpConfig) -> Arc<Self> {
        Arc::new(Self {
            limit: config.max_connections,
            limit_of_address: config.max_connections_of_address,
            trusted: config.trusted_proxies.clone(),
            watchers: config.metrics_networks.clone(),
            table: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// A place for a new connection, as soon as there is one. `None`: its address has as many as it may have, and all of them are in use.
    pub async fn take(self: &Arc<Self>, address: IpAddr) -> Option<ClientPlace> {
        loop {
            let mut freed = pin!(self.freed.notified());
            freed.as_mut().enable();
            match self.try_take(address, Instant::now()) {
                Ok(place) => return Some(place),
                Err(NoPlace::OfAddress) => return None,
                Err(NoPlace::Full(None)) => freed.await,
                Err(NoPlace::Full(Some(until))) => {
                    let _ = tokio::time::timeout_at(until, freed).await;
                }
            }
        }
    }

    /// A place for somebody who watches over the server, if there is one: he does not wait behind others.
    pub fn take_to_watch(self: &Arc<Self>, address: IpAddr) -> Option<ClientPlace> {
        let is_watcher = self.is_watcher(address.to_canonical());
        let place = is_watcher.then(|| self.try_take(address, Instant::now()));
        place.and_then(Result::ok)
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        is_of(&self.trusted, address)
    }

    /// A proxy brings everybody, so what comes through it is no watcher's.
    fn is_watcher(&self, address: IpAddr) -> bool {
        is_of(&self.watchers, address) && !self.is_proxy(address)
    }

    fn try_take(self: &Arc<Self>, address: IpAddr, now: Instant) -> Result<ClientPlace, NoPlace> {
        let address = address.to_canonical();
        let is_proxy = self.is_proxy(address);
        let more = if self.is_watcher(address) {
            FOR_WATCHERS
        } else {
            0
        };
        let address = network_of(address);
        let mut table = self.table();
        let of_address = table.of_address.get(&address).map_or(0, BTreeSet::len);
        if !is_proxy
            && of_address >= self.limit_of_address + more
            && table.shed(Some(address), now).is_err()
        {
            return Err(NoPlace::OfAddress);
        }
        if table.open.len() >= self.limit + more {
            table.shed(None, now).map_err(NoPlace::Full)?;
        }
        let (known, gives_way) = (KnownClient::default(), CancellationToken::new());
        let connection = Connection {
            address,
            began: now,
            known: known.clone(),
            gives_way: gives_way.clone(),
        };
        let id = table.add(connection, !is_proxy);
        Ok(ClientPlace {
            places: Arc::clone(self),
            id,
            address,
            known,
            gives_way,
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_of(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

impl Table {
    fn add(&mut self, connection: Connection, may_give_way: bool) -> u64 {
        let (id, address) = (self.next, connection.address);
        self.next += 1;
        self.open.insert(id, connection);
        if may_give_way {
            self.strangers.insert(id);
        }
        self.of_address.entry(address).or_default().insert(id);
        id
    }

    /// Closes the oldest connection that has had its time and has not shown who it is, of one address or of all. Where there is none, the error is
    /// when there may be one.
    fn shed(&mut self, of: Option<IpAddr>, now: Instant) -> Result<(), Option<Instant>> {
        while let Some(id) = self.oldest_stranger(of) {
            let Some(connection) = self.open.get(&id) else {
                self.strangers.remove(&id);
                continue;
            };
            if connection.known.is_noted() {
                self.strangers.remove(&id);
                continue;
            }
            let end = connection.began + TO_INTRODUCE_ITSELF;
            if end > now {
                return Err(Some(end));
            }
            connection.gives_way.cancel();
            self.remove(id, connection.address);
            return Ok(());
        }
        Err(None)
    }

    fn oldest_stranger(&self, of: Option<IpAddr>) -> Option<u64> {
        let Some(address) = of else {
            return self.strangers.first().copied();
        };
        let mut own = self.of_address.get(&address)?.iter();
        own.find(|id| self.strangers.contains(id)).copied()
    }

    fn remove(&mut self, id: u64, address: IpAddr) {
        self.open.remove(&id);
        self.strangers.remove(&id);
        if let Some(own) = self.of_address.get_mut(&address) {
            own.remove(&id);
            if own.is_empty() {
                self.of_address.remove(&address);
            }
        }
    }
}

impl ClientPlace {
    /// Returns when another connection needs the place more.
    pub async fn given_away(&self) {
        self.gives_way.cancelled().await;
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        self.places.table().remove(self.id, self.address);
        self.places.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Proxies are at 192.0.2.9, and 198.51.100.0/24 watches.
    fn places(limit: usize, limit_of_address: usize) -> Arc<ClientPlaces> {
        let mut config = Config::from_parts("", &[]).unwrap().http;
        config.max_connections = limit;
        config.max_connections_of_address = limit_of_address;
        config.trusted_proxies = vec!["192.0.2.9/32".parse().unwrap()];
        config.metrics_networks = vec!["198.51.100.0/24".parse().unwrap()];
        ClientPlaces::new(&config)
    }

    fn taken(places: &Arc<ClientPlaces>, from: &str, now: Instant) -> ClientPlace {
        places.try_take(address(from), now).unwrap()
    }

    #[test]
    fn the_oldest_stranger_gives_way_and_a_known_client_does_not() {
        let (places, now) = (places(3, 3), Instant::now());
        let known = taken(&places, "192.0.2.1", now);
        known.known.record();
        let older = taken(&places, "192.0.2.2", now);
        let newer = taken(&places, "192.0.2.3", now + Duration::from_secs(1));
        // It has its time first.
        let end = now + TO_INTRODUCE_ITSELF;
        let refused = places.try_take(address("192.0.2.4"), now).unwrap_err();
        assert_eq!(refused, NoPlace::Full(Some(end)));
        let third = taken(&places, "192.0.2.4", end);
        assert!(older.gives_way.is_cancelled());
        assert!(!newer.gives_way.is_cancelled() && !known.gives_way.is_cancelled());
        newer.known.record();
        third.known.record();
        let later = end + Duration::from_secs(100);
        let refused = places.try_take(address("192.0.2.5"), later).unwrap_err();
        assert_eq!(refused, NoPlace::Full(None));
        drop(known);
        taken(&places, "192.0.2.5", later);
    }

    #[test]
    fn an_address_has_its_part_and_pushes_out_only_its_own() {
        let places = places(10, 2);
        let (now, later) = (Instant::now(), Instant::now() + TO_INTRODUCE_ITSELF);
        let other = taken(&places, "192.0.2.2", now);
        let own = [0, 1].map(|_| taken(&places, "192.0.2.1", now));
        let refused = places.try_take(address("192.0.2.1"), now).unwrap_err();
        assert_eq!(refused, NoPlace::OfAddress);
        let third = taken(&places, "192.0.2.1", later);
        assert!(own[0].gives_way.is_cancelled() && !own[1].gives_way.is_cancelled());
        assert!(!other.gives_way.is_cancelled());
        own[1].known.record();
        third.known.record();
        let refused = places.try_take(address("192.0.2.1"), later).unwrap_err();
        assert_eq!(refused, NoPlace::OfAddress);
        // A proxy speaks for many, and a network of IPv6 is one client.
        let _proxied = [0; 5].map(|_| taken(&places, "192.0.2.9", now));
        let _first = taken(&places, "2001:db8::1", now);
        let _second = taken(&places, "2001:db8::2", now);
        let refused = places.try_take(address("2001:db8::3"), now).unwrap_err();
        assert_eq!(refused, NoPlace::OfAddress);
    }

    #[test]
    fn whoever_watches_has_places_that_no_other_takes() {
        let (places, now) = (places(2, 2), Instant::now());
        let known: Vec<_> = (1..=2)
            .map(|host| taken(&places, &format!("192.0.2.{host}"), now))
            .collect();
        for place in &known {
            place.known.record();
        }
        let watching = (0..FOR_WATCHERS).map(|_| places.take_to_watch(address("198.51.100.7")));
        let watching: Vec<_> = watching.flatten().collect();
        assert_eq!(watching.len(), FOR_WATCHERS);
        for nobody in ["198.51.100.7", "192.0.2.3", "192.0.2.9"] {
            assert!(places.take_to_watch(address(nobody)).is_none(), "{nobody}");
        }
        drop(watching);
        let refused = places.try_take(address("192.0.2.3"), now).unwrap_err();
        assert_eq!(refused, NoPlace::Full(None));
        assert!(
            places
                .take_to_watch(address("::ffff:198.51.100.7"))
                .is_some()
        );
    }

    #[test]
    fn what_is_given_back_leaves_nothing_behind() {
        let (places, began) = (places(4, 2), Instant::now());
        for round in 0..100 {
            let now = began + TO_INTRODUCE_ITSELF * round;
            let kept: Vec<_> = (0..3)
                .map(|host| taken(&places, &format!("192.0.2.{}", (round + host) % 5), now))
                .collect();
            drop(kept);
        }
        let table = places.table();
        assert!(table.open.is_empty() && table.strangers.is_empty());
        assert!(table.of_address.is_empty());
    }

    #[tokio::test]
    async fn whoever_waits_gets_the_next_place() {
        let places = places(1, 1);
        let first = taken(&places, "192.0.2.1", Instant::now());
        first.known.record();
        let waiting = Arc::clone(&places);
        let waiting = tokio::spawn(async move { waiting.take(address("192.0.2.2")).await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        assert!(waiting.await.unwrap().is_some());
    }
}
