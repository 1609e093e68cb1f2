//! How a call is placed, whoever wants it: an application by a request, or an operator who has one made again. Here is what the platform and the database
//! say about it; what a request says by its fields is read before (`api`).
//!
//! It decides nothing about who may ask, and knows no HTTP.

mod callees;
mod files;
mod times;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Zoned};

pub use self::callees::recipient;
pub use self::files::NamedFiles;
pub use self::times::{PlacingTimes, RequestTimes};
use crate::accepted::Announcer;
use crate::barred_numbers::BarredNumbers;
use crate::callbacks::OwedSignal;
use crate::clock::Clock;
use crate::config::Config;
use crate::disk_room::{DiskRoom, RoomFor};
use crate::domain::account::{Account, AccountSid};
use crate::domain::bill::rating::Shortage;
use crate::domain::call::{CallSid, CallSids, NewCall, Priority, Queueing};
use crate::domain::callback::{EventSubscription, OwedEvent, StateEvent};
use crate::domain::notice::{Notice, Recipient};
use crate::domain::request_key::{Accepted, AcceptedCall, RequestKey};
use crate::domain::route::RouteKey;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::domain::wording::wording;
use crate::random;
use crate::store::{Store, StoreError, unavailable};

/// What it takes to place calls.
#[derive(Debug)]
pub struct CallPlacing {
    store: Arc<dyn Store>,
    config: Arc<Config>,
    clock: Clock,
    call_sids: CallSids,
    barred: Arc<BarredNumbers>,
    disk: Arc<DiskRoom>,
    /// `None` beside a server: it finds the call by itself.
    server: Option<Listeners>,
    /// The schema of the oldest node, where no heartbeat tells it.
    oldest_node: Option<usize>,
}

/// Who in the server wants to know that a call was accepted.
#[derive(Debug)]
pub struct Listeners {
    pub accepted: Announcer,
    /// Notified when something is owed to an application.
    pub callback_owed: Arc<OwedSignal>,
}

/// A call that keeps all rules.
#[derive(Debug)]
pub struct WillingCall {
    pub call: NewCall,
    pub queueing: Queueing,
    /// Everybody whom it may call.
    pub callees: Vec<Recipient>,
    /// Where the application has named its request.
    pub request: Option<RequestKey>,
}

impl CallPlacing {
    /// In the server.
    pub fn new(
        store: &Arc<dyn Store>,
        config: &Arc<Config>,
        clock: &Clock,
        barred: &Arc<BarredNumbers>,
        disk: &Arc<DiskRoom>,
        server: Listeners,
    ) -> Self {
        Self {
            store: Arc::clone(store),
            config: Arc::clone(config),
            clock: clock.clone(),
            call_sids: CallSids::default(),
            barred: Arc::clone(barred),
            disk: Arc::clone(disk),
            server: Some(server),
            oldest_node: None,
        }
    }

    /// In another process, for few calls: everything is read now.
    pub async fn beside_server(
        store: Arc<dyn Store>,
        config: Arc<Config>,
        clock: Clock,
    ) -> Result<Self, StoreError> {
        let nodes = store.nodes().await?;
        let living = nodes.iter().filter(|node| node.is_alive);
        let oldest = living.map(|node| node.schema).min();
        Ok(Self {
            barred: Arc::new(BarredNumbers::open(&*store).await?),
            disk: Arc::new(DiskRoom::new(&config)),
            store,
            config,
            clock,
            call_sids: CallSids::default(),
            server: None,
            oldest_node: Some(oldest.unwrap_or(usize::MAX)),
        })
    }

