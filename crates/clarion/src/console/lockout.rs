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
    /// Whoever looks at all counters and raises them is alone with them.
    entering: Mutex<()>,
}

/// A try that is counted as a failure. What was not verified is none: it is taken back when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct CountedTry<'a> {
    lockout: &'a Lockout,
    name: String,
    at_network: String,
    network: String,
    is_verified: bool,
}

impl CountedTry<'_> {
    /// It was a wrong password.
    pub fn failed(mut self) {
        self.is_verified = true;
    }

    /// It was the right password. The name is free again; its address has one failure less.
    pub fn succeeded(mut self) {
        self.is_verified = true;
        self.lockout.names.forget(&self.name);
        self.lockout.names_at_networks.forget(&self.at_network);
        self.lockout.addresses.take_back(&self.network);
    }
}

impl Drop for CountedTry<'_> {
    fn drop(&mut self) {
        if self.is_verified {
            return;
        }
        self.lockout.names.take_back(&self.name);
        self.lockout.names_at_networks.take_back(&self.at_network);
        self.lockout.addresses.take_back(&self.network);
    }
}

impl Lockout {
    pub fn new(config: &ConsoleConfig) -> Self {
        let time = config.lock_time;
        Self {
            names: Failures::new(config.failures_of_name * NETWORKS_OF_NAME, time),
            names_at_networks: Failures::new(config.failures_of_name, time),
            addresses: Failures::new(config.failures_of_address, time),
            entering: Mutex::new(()),
        }
    }

    /// Counts a try as a failure before it is made, so that no number of tries at once is more than was allowed. Returns how long to wait if it must not be
    /// made; such a one is counted nowhere.
    pub fn enter(
        &self,
        name: &str,
        address: IpAddr,
        now: Instant,
    ) -> Result<CountedTry<'_>, Duration> {
        let network = network_of(address).to_string();
        let at_network = at_network(name, &network);
        let counters = [
            (&self.addresses, &*network),
            (&self.names_at_networks, &*at_network),
            (&self.names, name),
        ];
        let alone = self.entering.lock();
        let _alone = alone.unwrap_or_else(PoisonError::into_inner);
        for (failures, key) in counters {
            failures.look(key, now)?;
        }
        for (failures, key) in counters {
            failures.raise(key, now);
        }
        Ok(CountedTry {
            lockout: self,
            name: name.to_owned(),
            at_network,
            network,
            is_verified: false,
        })
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

    /// How long to wait, if there were too many failures.
    fn look(&self, key: &str, now: Instant) -> Result<(), Duration> {
        let Some(counted) = self.counted.get(key) else {
            return Ok(());
        };
        let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(counted.last);
        if passed >= self.lock_time {
            counted.failures = 0;
        }
        if counted.failures >= self.limit {
            return Err(self.lock_time.saturating_sub(passed));
        }
        Ok(())
    }

    fn raise(&self, key: &str, now: Instant) {
        let counted = self.of(key, now);
        let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.failures += 1;
        counted.last = now;
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
            entering: Mutex::new(()),
        }
    }

    /// Tries a wrong password.
    fn fails(lockout: &Lockout, name: &str, from: IpAddr, now: Instant) -> Result<(), Duration> {
        lockout.enter(name, from, now).map(CountedTry::failed)
    }

    #[test]
    fn what_was_not_verified_is_no_failure_but_counts_while_it_is_under_way() {
        let (lockout, now) = (lockout(), Instant::now());
        let home = IpAddr::from([192, 0, 2, 1]);
        for _ in 0..50 {
            drop(lockout.enter("li", home, now).unwrap());
        }
        let under_way: Vec<_> = (0..3).map(|_| lockout.enter("li", home, now)).collect();
        assert!(lockout.enter("li", home, now).is_err(), "three at once");
        drop(under_way);
        for _ in 0..3 {
            assert_eq!(fails(&lockout, "li", home, now), Ok(()));
        }
        assert!(lockout.enter("li", home, now).is_err());
    }

    #[test]
    fn a_locked_name_costs_its_address_nothing() {
        let (lockout, now) = (lockout(), Instant::now());
        let home = IpAddr::from([192, 0, 2, 1]);
        let tried = (0..50).filter(|_| fails(&lockout, "li", home, now).is_ok());
        assert_eq!(tried.count(), 3);
        for _ in 0..2 {
            assert_eq!(fails(&lockout, "wang", home, now), Ok(()));
        }
        assert!(lockout.enter("zhao", home, now).is_err(), "five in all");
        let elsewhere = IpAddr::from([192, 0, 2, 2]);
        assert_eq!(fails(&lockout, "zhao", elsewhere, now), Ok(()));
    }

    #[test]
    fn a_name_is_locked_where_it_failed_and_free_after_a_while() {
        let (lockout, now) = (lockout(), Instant::now());
        let from = |last: u8| IpAddr::from([192, 0, 2, last]);
        for _ in 0..3 {
            assert_eq!(fails(&lockout, "li", from(1), now), Ok(()));
        }
        let later = now + Duration::from_secs(10);
        let wait = Duration::from_secs(890);
        assert_eq!(fails(&lockout, "li", from(1), later), Err(wait));
        assert_eq!(fails(&lockout, "wang", from(1), later), Ok(()));
        assert_eq!(fails(&lockout, "li", from(1), later + LOCKED), Ok(()));
    }

    #[test]
    fn a_stranger_does_not_keep_an_operator_out_who_is_elsewhere_and_many_strangers_are_bounded() {
        let (lockout, now) = (lockout(), Instant::now());
        let stranger = |host: u32| format!("2001:db8::{host:x}").parse().unwrap();
        let tried = (0..1000).filter(|host| fails(&lockout, "li", stranger(*host), now).is_ok());
        assert_eq!(tried.count(), 3, "one network");
        let home = IpAddr::from([192, 0, 2, 1]);
        lockout.enter("li", home, now).unwrap().succeeded();
        let many = (0..1000_u32).map(|host| IpAddr::from((10 << 24 | host).to_be_bytes()));
        let tried = many.filter(|from| fails(&lockout, "li", *from, now).is_ok());
        assert_eq!(tried.count(), 9, "of all networks");
    }

    #[test]
    fn an_address_is_locked_whatever_names_it_tries() {
        let (lockout, now) = (lockout(), Instant::now());
        let home: IpAddr = "2001:db8::1".parse().unwrap();
        let next_door: IpAddr = "2001:db8::2".parse().unwrap();
        for name in ["a", "b", "c", "d", "e"] {
            assert_eq!(fails(&lockout, name, home, now), Ok(()));
        }
        assert!(lockout.enter("f", next_door, now).is_err());
        assert_eq!(fails(&lockout, "f", IpAddr::from([1; 4]), now), Ok(()));
    }

    #[test]
    fn whoever_signs_in_is_not_locked_out_by_it() {
        let (lockout, now) = (lockout(), Instant::now());
        let home = IpAddr::from([192, 0, 2, 1]);
        for _ in 0..50 {
            lockout.enter("li", home, now).unwrap().succeeded();
        }
        // But it does not wash away what was tried with other names.
        for name in ["a", "b", "c", "d", "e"] {
            assert_eq!(fails(&lockout, name, home, now), Ok(()));
        }
        assert!(lockout.enter("li", home, now).is_err());
    }
}
