//! The worker: a short loop around a step that records finished deliveries, claims due callbacks, and returns what it did.
//!
//! One task claims and records, in batches that grow with the load. Each delivery is a task of its own that does not touch the database. A
//! callback is claimed only if there is a place for it, overall, of its account and at its receiver, so no callback waits while its lease runs.
//! Where its name leads is known only then: if there is no place at that address, it is put back.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use supervisor::Watch;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};

use super::delivery::{WebhookResponse, WebhookSender};
use super::owed::{NewlyOwed, OwedReceiver, OwedSignal};
use super::quiet::{NextLook, QuietTime};
use crate::clock::Clock;
use crate::config::CallbacksConfig;
use crate::domain::account::{AccountSid, AppId};
use crate::domain::callback::{
    CallbackAttempt, CallbackLease, ClaimedCallback, DeliveryPlaces, DeliveryResult, DueReceiver,
    EndedAttempt, NextDelivery, PUT_BACK_PAUSE, PlaceId, RetrySchedule, shares,
};
use crate::random;
use crate::seldom::Seldom;
use crate::store::{CallbackClaim, ReceiverLook, Store, StoreError};

/// Pause after the database has failed.
const PAUSE: Duration = Duration::from_millis(500);
/// Receivers of one application that a step looks at. The next one goes on behind them, after a pause if there was nothing to start: what a step
/// costs does not depend on how many receivers wait.
const RECEIVERS_LOOKED_AT: u32 = 500;
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// The fewest places that a step takes for a receiver, where there are as many: most steps find one or two callbacks, and each place that is not
/// needed is given back.
const FEWEST_PLACES: usize = 8;

/// An event that goes elsewhere than the one before it of the same call is looked for so soon after that one.
const EVENT_PAUSE: Duration = Duration::from_millis(250);

/// An event may be tried for a minute. One that has had no place for so much longer is given up untried, so many with each look for lost leases.
const EVENT_PATIENCE: SignedDuration = SignedDuration::from_mins(5);
const MAX_LATE: u32 = 5000;

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Started(usize),
    /// Nothing more can be started before a delivery ends, or before then.
    Idle(Option<Instant>),
}

/// What has become of a delivery, and how long it took. `None`: there was no place at its address.
type Delivered = (Option<WebhookResponse>, Duration);
type Finished = Result<(Id, Delivered), JoinError>;
/// The places that were taken for a receiver of an account.
type Reserved = HashMap<(AccountSid, String), Vec<PlaceId>>;

/// The places that a step has taken for what is due.
struct Taken {
    places: Vec<(PlaceId, DueReceiver)>,
    /// What is due and got none.
    passed_over: HashSet<(AccountSid, String)>,
    /// Whoever got none will get one only when a delivery of its account has ended.
    are_all: bool,
}

/// A delivery under way.
#[derive(Debug)]
struct Held {
    callback: Arc<ClaimedCallback>,
    host: String,
    place: PlaceId,
    started_at: Timestamp,
}

pub struct Worker {
    store: Arc<dyn Store>,
    clock: Clock,
    sender: Arc<WebhookSender>,
    schedule: RetrySchedule,
    node: String,
    concurrency: usize,
    /// How many places the next step takes where one receiver has something due: twice as many as the last step needed, so that a long row is soon
    /// taken in large steps.
    ahead: usize,
    lease: SignedDuration,
    poll: Duration,
    stop_limit: Duration,
    places: Arc<Mutex<DeliveryPlaces>>,
    deliveries: JoinSet<Delivered>,
    held: HashMap<Id, Held>,
    ended: Vec<EndedAttempt>,
    put_back: Vec<CallbackLease>,
    /// Where the next look goes on.
    look_after: HashMap<AppId, String>,
    /// When something will be due, as far as this look has seen.
    next_due: Option<Instant>,
    /// When what was put back may be tried again.
    put_back_until: Instant,
    next_reclaim: Instant,
    /// Before, events may be late because no server ran: those are tried once.
    late_from: Instant,
    quiet: QuietTime,
}

