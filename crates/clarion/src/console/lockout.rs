//! Who has given too many wrong passwords waits: a name at one network, and an address. A name alone waits after many more, so that a stranger does not keep an operator
//! out who signs in from elsewhere. What is remembered is bounded, and is forgotten when the server starts anew.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use moka::sync::Cache;

use crate::client_network::network_of;
use crate::config::ConsoleConfig;

/// Names, and addresses, that are remembered.
const REMEMBERED: u64 = 10_000;
/// A name has so many times the failures of one network, from all of them.
const NETWORKS_OF_NAME: u32 = 10;

#[derive(Debug)]
pub struct Lockout {
    names: Failures,
    names_at_networks: Failures,
    addresses: Failures,
}

impl Lockout {
    pub fn new(config: &ConsoleConfig) -> Self {
        let time = config.lock_time;
        Self {
            names: Failures::new(config.failures_of_name * NETWORKS_OF_NAME, time),
            names_at_networks: Failures::new(config.failures_of_name, time),
            addresses: Failures::new(config.failures_of_address, time),
        }
    }

    /// Counts a try as a failure before it is made, so that no number of tries at once is more than was allowed. Returns how long to wait if it must not be made.
    pub fn enter(&self, name: &str, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let network = network_of(address).to_string();
        self.addresses.enter(&network, now)?;
        self.names_at_networks
            .enter(&at_network(name, &network), now)?;
        self.names.enter(name, now)
    }

    /// It was the right password. The name is free again; its address has one failure less.
    pub fn succeeded(&self, name: &str, address: IpAddr) {
        let network = network_of(address).to_string();
        self.names.forget(name);
        self.names_at_networks.forget(&at_network(name, &network));
        self.addresses.take_back(&network);
    }
}

/// No name has a blank in it.
fn at_network(name: &str, network: &str) -> String {
    format!("{name} {network}")
}

#[derive(Debug)]
struct Failures {
    limit: u32,
    lock_time: Duration,
    counted: Cache<String, Arc<Mutex<Counted>>>,
}

#[derive(Debug)]
struct Counted {
    failures: u32,
    /// Of the last failure that was counted.
    last: Instant,
}

impl Failures {
    fn new(limit: u32, lock_time: Duration) -> Self {
        Self {
            limit,
            lock_time,
            counted: Cache::new(REMEMBERED),
        }
    }

    fn enter(&self, key: &str, now: Instant) -> Result<(), Duration> {
        let counted = self.of(key, now);
        let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(counted.last);
        if passed >= self.lock_time {
            counted.failures = 0;
        }
        if counted.failures >= self.limit {
            return Err(self.lock_time.saturating_sub(passed));
        }
        counted.failures += 1;
        counted.last = now;
        Ok(())
    }

    fn forget(&self, key: &str) {
        self.counted.invalidate(key);
    }

    fn take_back(&self, key: &str) {
        if let Some(counted) = self.counted.get(key) {
            let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
            counted.failures = counted.failures.saturating_sub(1);
        }
    }

    fn of(&self, key: &str, now: Instant) -> Arc<Mutex<Counted>> {
        self.counted.get_with(key.to_owned(), || {
            Arc::new(Mutex::new(Counted {
                failures: 0,
                last: now,
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKED: Duration = Duration::from_secs(900);

    fn lockout() -> Lockout {
        Lockout {
            names: Failures::new(9, LOCKED),
            names_at_networks: Failures::new(3, LOCKED),
            addresses: Failures::new(5, LOCKED),
        }
    }

    #[test]
    fn a_name_is_locked_where_it_failed_and_free_after_a_while() {
        let (lockout, now) = (lockout(), Instant::now());
        let from = |last: u8| IpAddr::from([192, 0, 2, last]);
        for _ in 0..3 {
            assert_eq!(lockout.enter("li", from(1), now), Ok(()));
        }
        let later = now + Duration::from_secs(10);
        let wait = Duration::from_secs(890);
        assert_eq!(lockout.enter("li", from(1), later), Err(wait));
        assert_eq!(lockout.enter("wang", from(1), later), Ok(()));
        assert_eq!(lockout.enter("li", from(1), later + LOCKED), Ok(()));
    }

    #[test]
    fn a_stranger_does_not_keep_an_operator_out_who_is_elsewhere_and_many_strangers_are_bounded() {
        let (lockout, now) = (lockout(), Instant::now());
        let stranger = |host: u32| format!("2001:db8::{host:x}").parse().unwrap();
        let tried = (0..1000).filter(|host| lockout.enter("li", stranger(*host), now).is_ok());
        assert_eq!(tried.count(), 3, "one network");
        let home = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(lockout.enter("li", home, now), Ok(()));
        lockout.succeeded("li", home);
        let many = (0..1000_u32).map(|host| IpAddr::from((10 << 24 | host).to_be_bytes()));
        let tried = many.filter(|from| lockout.enter("li", *from, now).is_ok());
        assert_eq!(tried.count(), 9, "of all networks");
    }

    #[test]
    fn an_address_is_locked_whatever_names_it_tries() {
        let (lockout, now) = (lockout(), Instant::now());
        let home: IpAddr = "2001:db8::1".parse().unwrap();
        let next_door: IpAddr = "2001:db8::2".parse().unwrap();
        for name in ["a", "b", "c", "d", "e"] {
            assert_eq!(lockout.enter(name, home, now), Ok(()));
        }
        assert!(lockout.enter("f", next_door, now).is_err());
        assert_eq!(lockout.enter("f", IpAddr::from([1; 4]), now), Ok(()));
    }

    #[test]
    fn whoever_signs_in_is_not_locked_out_by_it() {
        let (lockout, now) = (lockout(), Instant::now());
        let home = IpAddr::from([192, 0, 2, 1]);
        for _ in 0..50 {
            assert_eq!(lockout.enter("li", home, now), Ok(()));
            lockout.succeeded("li", home);
        }
        // But it does not wash away what was tried with other names.
        for name in ["a", "b", "c", "d", "e"] {
            assert_eq!(lockout.enter(name, home, now), Ok(()));
        }
        assert!(lockout.enter("li", home, now).is_err());
    }
}
