//! The worker: a short loop around a step that records finished deliveries, claims due callbacks, and returns what it did.
//!
//! One task claims and records, in batches that grow with the load. Each delivery is a task of its own that does not touch the database. A
//! callback is claimed only if there is a place for it, overall and at its host, so no callback waits while its lease runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use supervisor::Watch;
use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};

use super::delivery::{WebhookResponse, WebhookSender};
use super::hosts::Hosts;
use crate::clock::Clock;
use crate::config::CallbacksConfig;
use crate::domain::callback::{
    CallbackAttempt, CallbackLease, ClaimedCallback, DeliveryResult, EndedAttempt, NextDelivery,
    RetrySchedule,
};
use crate::random;
use crate::store::{CallbackClaim, Store, StoreError};

/// Pause after the database has failed.
const PAUSE: Duration = Duration::from_millis(500);

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Started(usize),
    /// Nothing more can be started before a delivery ends, or before this time has passed.
    Idle(Option<SignedDuration>),
}

type Finished = Result<(Id, (WebhookResponse, Duration)), JoinError>;

/// A delivery under way.
#[derive(Debug)]
struct Held {
    callback: Arc<ClaimedCallback>,
    host: String,
    started_at: Timestamp,
}

pub struct Worker {
    store: Arc<dyn Store>,
    clock: Clock,
    sender: Arc<WebhookSender>,
    schedule: RetrySchedule,
    node: String,
    concurrency: usize,
    per_host: u32,
    lease: SignedDuration,
    poll: Duration,
    stop_limit: Duration,
    hosts: Hosts,
    deliveries: JoinSet<(WebhookResponse, Duration)>,
    held: HashMap<Id, Held>,
    ended: Vec<EndedAttempt>,
    next_reclaim: Instant,
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
            per_host: config.per_host,
            lease: config.lease,
            poll: config.poll,
            stop_limit: config.stop_time,
            hosts: Hosts::new(config.per_host),
            deliveries: JoinSet::new(),
            held: HashMap::new(),
            ended: Vec::new(),
            next_reclaim: Instant::now(),
        }
    }

    pub async fn run(
        mut self,
        watch: Watch,
        owed: Arc<Notify>,
        mut stopped: watch::Receiver<bool>,
    ) {
        while !*stopped.borrow() {
            watch.beat();
            let pause = match self.step().await {
                Ok(Step::Started(_)) => continue,
                Ok(Step::Idle(next_due)) => self.pause(next_due),
                Err(error) => {
                    tracing::error!(%error, "callbacks have to wait");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            tokio::select! {
                _ = stopped.changed() => {}
                () = owed.notified() => {}
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
        self.record().await?;
        if Instant::now() >= self.next_reclaim {
            self.reclaim().await?;
        }
        let free = self.concurrency.saturating_sub(self.deliveries.len());
        if free == 0 {
            return Ok(Step::Idle(None));
        }
        let claim = CallbackClaim {
            node: self.node.clone(),
            lease: self.lease,
            limit: u32::try_from(free).unwrap_or(u32::MAX),
            per_host: self.per_host,
            capacity: self.hosts.capacity(),
        };
        let batch = self.store.claim_callbacks(claim).await?;
        let started = batch.callbacks.len();
        for callback in batch.callbacks {
            self.begin(callback);
        }
        Ok(if started > 0 {
            Step::Started(started)
        } else {
            Step::Idle(batch.next_due)
        })
    }

    async fn reclaim(&mut self) -> Result<(), StoreError> {
        let freed = self.store.reclaim_callbacks(&self.node).await?;
        if freed > 0 {
            tracing::info!(callbacks = freed, "taken over from a process that is gone");
        }
        self.next_reclaim = Instant::now() + self.poll;
        Ok(())
    }

    fn pause(&self, next_due: Option<SignedDuration>) -> Duration {
        let wait = next_due.map(|wait| wait.max(SignedDuration::ZERO).unsigned_abs());
        wait.map_or(self.poll, |wait| wait.min(self.poll))
    }

    fn begin(&mut self, callback: ClaimedCallback) {
        let started_at = self.clock.now();
        let lag = callback.lag.as_secs_f64().max(0.0);
        metrics::histogram!("clarion_callback_lag_seconds").record(lag);
        let (callback, sender) = (Arc::new(callback), Arc::clone(&self.sender));
        let host = callback.lease.key.receiver(&callback.url);
        self.hosts.begin(&host);
        let delivered = Arc::clone(&callback);
        let delivery = self.deliveries.spawn(async move {
            let began = Instant::now();
            let reply = sender.deliver(&delivered, started_at).await;
            (reply, began.elapsed())
        });
        let held = Held {
            callback,
            host,
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
            (error.id(), (reply, Duration::ZERO))
        });
        let Some(held) = self.held.remove(&id) else {
            return;
        };
        self.hosts.end(&held.host, reply.verdict.is_answer());
        let ended_at = self.clock.now();
        let random = f64::from(u32::from_be_bytes(random::bytes())) / f64::from(u32::MAX);
        let failures = held.callback.failures;
        let passed = SignedDuration::try_from(took).unwrap_or(SignedDuration::MAX);
        let time_left = held.callback.time_left.map(|left| left - passed);
        let next = self
            .schedule
            .next(reply.verdict, failures, time_left, reply.asked, random);
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

    /// Records the attempts that have ended. If the database fails, they are kept and recorded later; until then nothing new is claimed.
    async fn record(&mut self) -> Result<(), StoreError> {
        if self.ended.is_empty() {
            return Ok(());
        }
        let recorded = self.store.record_attempts(self.ended.clone()).await?;
        for ended in self.ended.drain(..) {
            if !recorded.contains(&ended.lease.key) {
                tracing::warn!(call = %ended.lease.key, "the lease on a callback was lost; it may be delivered again");
            }
        }
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
