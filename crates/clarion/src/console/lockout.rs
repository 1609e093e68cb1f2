//! Who has given too many wrong passwords waits: a name, and an address. What is remembered is bounded, and is forgotten when the server starts anew.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use moka::sync::Cache;

use crate::config::ConsoleConfig;

/// Names, and addresses, that are remembered.
const REMEMBERED: u64 = 10_000;

#[derive(Debug)]
pub struct Lockout {
    names: Failures,
    addresses: Failures,
}

impl Lockout {
    pub fn new(config: &ConsoleConfig) -> Self {
        let time = config.lock_time;
        Self {
            names: Failures::new(config.failures_of_name, time),
            addresses: Failures::new(config.failures_of_address, time),
        }
    }

    /// Counts a try as a failure before it is made, so that no number of tries at once is more than was allowed. Returns how long to wait if it must not be made.
    pub fn enter(&self, name: &str, address: IpAddr, now: Instant) -> Result<(), Duration> {
        self.addresses.enter(&network(address), now)?;
        self.names.enter(name, now)
    }

    /// It was the right password. The name is free again; its address has one failure less.
    pub fn succeeded(&self, name: &str, address: IpAddr) {
        self.names.forget(name);
        self.addresses.take_back(&network(address));
    }
}

/// One network of IPv6 is one customer of a provider.
fn network(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !0 << 64).to_string(),
    }
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
            names: Failures::new(3, LOCKED),
            addresses: Failures::new(5, LOCKED),
        }
    }

    #[test]
    fn a_name_is_locked_after_its_failures_and_free_after_a_while() {
        let (lockout, now) = (lockout(), Instant::now());
        let from = |last: u8| IpAddr::from([192, 0, 2, last]);
        for place in 0..3 {
            assert_eq!(lockout.enter("li", from(place), now), Ok(()));
        }
        let later = now + Duration::from_secs(10);
        let wait = Duration::from_secs(890);
        assert_eq!(lockout.enter("li", from(9), later), Err(wait));
        assert_eq!(lockout.enter("wang", from(9), later), Ok(()));
        assert_eq!(lockout.enter("li", from(9), now + LOCKED), Ok(()));
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