impl Worker {
    pub fn new(
        config: &CallbacksConfig,
        store: Arc<dyn Store>,
        clock: Clock,
        sender: Arc<WebhookSender>,
        node: String,
    ) -> Self {
        Self {
            store,
            clock,
            sender,
            schedule: config.schedule.clone(),
            node,
            concurrency: config.concurrency as usize,
            ahead: FEWEST_PLACES,
            lease: config.lease,
            poll: config.poll,
            stop_limit: config.stop_time,
            places: Arc::new(Mutex::new(DeliveryPlaces::new(config.places))),
            deliveries: JoinSet::new(),
            held: HashMap::new(),
            ended: Vec::new(),
            put_back: Vec::new(),
            look_after: HashMap::new(),
            next_due: None,
            put_back_until: Instant::now(),
            next_reclaim: Instant::now(),
            late_from: Instant::now() + EVENT_PATIENCE.unsigned_abs(),
            quiet: QuietTime::default(),
        }
    }

    pub async fn run(
        mut self,
        watch: Watch,
        owed: Arc<OwedSignal>,
        mut stopped: watch::Receiver<bool>,
    ) {
        static FAILURES: Seldom = Seldom::new();
        while !*stopped.borrow() {
            watch.heartbeat();
            let pause = match self.step().await {
                Ok(Step::Started(_)) => continue,
                Ok(Step::Idle(until)) => self.pause(until),
                Err(error) => {
                    if let Some(unsaid) = FAILURES.say() {
                        tracing::error!(%error, unsaid, "callbacks have to wait");
                    }
                    sleep(PAUSE).await;
                    continue;
                }
            };
            tokio::select! {
                _ = stopped.changed() => {}
                newly = owed.heard() => self.quiet.hear(newly),
                Some(finished) = self.deliveries.join_next_with_id() => self.end(finished),
                () = sleep(pause) => {}
            }
        }
        self.wind_down().await;
    }

    async fn step(&mut self) -> Result<Step, StoreError> {
        while let Some(finished) = self.deliveries.try_join_next_with_id() {
            self.end(finished);
        }
        // What is settled changes nothing about what is due: it is recorded while that is looked for.
        let is_settled =
            |ended: &EndedAttempt| ended.next.wait().is_none() && !ended.lease.key.is_event();
        if !self.put_back.is_empty() || !self.ended.iter().all(is_settled) {
            self.record().await?;
            return self.start().await;
        }
        let (store, ended) = (Arc::clone(&self.store), std::mem::take(&mut self.ended));
        let (recorded, step) = tokio::join!(record(&*store, &ended), self.start());
        if let Err(error) = recorded {
            self.ended.extend(ended);
            return Err(error);
        }
        step
    }

    /// Claims what is due and has a place.
    async fn start(&mut self) -> Result<Step, StoreError> {
        if Instant::now() >= self.next_reclaim {
            self.reclaim().await?;
        }
        let free = self.concurrency.saturating_sub(self.deliveries.len());
        if free == 0 {
            return Ok(Step::Idle(None));
        }
        match self.quiet.next(Instant::now()) {
            NextLook::Rest(until) => Ok(Step::Idle(Some(until))),
            NextLook::Known(known, until) => {
                let taken = self.take(known, free);
                if taken.places.is_empty() {
                    self.rest(taken, until);
                    return Ok(Step::Idle(Some(until)));
                }
                self.claim(taken, until).await
            }
            NextLook::Look => self.look(free).await,
        }
    }

    async fn look(&mut self, free: usize) -> Result<Step, StoreError> {
        let began = Instant::now();
        let look = ReceiverLook {
            limit: RECEIVERS_LOOKED_AT,
            after: std::mem::take(&mut self.look_after),
            full: lock(&self.places).full_accounts(),
        };
        metrics::counter!("clarion_callback_polls_total").increment(1);
        if look.after.is_empty() {
            self.quiet.begin_look();
            self.next_due = None;
        }
        self.quiet.pass_over_all(look.full.iter().cloned());
        let found = self.store.due_receivers(look).await?;
        self.look_after = found.after;
        let until = self.next_look(began, found.next_due);
        let taken = self.take(found.receivers, free);
        if !taken.places.is_empty() {
            return self.claim(taken, until).await;
        }
        self.rest(taken, until);
        Ok(Step::Idle(Some(if self.quiet.is_on() {
            until
        } else {
            Instant::now() + LOOK_PAUSE
        })))
    }