    /// The schema that the oldest of all living nodes was made for.
    pub fn oldest_node(&self) -> usize {
        self.oldest_node.unwrap_or_else(|| self.store.oldest_node())
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub async fn check_room(&self) -> Result<(), Refusal> {
        self.disk.check(RoomFor::Calls).await
    }

    pub fn new_sid(&self, now: &Zoned) -> CallSid {
        self.call_sids.create(now, random::bytes())
    }

    pub fn queueing(
        &self,
        to: &Recipient,
        notice: Option<&Notice>,
        priority: Priority,
        times: PlacingTimes,
    ) -> Queueing {
        let routes = self.config.trunks.iter().map(|trunk| &trunk.route);
        Queueing {
            route: RouteKey::of(routes, to.ends()),
            priority,
            pause: times.pause,
            valid_for: times.valid_for,
            patience: notice.and_then(|notice| notice.patience(&to.number, &[])),
        }
    }

    /// Makes the call durable, and tells it to those who wait for calls.
    pub async fn accept(
        &self,
        account: &Account,
        willing: WillingCall,
    ) -> Result<Accepted, Refusal> {
        let WillingCall {
            call,
            queueing,
            callees,
            request,
        } = willing;
        tracing::debug!(call = %call.sid, account = %call.account, to = %call.number, "accepting");
        self.check_caps(&account.sid, &callees, &queueing).await?;
        let prompt = call.prompt.clone();
        let (at, zone) = (call.accepted_at, self.clock.zone());
        let event = OwedEvent::new(&call, StateEvent::Queued, None, at, zone);
        let watched = call.events.as_ref().filter(|_| event.is_some());
        let told = watched.map(EventSubscription::receiver);
        let app = call.app.clone();
        let order = AcceptedCall {
            call,
            queueing,
            request,
            event,
        };
        let accepted = self.make_durable(account, order).await?;
        if let (Accepted::New, Some(server)) = (&accepted, &self.server) {
            server.callback_owed.is_owed_at(&account.sid, &app, told);
            server.accepted.call_accepted(account.sid.clone(), prompt);
        }
        Ok(accepted)
    }

    /// Refuses callees whom the account has called so often that the cap per day will not let a call to any of them through before it expires. Any other cap
    /// only makes the call wait.
    async fn check_caps(
        &self,
        account: &AccountSid,
        callees: &[Recipient],
        queueing: &Queueing,
    ) -> Result<(), Refusal> {
        let cap = self.config.dispatch.callee_caps.per_day;
        if cap == 0 {
            return Ok(());
        }
        let counted_until_then = SignedDuration::from_hours(24) - queueing.valid_for;
        let callees: BTreeSet<_> = callees.iter().map(|to| to.callee.as_str()).collect();
        // A notice is refused only where every number of it is spent.
        for callee in callees {
            let calls = self
                .store
                .calls_to(account, callee, counted_until_then)
                .await;
            if calls.map_err(|error| unavailable(&error))? < cap {
                return Ok(());
            }
        }
        let rule = wording!(
            "to: this number has had its {cap} calls of the day",
            "该号码今天已呼叫 {cap} 次，达到上限"
        );
        Err(Refusal::worded(StatusCode::TooManyCallsToNumber, &rule))
    }

    /// Stores the call. If the account has a balance or a spending limit, the possible cost of the call is reserved with it.
    async fn make_durable(
        &self,
        account: &Account,
        order: AcceptedCall,
    ) -> Result<Accepted, Refusal> {
        let sid = order.call.sid.clone();
        if account.balance.is_none() && account.spending_limit.is_none() {
            let accepted = self.store.accept_call(order).await;
            return accepted.map_err(|error| not_durable(&sid, &error));
        }
        let limit = self.config.reserved_talk();
        let longest_talk = order.call.max_talk.unwrap_or(limit).min(limit);
        let accepted = self
            .store
            .accept_call_within_limits(order, longest_talk)
            .await;
        match accepted.map_err(|error| not_durable(&sid, &error))? {
            Ok(accepted) => Ok(accepted),
            Err(Shortage::Balance) => Err(StatusCode::BalanceInsufficient.into()),
            Err(Shortage::SpendingLimit) => Err(StatusCode::SpendingLimit.into()),
        }
    }
}

/// Nobody is told "no" about a call that may be made.
fn not_durable(sid: &CallSid, error: &StoreError) -> Refusal {
    let refusal = unavailable(error);
    if !error.is_unknown() {
        return refusal;
    }
    let code = StatusCode::AcceptUnknown;
    Refusal::new(code, format!("{}; callSid {sid}", code.meaning()))
}
