//! What accounts and applications may have under way at once and start in a second, as far as this node is concerned.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::capacity::{Capacity, WaitingLane};
use super::lock;
use crate::domain::account::{AccountSid, AppId};
use crate::domain::claim::{DueLane, NodeShare};
use crate::store::{Store, StoreError};

/// Limits are read again after this time: an operator's change is honoured soon, and a busy queue does not ask for the same at every step.
const REMEMBERED: Duration = Duration::from_millis(500);
/// What nobody has used for this long is forgotten.
const IDLE: Duration = Duration::from_secs(60);

/// Calls at once, and calls started a second.
#[derive(Debug, Clone, Copy)]
pub struct CallLimits {
    pub at_once: u32,
    pub per_second: u32,
}

impl CallLimits {
    const NONE: Self = Self {
        at_once: u32::MAX,
        per_second: u32::MAX,
    };

    /// This node's part of what all nodes may use together.
    fn part(self, share: NodeShare, name: &str) -> Self {
        Self {
            at_once: share.part(self.at_once, name),
            per_second: share.part(self.per_second, name),
        }
    }
}

#[derive(Debug)]
struct Known {
    capacity: Capacity,
    read_at: Instant,
}

#[derive(Debug, Default)]
struct KnownCustomers {
    accounts: HashMap<AccountSid, Known>,
    apps: HashMap<AppId, Known>,
}

/// The capacity of every customer with calls, kept while somebody uses it.
#[derive(Debug)]
pub struct CustomerCapacity {
    store: Arc<dyn Store>,
    /// For accounts without limits of their own.
    defaults: CallLimits,
    share: watch::Receiver<NodeShare>,
    known: Mutex<KnownCustomers>,
}

impl CustomerCapacity {
    pub fn new(
        store: Arc<dyn Store>,
        defaults: CallLimits,
        share: watch::Receiver<NodeShare>,
    ) -> Self {
        Self {
            store,
            defaults,
            share,
            known: Mutex::default(),
        }
    }

    /// The lanes with something due, each with what is left for its account and application.
    pub async fn waiting(&self, due: Vec<DueLane>) -> Result<Vec<WaitingLane>, StoreError> {
        let mut waiting = Vec::with_capacity(due.len());
        for lane in due {
            if !lock(&self.known).is_fresh(&lane, Instant::now()) {
                self.read_limits(&lane).await?;
            }
            waiting.push(lock(&self.known).waiting(lane, Instant::now()));
        }
        Ok(waiting)
    }

    async fn read_limits(&self, due: &DueLane) -> Result<(), StoreError> {
        let app_id = &due.lane.app;
        let account = self.store.account(&due.account).await?;
        let account = account.map(|account| account.limits).unwrap_or_default();
        let app = self.store.application(app_id).await?;
        let app = app.map(|app| app.limits).unwrap_or_default();
        let of_account = CallLimits {
            at_once: account.calls_at_once.unwrap_or(self.defaults.at_once),
            per_second: account.calls_per_second.unwrap_or(self.defaults.per_second),
        };
        let of_app = CallLimits {
            at_once: app.calls_at_once.unwrap_or(CallLimits::NONE.at_once),
            per_second: app.calls_per_second.unwrap_or(CallLimits::NONE.per_second),
        };
        let (share, now) = (*self.share.borrow(), Instant::now());
        let mut known = lock(&self.known);
        let of_account = of_account.part(share, due.account.as_str());
        remember(&mut known.accounts, &due.account, of_account, now);
        let of_app = of_app.part(share, app_id.as_str());
        remember(&mut known.apps, app_id, of_app, now);
        Ok(())
    }

    /// Counts a call of this customer until the slot is dropped.
    pub fn enter(self: &Arc<Self>, account: &AccountSid, app: &AppId) -> CustomerSlot {
        lock(&self.known).each(account, app, |capacity| capacity.count(Instant::now()));
        CustomerSlot {
            customers: Arc::clone(self),
            account: account.clone(),
            app: app.clone(),
        }
    }

    pub fn forget_idle(&self) {
        let now = Instant::now();
        let is_used = |known: &Known| {
            known.capacity.in_use() > 0 || now.saturating_duration_since(known.read_at) < IDLE
        };
        let mut known = lock(&self.known);
        known.accounts.retain(|_, known| is_used(known));
        known.apps.retain(|_, known| is_used(known));
    }
}

impl KnownCustomers {
    fn is_fresh(&self, due: &DueLane, now: Instant) -> bool {
        let fresh = |known: &Known| now.saturating_duration_since(known.read_at) < REMEMBERED;
        self.accounts.get(&due.account).is_some_and(fresh)
            && self.apps.get(&due.lane.app).is_some_and(fresh)
    }

    fn waiting(&mut self, due: DueLane, now: Instant) -> WaitingLane {
        let left = |known: Option<&mut Known>| known.map_or(0, |known| known.capacity.left(now));
        WaitingLane {
            account_left: left(self.accounts.get_mut(&due.account)),
            app_left: left(self.apps.get_mut(&due.lane.app)),
            account: due.account,
            lane: due.lane,
        }
    }

    fn each(&mut self, account: &AccountSid, app: &AppId, change: impl Fn(&mut Capacity)) {
        let known = [self.accounts.get_mut(account), self.apps.get_mut(app)];
        for known in known.into_iter().flatten() {
            change(&mut known.capacity);
        }
    }
}

fn remember<K: Hash + Eq + Clone>(
    known: &mut HashMap<K, Known>,
    name: &K,
    limits: CallLimits,
    now: Instant,
) {
    let known = known.entry(name.clone()).or_insert_with(|| Known {
        capacity: Capacity::new(limits.at_once, limits.per_second, now),
        read_at: now,
    });
    known.capacity.resize(limits.at_once, limits.per_second);
    known.read_at = now;
}

/// A call's place within its customer's limits, given back however its task ends.
#[derive(Debug)]
pub struct CustomerSlot {
    customers: Arc<CustomerCapacity>,
    account: AccountSid,
    app: AppId,
}

impl Drop for CustomerSlot {
    fn drop(&mut self) {
        lock(&self.customers.known).each(&self.account, &self.app, Capacity::give_back);
    }
}
