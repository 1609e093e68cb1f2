//! Limits requests per second and requests at once, per account. Only authenticated accounts get this far, so the table is bounded by the
//! number of accounts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use crate::config::LimitsConfig;
use crate::domain::account::{Account, AccountSid};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::domain::token_bucket::TokenBucket;

#[derive(Debug)]
pub struct Limiter {
    defaults: LimitsConfig,
    accounts: Arc<Mutex<HashMap<AccountSid, Usage>>>,
}

/// The current usage of one account.
#[derive(Debug)]
struct Usage {
    requests: TokenBucket,
    at_once: u32,
}

/// A request's place, which is given back on drop.
#[derive(Debug)]
pub struct Slot {
    sid: AccountSid,
    accounts: Arc<Mutex<HashMap<AccountSid, Usage>>>,
}

impl Limiter {
    pub fn new(defaults: LimitsConfig) -> Self {
        Self {
            defaults,
            accounts: Arc::default(),
        }
    }

    pub fn enter(&self, account: &Account, now: Instant) -> Result<Slot, Refusal> {
        let per_second = account
            .limits
            .requests_per_second
            .unwrap_or(self.defaults.requests_per_second);
        let at_once = account
            .limits
            .requests_at_once
            .unwrap_or(self.defaults.requests_at_once);
        let mut accounts = lock(&self.accounts);
        let usage = accounts
            .entry(account.sid.clone())
            .or_insert_with(|| Usage {
                requests: TokenBucket::new(per_second, now),
                at_once: 0,
            });
        if usage.at_once >= at_once {
            let rule = format!("at most {at_once} requests of an account are answered at once");
            return Err(Refusal::new(StatusCode::TooManyRequests, rule));
        }
        if !usage.requests.take(per_second, now) {
            let rule =
                format!("at most {per_second} requests of an account are answered in a second");
            return Err(Refusal::new(StatusCode::TooManyRequests, rule));
        }
        usage.at_once += 1;
        Ok(Slot {
            sid: account.sid.clone(),
            accounts: Arc::clone(&self.accounts),
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(usage) = lock(&self.accounts).get_mut(&self.sid) {
            usage.at_once -= 1;
        }
    }
}

fn lock(
    accounts: &Mutex<HashMap<AccountSid, Usage>>,
) -> MutexGuard<'_, HashMap<AccountSid, Usage>> {
    accounts.lock().expect("nothing panics while it counts")
}
