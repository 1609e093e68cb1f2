//! Wrong signatures, one line of the log each, with the address that they came from: fail2ban reads them (`packaging/fail2ban`). A flood of them
//! does not fill the log.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use moka::sync::Cache;

use crate::domain::status_code::{Refusal, StatusCode};
use crate::domain::token_bucket::TokenBucket;

/// Lines a second of one address, and of all of them.
const OF_ADDRESS: u32 = 5;
const OF_ALL: u32 = 50;
/// Addresses that are remembered.
const ADDRESSES: u64 = 10_000;

#[derive(Debug)]
pub struct FailedLogins {
    all: Mutex<TokenBucket>,
    of_address: Cache<IpAddr, Arc<Mutex<TokenBucket>>>,
}

impl Default for FailedLogins {
    fn default() -> Self {
        Self {
            all: Mutex::new(TokenBucket::new(OF_ALL, Instant::now())),
            of_address: Cache::new(ADDRESSES),
        }
    }
}

impl FailedLogins {
    pub fn note(&self, refusal: &Refusal, from: IpAddr) {
        if refusal.code != StatusCode::SigWrong {
            return;
        }
        metrics::counter!("clarion_failed_logins_total").increment(1);
        if self.may_write(from, Instant::now()) {
            tracing::warn!(target: "clarion::login", address = %from, "wrong sig");
        }
    }

    fn may_write(&self, from: IpAddr, now: Instant) -> bool {
        let bucket = self.of_address.get_with(from, || {
            let bucket = TokenBucket::new(OF_ADDRESS, now);
            Arc::new(Mutex::new(bucket))
        });
        take(&bucket, OF_ADDRESS, now) && take(&self.all, OF_ALL, now)
    }
}

fn take(bucket: &Mutex<TokenBucket>, rate: u32, now: Instant) -> bool {
    let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
    bucket.take(rate, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_writes_few_lines_and_hides_no_other_address() {
        let (failures, now) = (FailedLogins::default(), Instant::now());
        let flood = "203.0.113.1".parse().unwrap();
        let lines = (0..10_000).filter(|_| failures.may_write(flood, now));
        assert_eq!(lines.count(), OF_ADDRESS as usize);
        assert!(failures.may_write("203.0.113.2".parse().unwrap(), now));
        let many = (0..10_000_u32)
            .filter(|place| failures.may_write(std::net::Ipv4Addr::from_bits(*place).into(), now));
        assert!(many.count() <= OF_ALL as usize);
    }
}
