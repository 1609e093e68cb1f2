//! The limits of accounts and applications with calls that are due. The store counts by them, over all nodes, where calls are claimed; here
//! they are remembered, and so is who was found to have nothing left, so that a busy queue does not ask for the same again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::capacity::WaitingLane;
use super::lock;
use crate::config::DispatchConfig;
use crate::domain::account::{AccountSid, AppId};
use crate::domain::call_window::CallWindow;
use crate::domain::claim::{ClaimedCall, DueLane, LaneShare};
use crate::domain::customer_limits::{CallLimits, Customer};
use crate::store::{DispatchStore, StoreError};

/// Limits are read again after this time, so that an operator's change is honoured soon.
const REMEMBERED: Duration = Duration::from_millis(500);
/// A customer that has nothing left is asked for again after this time, or when one of its calls has ended here.
pub const SPENT: Duration = Duration::from_millis(100);
/// Nothing more is claimed of an account while so many of its calls wait for their prompts: the renderer has enough to do with them.
const MAX_PREPARING: u32 = 16;
/// What nobody has used for this long is forgotten.
const IDLE: Duration = Duration::from_secs(60);

/// By what the calls of an account are made, beside its limits.
#[derive(Debug, Clone, Default)]
pub struct AccountRules {
    pub hours: Option<Arc<CallWindow>>,
    /// It makes no calls.
    pub is_stopped: bool,
    /// There are numbers that it must not call.
    pub has_do_not_call: bool,
}

#[derive(Debug)]
struct Known {
    limits: CallLimits,
    /// Of an account.
    rules: AccountRules,
    read_at: Instant,
    spent_until: Option<Instant>,
    /// Calls that run on this node.
    running: u32,
    /// Those of them that wait for their prompts, without a channel.
    preparing: u32,
}

impl Known {
    fn left(&self, now: Instant) -> u32 {
        match self.spent_until {
            _ if self.rules.is_stopped => 0,
            Some(until) if now < until => 0,
            _ if self.preparing >= MAX_PREPARING => 0,
            _ => self.limits.at_once.saturating_sub(self.running),
        }
    }
}

#[derive(Debug)]
pub struct CustomerLimits {
    store: Arc<dyn DispatchStore>,
    /// For accounts without limits of their own.
    defaults: CallLimits,
    known: Mutex<HashMap<Customer, Known>>,
}

impl CustomerLimits {
    pub fn new(store: Arc<dyn DispatchStore>, settings: &DispatchConfig) -> Self {
        Self {
            store,
            defaults: CallLimits {
                at_once: settings.calls_at_once,
                per_second: settings.calls_per_second,
            },
            known: Mutex::default(),
        }
    }

    /// The lanes with something due, each with what may be left for its account and application.
    pub async fn waiting(&self, due: Vec<DueLane>) -> Result<Vec<WaitingLane>, StoreError> {
        let mut waiting = Vec::with_capacity(due.len());
        for lane in due {
            let account = Customer::Account(lane.account.clone());
            let app = Customer::App(lane.lane.app.clone());
            if !self.is_fresh(&account) || !self.is_fresh(&app) {
                self.read_limits(&lane.account, &lane.lane.app).await?;
            }
            waiting.push(WaitingLane {
                account_left: self.left(&account),
                app_left: self.left(&app),
                account: lane.account,
                lane: lane.lane,
            });
        }
        Ok(waiting)
    }

    /// The limits by which the store counts.
    pub fn limits(&self, shares: &[LaneShare]) -> HashMap<Customer, CallLimits> {
        let known = lock(&self.known);
        let customers = shares.iter().flat_map(|share| {
            [
                Customer::Account(share.account.clone()),
                Customer::App(share.lane.app.clone()),
            ]
        });
        let limits = customers.filter_map(|customer| {
            let limits = known.get(&customer)?.limits;
            Some((customer, limits))
        });
        limits.collect()
    }

    /// An application that got nothing although a call of it is due has nothing left for a while.
    pub fn note_claimed(&self, shares: &[LaneShare], claimed: &[ClaimedCall]) {
        let until = Instant::now() + SPENT;
        for share in shares {
            let is_of_app = |claimed: &ClaimedCall| claimed.call.app == share.lane.app;
            let app = Customer::App(share.lane.app.clone());
            if !claimed.iter().any(is_of_app)
                && let Some(known) = lock(&self.known).get_mut(&app)
            {
                known.spent_until = Some(until);
            }
        }
    }