    /// When to look again if nothing happens before, by all parts of this look. Counted from when it began: however long its claims take, nothing is put off.
    fn next_look(&mut self, began: Instant, found: Option<SignedDuration>) -> Instant {
        let found = found.map(|wait| began + wait.max(SignedDuration::ZERO).unsigned_abs());
        self.next_due = [self.next_due, found].into_iter().flatten().min();
        let put_back = Some(self.put_back_until).filter(|until| began < *until);
        let sooner = [self.next_due, put_back].into_iter().flatten();
        sooner.fold(began + self.poll, Ord::min)
    }

    /// Takes places for what is due.
    fn take(&self, due: Vec<DueReceiver>, free: usize) -> Taken {
        let most = self.places_for(due.len(), free);
        let rows = due.len();
        let mut without: HashSet<_> = due.iter().map(receiver).collect();
        // Places are counted by account and receiver: those of two applications cannot be told apart.
        let places = lock(&self.places).take(due, most, Instant::now().into_std());
        let are_apart = without.len() == rows || places.is_empty();
        for (_, due) in &places {
            without.remove(&receiver(due));
        }
        Taken {
            are_all: are_apart && (without.is_empty() || places.len() < most),
            places,
            passed_over: without,
        }
    }

    /// How many places are taken for what is due at so many receivers. Nobody is passed over: where there are several, all that is free is shared out.
    fn places_for(&self, receivers: usize, free: usize) -> usize {
        if receivers > 1 {
            free
        } else {
            free.min(self.ahead)
        }
    }

    /// What is due has been started, or has no place.
    fn rest(&mut self, taken: Taken, until: Instant) {
        if !taken.are_all {
            self.quiet.saw_less();
        }
        self.quiet.pass_over(taken.passed_over);
        if self.look_after.is_empty() {
            self.quiet.begin(until);
        }
    }

    /// Claims callbacks for places that were taken, and gives back those that are not needed.
    async fn claim(&mut self, mut taken: Taken, until: Instant) -> Result<Step, StoreError> {
        let claim = CallbackClaim {
            node: self.node.clone(),
            lease: self.lease,
            shares: shares(&taken.places),
        };
        let mut reserved = Reserved::new();
        for (place, due) in taken.places.drain(..) {
            reserved.entry(receiver(&due)).or_default().push(place);
        }
        let claimed = self.store.claim_callbacks(claim).await;
        let started = match &claimed {
            Ok(Some(callbacks)) => callbacks.len(),
            _ => 0,
        };
        self.ahead = (2 * started).max(FEWEST_PLACES);
        for callback in claimed.iter().flatten().flatten() {
            self.begin(callback.clone(), &mut reserved);
        }
        // Where each receiver had a place more than it needed, nothing that is due is left there.
        let is_claimed = matches!(claimed, Ok(Some(_)));
        taken.are_all &= is_claimed && reserved.values().all(|left| !left.is_empty());
        self.rest(taken, until);
        for ((account, _), places) in reserved {
            for place in places {
                lock(&self.places).give_back(place);
            }
            self.have_room(&account);
        }
        Ok(match claimed? {
            None => Step::Idle(Some(Instant::now())),
            Some(_) if started > 0 => Step::Started(started),
            Some(_) if self.look_after.is_empty() => Step::Idle(Some(until)),
            Some(_) => Step::Idle(Some(Instant::now() + LOOK_PAUSE)),
        })
    }

    /// Places of this account are free again: it looks if that is of use to what was passed over.
    fn have_room(&mut self, account: &AccountSid) {
        let places = lock(&self.places);
        let has_room = |receiver: Option<&str>| {
            let now = Instant::now().into_std();
            places.has_room(account, receiver, now)
        };
        self.quiet.have_room(account, has_room);
    }

