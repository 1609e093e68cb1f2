//! What is done once a second: calls that shall end without being dialled, running calls that shall be hung up, the operator's switches,
//! the gauges, and calls that ended so long ago that they are forgotten.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use jiff::SignedDuration;
use phone::signalling::SipRefusal;
use supervisor::Watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::customers::CustomerLimits;
use super::dial_progress::DialProgress;
use super::end_reason::EndReason;
use super::node::Node;
use super::prompt_guard::PromptGuard;
use super::quality_guard::QualityGuard;
use super::recorder::CallRecorder;
use super::switches::Switches;
use super::trunk_pool::{TrunkPool, TrunkState};
use crate::clock::JumpWatch;
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::{ClaimedCall, DeadRoute, Overdue};
use crate::domain::notice::ending::NoticeEnding;
use crate::domain::outcome::Outcome;
use crate::domain::route::RouteKey;
use crate::store::{ForgetStep, StoreError};

const INTERVAL: Duration = Duration::from_secs(1);
/// Calls ended in one go that were never dialled.
const MAX_OVERDUE: u32 = 1000;
/// Ends that are written at once: they share commits.
pub const ENDS_AT_ONCE: usize = 256;
/// One end may take this long: an end that the database does not take must not keep the others waiting, nor the heartbeat. It is tried
/// again when no task is found to work at the call.
const TIME_FOR_ONE_END: Duration = Duration::from_secs(2);
/// Calls looked at, and forgotten, in one commit: a short one, between others. Five hundred a second are more than calls end in the long run on most
/// machines.
const MAX_FORGOTTEN: u32 = 500;
/// Notes on who was called when, forgotten in one commit: small rows.
const MAX_FORGOTTEN_COUNTS: u32 = 5000;
/// Where nothing was old enough, it is looked for again after this.
const NOTHING_TO_FORGET: Duration = Duration::from_secs(10);
/// A request may be repeated for so long after its call has ended.
const REQUESTS_KEPT: SignedDuration = SignedDuration::from_hours(48);

/// Whether there may be more calls to end that were never dialled: then they are ended without a pause.
#[derive(Debug, PartialEq, Eq)]
enum Overdues {
    None,
    Left,
}

#[derive(Debug)]
pub struct Housekeeping {
    pub recorder: CallRecorder,
    pub pool: Arc<TrunkPool>,
    pub switches: Arc<Switches>,
    pub customers: Arc<CustomerLimits>,
    pub prompt_guard: Arc<PromptGuard>,
    pub quality_guard: QualityGuard,
    /// Ended calls are kept for this long; `None`: for ever.
    pub retention: Option<SignedDuration>,
}

impl Housekeeping {
    pub async fn run(self: Arc<Self>, watch: Watch, stop: CancellationToken) {
        let mut pace = Pace {
            depth: DepthGauge::default(),
            next_forgetting: Instant::now(),
            jumps: JumpWatch::new(self.recorder.node.clock.clone()),
            names_after: None,
            calls_after: None,
        };
        let mut tick = tokio::time::interval(INTERVAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            watch.heartbeat();
            if self.step(&mut pace).await == Overdues::Left {
                tick.reset_immediately();
            }
        }
    }

    async fn step(&self, pace: &mut Pace) -> Overdues {
        let overdues = self.end_overdue().await.unwrap_or_else(|error| {
            tracing::error!(%error, "overdue calls could not be ended");
            Overdues::None
        });
        self.look_after_the_rest(pace).await;
        overdues
    }

