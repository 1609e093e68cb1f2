//! Requests that are not authenticated. A wrong signature is a line of the log, with the address that it came from: fail2ban reads them
//! (`packaging/fail2ban`). A flood neither fills the log nor takes the processor from others.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use moka::sync::Cache;

use super::request::REFUSAL_PAUSE;
use crate::client_network::network_of;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::domain::token_bucket::TokenBucket;

/// Lines a second of one address, and of all of them.
const LINES_OF_ADDRESS: u32 = 5;
const LINES_OF_ALL: u32 = 50;
/// So many requests of an address are answered at once in a second.
const ANSWERS_OF_ADDRESS: u32 = 50;
/// Addresses that are remembered.
const ADDRESSES: u64 = 10_000;

#[derive(Debug)]
pub struct FailedLogins {
    lines: Mutex<TokenBucket>,
    of_address: Cache<IpAddr, Arc<Mutex<AddressFailures>>>,
}

/// What one address, or network of IPv6, may still have in this second.
#[derive(Debug)]
struct AddressFailures {
    lines: TokenBucket,
    answers: TokenBucket,
}

impl Default for FailedLogins {
    fn default() -> Self {
        Self {
            lines: Mutex::new(TokenBucket::new(LINES_OF_ALL, Instant::now())),
            of_address: Cache::new(ADDRESSES),
        }
    }
}

impl FailedLogins {
    /// Notes a refused request, and returns how long its answer is held back.
    pub fn record(&self, refusal: &Refusal, from: IpAddr) -> Duration {
        let now = Instant::now();
        let what = match refusal.code {
            StatusCode::SigWrong => Some("wrong sig"),
            StatusCode::IntakeInvalid | StatusCode::BillTokenInvalid => Some("wrong token"),
            _ => None,
        };
        if let Some(what) = what {
            metrics::counter!("clarion_failed_logins_total").increment(1);
            if self.may_write(from, now) {
                tracing::warn!(target: "clarion::login", address = %from, "{what}");
            }
        }
        self.pause(from, now)
    }

    fn may_write(&self, from: IpAddr, now: Instant) -> bool {
        let address = self.address(from, now);
        let may_write = lock(&address).lines.take(LINES_OF_ADDRESS, now);
        may_write && lock(&self.lines).take(LINES_OF_ALL, now)
    }

    fn pause(&self, from: IpAddr, now: Instant) -> Duration {
        let address = self.address(from, now);
        let is_one_of_few = lock(&address).answers.take(ANSWERS_OF_ADDRESS, now);
        if is_one_of_few {
            Duration::ZERO
        } else {
            REFUSAL_PAUSE
        }
    }

    fn address(&self, from: IpAddr, now: Instant) -> Arc<Mutex<AddressFailures>> {
        self.of_address.get_with(network_of(from), || {
            Arc::new(Mutex::new(AddressFailures {
                lines: TokenBucket::new(LINES_OF_ADDRESS, now),
                answers: TokenBucket::new(ANSWERS_OF_ADDRESS, now),
            }))
        })
    }
}

fn lock<T>(counted: &Mutex<T>) -> MutexGuard<'_, T> {
    counted.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_writes_few_lines_and_hides_no_other_address() {
        let (failures, now) = (FailedLogins::default(), Instant::now());
        let flood = "203.0.113.1".parse().unwrap();
        let lines = (0..10_000).filter(|_| failures.may_write(flood, now));
        assert_eq!(lines.count(), LINES_OF_ADDRESS as usize);
        assert!(failures.may_write("203.0.113.2".parse().unwrap(), now));
        let many = (0..10_000_u32)
            .filter(|place| failures.may_write(std::net::Ipv4Addr::from_bits(*place).into(), now));
        assert!(many.count() <= LINES_OF_ALL as usize);
    }

    #[test]
    fn beyond_fifty_a_second_an_address_waits_and_no_other_does() {
        let (failures, now) = (FailedLogins::default(), Instant::now());
        let flood = "203.0.113.1".parse().unwrap();
        let at_once = (0..10_000).filter(|_| failures.pause(flood, now).is_zero());
        assert_eq!(at_once.count(), ANSWERS_OF_ADDRESS as usize);
        assert_eq!(failures.pause(flood, now), REFUSAL_PAUSE);
        let other = "203.0.113.2".parse().unwrap();
        assert_eq!(failures.pause(other, now), Duration::ZERO);
        assert_eq!(failures.pause(flood, now + REFUSAL_PAUSE), Duration::ZERO);
        // Whoever has one address of IPv6 has all of its network.
        let own = |host: u32| format!("2001:db8::{host:x}").parse().unwrap();
        let at_once = (0..10_000).filter(|host| failures.pause(own(*host), now).is_zero());
        assert_eq!(at_once.count(), ANSWERS_OF_ADDRESS as usize);
        let next_door = "2001:db8:0:1::1".parse().unwrap();
        assert_eq!(failures.pause(next_door, now), Duration::ZERO);
    }
}