    fn is_fresh(&self, customer: &Customer) -> bool {
        let known = lock(&self.known);
        let fresh = |known: &Known| known.read_at.elapsed() < REMEMBERED;
        known.get(customer).is_some_and(fresh)
    }

    fn left(&self, customer: &Customer) -> u32 {
        let known = lock(&self.known);
        known
            .get(customer)
            .map_or(0, |known| known.left(Instant::now()))
    }

    async fn read_limits(&self, account: &AccountSid, app: &AppId) -> Result<(), StoreError> {
        let rules = self.store.customer_rules(account, app).await?;
        let (of_account, of_app) = (rules.account, rules.app);
        let (at_once, per_second) = (self.defaults.at_once, self.defaults.per_second);
        let of_account = CallLimits {
            at_once: of_account.calls_at_once.unwrap_or(at_once),
            per_second: of_account.calls_per_second.unwrap_or(per_second),
        };
        let of_app = CallLimits {
            at_once: of_app.calls_at_once.unwrap_or(u32::MAX),
            per_second: of_app.calls_per_second.unwrap_or(u32::MAX),
        };
        let rules = AccountRules {
            hours: rules.hours.map(Arc::new),
            is_stopped: rules.is_stopped,
            has_do_not_call: rules.has_do_not_call,
        };
        self.remember(Customer::Account(account.clone()), of_account, rules);
        self.remember(Customer::App(app.clone()), of_app, AccountRules::default());
        Ok(())
    }

    /// The rules of an account, as they were a moment ago.
    pub async fn rules(
        &self,
        account: &AccountSid,
        app: &AppId,
    ) -> Result<AccountRules, StoreError> {
        let customer = Customer::Account(account.clone());
        if !self.is_fresh(&customer) {
            self.read_limits(account, app).await?;
        }
        let known = lock(&self.known);
        let rules = known.get(&customer).map(|known| known.rules.clone());
        Ok(rules.unwrap_or_default())
    }

    fn remember(&self, customer: Customer, limits: CallLimits, rules: AccountRules) {
        let mut known = lock(&self.known);
        let known = known.entry(customer).or_insert_with(|| Known {
            limits,
            rules: AccountRules::default(),
            read_at: Instant::now(),
            spent_until: None,
            running: 0,
            preparing: 0,
        });
        (known.limits, known.rules, known.read_at) = (limits, rules, Instant::now());
    }

    /// Counts a call of this customer until the slot is dropped.
    pub fn enter(self: &Arc<Self>, account: &AccountSid, app: &AppId) -> CustomerSlot {
        let slot = CustomerSlot {
            limits: Arc::clone(self),
            customers: [
                Customer::Account(account.clone()),
                Customer::App(app.clone()),
            ],
        };
        slot.each(|known| known.running += 1);
        slot
    }

    /// Counts a call of this account as one that waits for its prompt until the slot is dropped.
    pub fn prepare(self: &Arc<Self>, account: &AccountSid) -> PreparingSlot {
        let slot = PreparingSlot {
            limits: Arc::clone(self),
            account: Customer::Account(account.clone()),
        };
        slot.change(|preparing| preparing + 1);
        slot
    }

    pub fn forget_idle(&self) {
        let is_used = |known: &Known| known.running > 0 || known.read_at.elapsed() < IDLE;
        lock(&self.known).retain(|_, known| is_used(known));
    }
}

/// A call's place within its customer's limits, given back however its task ends.
#[derive(Debug)]
pub struct CustomerSlot {
    limits: Arc<CustomerLimits>,
    customers: [Customer; 2],
}

impl CustomerSlot {
    fn each(&self, change: impl Fn(&mut Known)) {
        let mut known = lock(&self.limits.known);
        for customer in &self.customers {
            if let Some(known) = known.get_mut(customer) {
                change(known);
            }
        }
    }
}

impl Drop for CustomerSlot {
    fn drop(&mut self) {
        self.each(|known| {
            known.running = known.running.saturating_sub(1);
            known.spent_until = None;
        });
    }
}

/// A call that waits for its prompt.
#[derive(Debug)]
pub struct PreparingSlot {
    limits: Arc<CustomerLimits>,
    account: Customer,
}

impl PreparingSlot {
    fn change(&self, change: impl Fn(u32) -> u32) {
        if let Some(known) = lock(&self.limits.known).get_mut(&self.account) {
            known.preparing = change(known.preparing);
        }
    }
}

impl Drop for PreparingSlot {
    fn drop(&mut self) {
        self.change(|preparing| preparing.saturating_sub(1));
    }
}