    async fn reclaim(&mut self) -> Result<(), StoreError> {
        let freed = self.store.reclaim_callbacks(&self.node).await?;
        if freed > 0 {
            self.quiet.end();
            tracing::info!(callbacks = freed, "taken over from a process that is gone");
        }
        if Instant::now() >= self.late_from {
            self.give_up_late_events().await?;
        }
        self.next_reclaim = Instant::now() + self.poll;
        Ok(())
    }

    /// Nobody waits for an event that is as old as this.
    async fn give_up_late_events(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let late = self
            .store
            .give_up_late_events(EVENT_PATIENCE, now, MAX_LATE);
        let late = late.await?;
        if late > 0 {
            tracing::info!(
                events = late,
                "events given up: they have waited too long for a place at their receivers"
            );
        }
        Ok(())
    }

    fn pause(&self, until: Option<Instant>) -> Duration {
        let now = Instant::now();
        let put_back = Some(self.put_back_until).filter(|until| now < *until);
        let sooner = [until, put_back].into_iter().flatten();
        sooner.fold(now + self.poll, Ord::min) - now
    }

    fn begin(&mut self, callback: ClaimedCallback, reserved: &mut Reserved) {
        let host = callback.lease.key.receiver(&callback.url);
        let place = reserved.get_mut(&(callback.account.clone(), host.clone()));
        // No more is claimed than places were taken for it.
        let Some(place) = place.and_then(Vec::pop) else {
            self.put_back.push(callback.lease);
            return;
        };
        let started_at = self.clock.now();
        let lag = callback.lag.as_secs_f64().max(0.0);
        metrics::histogram!("clarion_callback_lag_seconds").record(lag);
        let (callback, sender) = (Arc::new(callback), Arc::clone(&self.sender));
        let (delivered, places) = (Arc::clone(&callback), Arc::clone(&self.places));
        let delivery = self.deliveries.spawn(async move {
            let began = Instant::now();
            let has_place = |address| {
                let now = Instant::now().into_std();
                lock(&places).arrive(place, address, now)
            };
            let reply = sender.deliver(&delivered, started_at, has_place).await;
            (reply, began.elapsed())
        });
        let held = Held {
            callback,
            host,
            place,
            started_at,
        };
        self.held.insert(delivery.id(), held);
    }

    /// Decides what follows a finished delivery. The next step records it.
    fn end(&mut self, finished: Finished) {
        let (id, (reply, took)) = finished.unwrap_or_else(|error| {
            let reply = WebhookResponse {
                verdict: DeliveryResult::Broken,
                status: None,
                error: Some("the delivery panicked".to_owned()),
                answer: None,
                asked: None,
            };
            (error.id(), (Some(reply), Duration::ZERO))
        });
        let Some(held) = self.held.remove(&id) else {
            return;
        };
        let Some(reply) = reply else {
            return self.end_without_place(&held);
        };
        lock(&self.places).end(held.place, reply.verdict.is_answer());
        self.have_room(&held.callback.account);
        let ended_at = self.clock.now();
        let random = f64::from(u32::from_be_bytes(random::bytes())) / f64::from(u32::MAX);
        let failures = held.callback.failures;
        let passed = SignedDuration::try_from(took).unwrap_or(SignedDuration::MAX);
        let time_left = held.callback.time_left.map(|left| left - passed);
        let next = self
            .schedule
            .next(reply.verdict, failures, time_left, reply.asked, random);
        if let Some(wait) = next.wait() {
            self.quiet.is_due_at(Instant::now() + wait.unsigned_abs());
        }
        if held.callback.lease.key.is_event() {
            // The next event of the same call has waited for this one: mostly it goes to the same receiver.
            let same = OwedReceiver {
                account: held.callback.account.clone(),
                app: held.callback.app.clone(),
                receiver: held.host.clone(),
            };
            self.quiet.hear(NewlyOwed::Only(HashSet::from([same])));
            self.quiet.is_due_at(Instant::now() + EVENT_PAUSE);
        }
        tell(&held, &reply, took, next);
        self.ended.push(EndedAttempt {
            lease: held.callback.lease.clone(),
            attempt: CallbackAttempt {
                started_at: held.started_at,
                milliseconds: i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
                verdict: reply.verdict,
                status: reply.status,
                error: reply.error,
                answer: reply.answer,
            },
            ended_at,
            next,
        });
    }