    async fn look_after_the_rest(&self, pace: &mut Pace) {
        if let Err(error) = self.hang_up_cancelled().await {
            tracing::error!(%error, "cancelled calls could not be read");
        }
        if let Err(error) = self.switches.read().await {
            tracing::error!(%error, "the operator's switches could not be read");
        }
        self.pool.look(&self.recorder.node.clock.wall());
        if let Err(error) = self.pass_on_stranded().await {
            tracing::error!(%error, "calls for which no trunk can be used could not be read");
        }
        pace.depth.set(&self.recorder.node).await;
        self.set_gauges();
        self.customers.forget_idle();
        self.prompt_guard.try_again(Instant::now());
        self.quality_guard.look();
        self.pool.packets.look();
        if !pace.jumps.believes() || Instant::now() < pace.next_forgetting {
            return;
        }
        match self.forget_old_calls(pace).await {
            Ok(true) => {}
            Ok(false) => pace.next_forgetting = Instant::now() + NOTHING_TO_FORGET,
            Err(error) => {
                tracing::error!(%error, "calls that are too old to be kept could not be forgotten");
            }
        }
    }

    /// However many calls expire together, what the operator wants and who is to be hung up does not wait for the last of them.
    async fn end_overdue(&self) -> Result<Overdues, StoreError> {
        let node = &self.recorder.node;
        let until = Instant::now() + INTERVAL;
        while Instant::now() < until {
            let overdue = node.store.claim_overdue(&node.id, MAX_OVERDUE).await?;
            if overdue.is_empty() {
                return Ok(Overdues::None);
            }
            // All of them at once: one that waits for its turn is not an orphan.
            let settle = |(claimed, why)| (self.recorder.running.settle(&claimed), claimed, why);
            let overdue: Vec<_> = overdue.into_iter().map(settle).collect();
            futures_util::stream::iter(overdue)
                .for_each_concurrent(ENDS_AT_ONCE, async |(slot, claimed, why)| {
                    within_limit(Box::pin(self.end_one(claimed, why))).await;
                    drop(slot);
                })
                .await;
        }
        Ok(Overdues::Left)
    }

    async fn end_one(&self, claimed: ClaimedCall, why: Overdue) {
        let (reason, ending) = match why {
            Overdue::HeldBack => return self.pass_on(claimed).await,
            Overdue::Cancelled => {
                let reason = EndReason::plain(Outcome::Cancelled);
                (reason, NoticeEnding::Cancelled)
            }
            Overdue::Resolved => {
                let reason = EndReason::plain(Outcome::Cancelled);
                (reason, NoticeEnding::Resolved)
            }
            Overdue::Expired if claimed.tries == 0 => {
                let reason = EndReason::plain(Outcome::Expired);
                (reason, NoticeEnding::Expired)
            }
            // It was dialled in vain. A record that says so is better than one that does not; one that cannot be read is no reason to wait.
            Overdue::Expired => {
                let store = &self.recorder.node.store;
                let history = store.history_so_far(&claimed.call.sid).await;
                let history = history.unwrap_or_default();
                let reason = EndReason::expired(history.legs_of(claimed.attempt));
                (reason, NoticeEnding::Expired)
            }
        };
        let progress = DialProgress::new(claimed);
        self.recorder.end(progress, reason.for_good(ending)).await;
    }

    async fn pass_on(&self, claimed: ClaimedCall) {
        let progress = DialProgress::new(claimed);
        self.recorder.pass(progress, &self.pool).await;
    }

    /// Nobody claims calls for which no trunk can be used: those that have had enough of that are taken here.
    async fn pass_on_stranded(&self) -> Result<(), StoreError> {
        let node = &self.recorder.node;
        if !self.pool.has_dead_trunk() {
            return Ok(());
        }
        let lanes = node.store.queued_lanes().await?.due;
        let routes: HashSet<_> = lanes.into_iter().map(|due| due.lane.route).collect();
        let dead = |route: RouteKey| {
            let time = self.pool.dead_for(&route)?;
            Some(DeadRoute { route, time })
        };
        let dead: Vec<_> = routes.into_iter().filter_map(dead).collect();
        if dead.is_empty() {
            return Ok(());
        }
        let stranded = node.store.claim_stranded(&node.id, &dead, MAX_OVERDUE);
        futures_util::stream::iter(stranded.await?)
            .for_each_concurrent(ENDS_AT_ONCE, |claimed| within_limit(self.pass_on(claimed)))
            .await;
        Ok(())
    }

    async fn hang_up_cancelled(&self) -> Result<(), StoreError> {
        let node = &self.recorder.node;
        if self.recorder.running.is_empty() {
            return Ok(());
        }
        for cancelled in node.store.cancelled_calls(&node.id).await? {
            self.recorder.running.cancel(&cancelled);
        }
        Ok(())
    }

    /// True if there may be more.
    async fn forget_old_calls(&self, pace: &mut Pace) -> Result<bool, StoreError> {
        let node = &self.recorder.node;
        let names_before = node.clock.now() - REQUESTS_KEPT;
        let after = pace.names_after.take();
        let names = node
            .store
            .forget_requests(names_before, after, MAX_FORGOTTEN);
        pace.names_after = names.await?.stopped_at;
        let more_names = pace.names_after.is_some();
        let counted = node.store.forget_counted(MAX_FORGOTTEN_COUNTS).await?;
        let Some(retention) = self.retention else {
            return Ok(more_names || counted > 0);
        };
        let before = node.clock.now() - retention;
        let after = pace.calls_after.take();
        let calls = node.store.forget_calls(before, after, MAX_FORGOTTEN);
        let ForgetStep {
            forgotten,
            stopped_at,
        } = calls.await?;
        pace.calls_after = stopped_at;
        if forgotten > 0 {
            tracing::debug!(forgotten, "calls are too old to be kept");
        }
        Ok(more_names || counted > 0 || pace.calls_after.is_some())
    }

    fn set_gauges(&self) {
        for state in [
            CallState::Claimed,
            CallState::Dialling,
            CallState::Ringing,
            CallState::Answered,
        ] {
            let count = self.recorder.running.count_in(state);
            metrics::gauge!("clarion_calls", "state" => format!("{state:?}").to_lowercase())
                .set(count as f64);
        }
        for trunk in self.pool.trunks() {
            let name = trunk.name().to_owned();
            let up = f64::from(u8::from(trunk.state() == TrunkState::Up));
            metrics::gauge!("clarion_trunk_up", "trunk" => name.clone()).set(up);
            metrics::gauge!("clarion_trunk_slowed_accounts", "trunk" => name.clone())
                .set(trunk.slowed_accounts() as f64);
            metrics::gauge!("clarion_trunk_calls", "trunk" => name).set(f64::from(trunk.calls()));
        }
        for refusal in SipRefusal::ALL {
            metrics::counter!("clarion_sip_refused_total", "what" => refusal.as_str())
                .absolute(self.pool.refusals.get(refusal));
        }
    }
}

/// What is done less often than the rest.
#[derive(Debug)]
struct Pace {
    depth: DepthGauge,
    next_forgetting: Instant,
    /// By a clock that was set to another year, everything seems to be old enough to be forgotten.
    jumps: JumpWatch,
    /// Where the last steps stopped.
    names_after: Option<CallSid>,
    calls_after: Option<CallSid>,
}

/// The length of the queue. Counting a long queue takes time, so it is done rarely enough that it takes a hundredth of it at most.
#[derive(Debug, Default)]
struct DepthGauge {
    next: Option<Instant>,
}

impl DepthGauge {
    const PAUSES: u32 = 100;

    async fn set(&mut self, node: &Node) {
        let began = Instant::now();
        if self.next.is_some_and(|next| began < next) {
            return;
        }
        if let Ok((waiting, due_for)) = node.store.queue_depth().await {
            let age = due_for.unwrap_or_default().as_secs_f64();
            metrics::gauge!("clarion_queue_calls").set(waiting as f64);
            metrics::gauge!("clarion_queue_oldest_seconds").set(age);
        }
        self.next = Some(Instant::now() + began.elapsed() * Self::PAUSES);
    }
}

/// Ends one call of many. What is not done in time is left as it is.
pub async fn within_limit(ending: impl Future<Output = ()>) {
    if tokio::time::timeout(TIME_FOR_ONE_END, ending)
        .await
        .is_err()
    {
        tracing::error!("the end of a call could not be written in time; it is tried again later");
    }
}