    fn end_without_place(&mut self, held: &Held) {
        metrics::counter!("clarion_callbacks_put_back_total").increment(1);
        lock(&self.places).give_back(held.place);
        self.put_back.push(held.callback.lease.clone());
        self.put_back_until = Instant::now() + PUT_BACK_PAUSE;
        let receiver = (held.callback.account.clone(), held.host.clone());
        self.quiet.pass_over([receiver]);
        self.quiet.is_due_at(self.put_back_until);
    }

    /// Records the attempts that have ended, and puts back what had no place. If the database fails, they are kept and recorded later.
    async fn record(&mut self) -> Result<(), StoreError> {
        if !self.put_back.is_empty() {
            self.store.release_callbacks(self.put_back.clone()).await?;
            self.put_back.clear();
        }
        record(&*self.store, &self.ended).await?;
        self.ended.clear();
        Ok(())
    }

    async fn wind_down(mut self) {
        let deadline = Instant::now() + self.stop_limit;
        while let Ok(Some(finished)) =
            timeout_at(deadline, self.deliveries.join_next_with_id()).await
        {
            self.end(finished);
        }
        self.deliveries.abort_all();
        let left: Vec<CallbackLease> = self
            .held
            .values()
            .map(|held| held.callback.lease.clone())
            .collect();
        let result = match self.record().await {
            Ok(()) => self.store.release_callbacks(left).await,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            tracing::error!(%error, "callbacks could not be handed back; they are delivered again after the next start");
        }
    }
}

/// Where a callback is due, and whose it is.
fn receiver(due: &DueReceiver) -> (AccountSid, String) {
    (due.account.clone(), due.receiver.clone())
}

async fn record(store: &dyn Store, ended: &[EndedAttempt]) -> Result<(), StoreError> {
    if ended.is_empty() {
        return Ok(());
    }
    let recorded = store.record_attempts(ended.to_vec()).await?;
    let lost = ended
        .iter()
        .filter(|ended| !recorded.contains(&ended.lease.key));
    for ended in lost {
        tracing::warn!(call = %ended.lease.key, "the lease on a callback was lost; it may be delivered again");
    }
    Ok(())
}

/// A panic elsewhere leaves nothing half done here.
fn lock(places: &Mutex<DeliveryPlaces>) -> MutexGuard<'_, DeliveryPlaces> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Logs and counts a delivery. The query of a URL may carry the receiver's secrets, so only the host is logged.
fn tell(held: &Held, reply: &WebhookResponse, took: Duration, next: NextDelivery) {
    let word = reply.verdict.as_str();
    metrics::counter!("clarion_callback_attempts_total", "verdict" => word).increment(1);
    let (call, host) = (&held.callback.lease.key, &held.host);
    let (attempt, ms, status) = (held.callback.attempts + 1, took.as_millis(), reply.status);
    let error = reply.error.as_deref();
    match next {
        NextDelivery::Delivered => tracing::debug!(%call, host, attempt, ms, "callback delivered"),
        NextDelivery::RetryAfter(wait) => {
            tracing::info!(%call, host, attempt, ms, status, verdict = word, error, retry_after = %wait, "callback failed");
        }
        // Nobody waits for an event: the next one says more.
        NextDelivery::GivenUp if call.is_event() => {
            tracing::info!(%call, host, attempt, ms, status, verdict = word, error, "event given up");
        }
        NextDelivery::GivenUp => {
            metrics::counter!("clarion_callbacks_given_up_total").increment(1);
            tracing::warn!(%call, host, attempt, ms, status, verdict = word, error, "callback given up");
        }
    }
}
