//! Takes calls from the queue and makes them: as many as there is room for, fairly between accounts, one task a call.
//!
//! The loop is woken by what happens (a call accepted, a call ended) and looks at the queue on its own only every second. It never
//! decides what is true: that is in the store, and every change there is guarded by the call's lease.

mod breaker;
mod call_task;
pub mod capacity;
mod customer_limits;
mod end_reason;
mod heartbeat;
mod housekeeping;
mod playback;
mod recovery;
pub mod trunk_pool;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use phone::call::Phone;
use sound::PromptRenderer;
use supervisor::Supervisor;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::capacity::fair_shares;
use self::customer_limits::CustomerLimits;
use self::trunk_pool::TrunkPool;
use crate::audio_files::{AudioFiles, prompts};
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::account::{AccountSid, AppId};
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::{CalleeCaps, Claim, ClaimedCall, NodeId, NodeShare};
use crate::domain::prompt::Prompt;
use crate::store::{Store, StoreError};

/// How often the queue is looked at when nothing has happened.
const LOOK: Duration = Duration::from_secs(1);
/// Calls claimed in one go at most: a commit stays short, and other accounts get their turn.
const LARGEST_CLAIM: u32 = 256;
/// Prompts that wait for being made ahead.
const MAX_AHEAD: usize = 256;
/// After the last calls were hung up, so long for writing down how they ended. What is not written then, the next start finds.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// The switch that stops all dialling. What is under way goes on; what is queued waits.
pub const STOP_ALL: &str = "stop-all";

/// The switch that lets a trunk run empty.
pub fn drained_switch(trunk: &str) -> String {
    format!("drained:{trunk}")
}

/// A call that is under way here.
#[derive(Debug)]
pub struct Running {
    /// Of the lease: the same call may be taken again while an earlier task of it has not noticed its end.
    fence: i64,
    hang_up: CancellationToken,
    pub state: CallState,
}

#[derive(Debug)]
pub struct Dispatch {
    config: Arc<Config>,
    store: Arc<dyn Store>,
    clock: Clock,
    node: NodeId,
    phone: Phone,
    pub trunks: TrunkPool,
    renderer: PromptRenderer,
    audio_files: AudioFiles,
    running: Mutex<HashMap<CallSid, Running>>,
    limits: Mutex<CustomerLimits>,
    share: Mutex<NodeShare>,
    /// Calls that were claimed and have no channel yet.
    pending: AtomicU32,
    /// The operator has stopped all dialling.
    stopped: AtomicBool,
    /// Somebody has put a call into the queue, or has made room.
    pub queued: Arc<Notify>,
    /// Prompts of calls that were just accepted, to be made while the calls wait.
    pub ahead: mpsc::Sender<Prompt>,
    /// A call has ended: something may be owed.
    ended: Arc<Notify>,
}

impl Dispatch {
    pub async fn start(
        config: Arc<Config>,
        store: Arc<dyn Store>,
        clock: Clock,
        node: NodeId,
        audio_files: AudioFiles,
        ended: Arc<Notify>,
    ) -> anyhow::Result<Arc<Self>> {
        let supervisor = Supervisor::new();
        let phone =
            Phone::start(&supervisor, &media(&config)?).context("the sound cannot start")?;
        let trunks = TrunkPool::start(&supervisor, &config, &phone).await?;
        let (ahead, accepted) = mpsc::channel(MAX_AHEAD);
        let dispatch = Arc::new(Self {
            ahead,
            renderer: prompts::open(&supervisor, &config)?,
            running: Mutex::default(),
            limits: Mutex::default(),
            share: Mutex::new(NodeShare::ALONE),
            pending: AtomicU32::new(0),
            stopped: AtomicBool::new(false),
            queued: Arc::default(),
            config,
            store,
            clock,
            node,
            phone,
            trunks,
            audio_files,
            ended,
        });
        tokio::spawn(prepare(Arc::downgrade(&dispatch), accepted));
        Ok(dispatch)
    }

    /// Makes calls until it is told to stop; then those under way have a while for finishing.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        self.obey_switches().await;
        let beating = tokio::spawn(Arc::clone(&self).keep_beating());
        let mut calls = JoinSet::new();
        let mut turn = 0;
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !*stop.borrow() {
            // Where some were started, there may be more, and room for them.
            let more = match self.step(turn, &mut calls).await {
                Ok(started) => started > 0,
                Err(error) => {
                    tracing::error!(%error, "the queue could not be read");
                    false
                }
            };
            turn += usize::from(more);
            while calls.try_join_next().is_some() {}
            tokio::select! {
                biased;
                _ = stop.changed() => {}
                // However much there is to start, the operator is heard and nothing overstays its time.
                _ = look.tick() => self.run_housekeeping().await,
                () = std::future::ready(()), if more => {}
                () = self.queued.notified() => {}
            }
        }
        self.finish(calls).await;
        beating.abort();
        if let Err(error) = self.store.leave(&self.node).await {
            tracing::warn!(%error, "other nodes could not be told that this one stops");
        }
        self.trunks.stop();
    }

    /// Starts what can be started now; how many.
    async fn step(
        self: &Arc<Self>,
        turn: usize,
        calls: &mut JoinSet<()>,
    ) -> Result<usize, StoreError> {
        let now = self.clock.now();
        let room = self.room_here();
        if room == 0 || self.stopped.load(Ordering::Relaxed) {
            return Ok(0);
        }
        let mut queued = self.store.queued_apps().await?;
        queued.retain(|waiting| waiting.due_at <= now);
        let shares = fair_shares(room, self.waiting(queued).await?, turn);
        if shares.is_empty() {
            return Ok(0);
        }
        let claimed = self.store.claim_calls(self.claim(now, shares)).await?;
        let started = claimed.len();
        for call in claimed {
            self.begin(call, calls);
        }
        Ok(started)
    }

    fn claim(&self, now: Timestamp, shares: Vec<(AppId, u32)>) -> Claim {
        let settings = &self.config.dispatch;
        Claim {
            node: self.node.clone(),
            now,
            lease_until: self.lease_until(now),
            shares,
            caps: CalleeCaps {
                per_minute: settings.callee_per_minute,
                per_hour: settings.callee_per_hour,
                per_day: settings.callee_per_day,
            },
        }
    }

    fn lease_until(&self, now: Timestamp) -> Timestamp {
        now + SignedDuration::from_secs(self.config.dispatch.lease_seconds.into())
    }

    fn begin(self: &Arc<Self>, claimed: ClaimedCall, calls: &mut JoinSet<()>) {
        let hang_up = CancellationToken::new();
        let place = Place::take(self, &claimed);
        self.running().insert(
            claimed.call.sid.clone(),
            Running {
                fence: claimed.lease.fence,
                hang_up: hang_up.clone(),
                state: CallState::Claimed,
            },
        );
        let dispatch = Arc::clone(self);
        let pending = PendingChannel::new(self);
        calls.spawn(async move {
            dispatch.make(claimed, pending, hang_up).await;
            drop(place);
        });
    }

    /// Calls that may still start on this node. Those that are on their way to a channel are counted as if they had it: whoever is claimed in vain
    /// loses its place in the queue.
    fn room_here(&self) -> u32 {
        let limit = self.config.dispatch.max_calls;
        let running = u32::try_from(self.running().len()).unwrap_or(u32::MAX);
        let own = if limit == 0 {
            u32::MAX
        } else {
            limit.saturating_sub(running)
        };
        let pending = self.pending.load(Ordering::Relaxed);
        let left = self.trunks.left().saturating_sub(pending);
        left.min(own).min(LARGEST_CLAIM)
    }

    /// Lets calls under way finish; after a while they are hung up.
    async fn finish(&self, mut calls: JoinSet<()>) {
        let limit = Duration::from_secs(self.config.dispatch.stop_seconds.into());
        let left = self.running().len();
        if left > 0 {
            tracing::info!(calls = left, "waiting for calls under way to finish");
        }
        let all = async { while calls.join_next().await.is_some() {} };
        if tokio::time::timeout(limit, all).await.is_err() {
            for running in self.running().values() {
                running.hang_up.cancel();
            }
            let all = async { while calls.join_next().await.is_some() {} };
            if tokio::time::timeout(LAST_WORDS, all).await.is_err() {
                let left = calls.len();
                tracing::error!(
                    left,
                    "the end of some calls could not be written; the next start does that"
                );
                calls.shutdown().await;
            }
        }
    }

    fn share(&self) -> NodeShare {
        *lock(&self.share)
    }

    fn set_share(&self, share: NodeShare) {
        *lock(&self.share) = share;
        self.trunks.share(share);
    }

    fn running(&self) -> MutexGuard<'_, HashMap<CallSid, Running>> {
        lock(&self.running)
    }

    fn limits(&self) -> MutexGuard<'_, CustomerLimits> {
        lock(&self.limits)
    }
}

/// One at a time: the prompt renderer's other workers are for calls whose turn it is. What is not made here is made then.
async fn prepare(dispatch: Weak<Dispatch>, mut accepted: mpsc::Receiver<Prompt>) {
    while let Some(prompt) = accepted.recv().await {
        let Some(dispatch) = dispatch.upgrade() else {
            return;
        };
        if let Err(error) =
            prompts::make_ready(&dispatch.renderer, &dispatch.audio_files, &prompt).await
        {
            tracing::debug!(%error, "a prompt could not be made ahead");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that has no channel yet, from its claim until it has one or is over.
struct PendingChannel(Arc<Dispatch>);

impl PendingChannel {
    fn new(dispatch: &Arc<Dispatch>) -> Self {
        dispatch.pending.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(dispatch))
    }
}

impl Drop for PendingChannel {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call's place among those under way, given back however its task ends.
struct Place {
    dispatch: Arc<Dispatch>,
    sid: CallSid,
    fence: i64,
    account: AccountSid,
    app: AppId,
}

impl Place {
    fn take(dispatch: &Arc<Dispatch>, claimed: &ClaimedCall) -> Self {
        let call = &claimed.call;
        let place = Self {
            dispatch: Arc::clone(dispatch),
            sid: call.sid.clone(),
            fence: claimed.lease.fence,
            account: call.account.clone(),
            app: call.app.clone(),
        };
        dispatch
            .limits()
            .take(&place.account, &place.app, Instant::now());
        place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = self.dispatch.running();
        if running
            .get(&self.sid)
            .is_some_and(|call| call.fence == self.fence)
        {
            running.remove(&self.sid);
        }
        drop(running);
        self.dispatch.limits().give_back(&self.account, &self.app);
        self.dispatch.queued.notify_one();
    }
}

fn media(config: &Config) -> anyhow::Result<phone::call::MediaConfig> {
    let address = |text: &str, what: &str| {
        text.parse::<std::net::IpAddr>()
            .with_context(|| format!("media.{what}: `{text}` is not an address"))
    };
    let any = std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);
    let bind = match config.media.bind.as_str() {
        "" => any,
        text => address(text, "bind")?,
    };
    let advertised = match config.media.advertised.as_str() {
        "" if bind.is_unspecified() => Some(phone::signalling::own_address(bind)),
        "" => None,
        text => Some(address(text, "advertised")?),
    };
    Ok(phone::call::MediaConfig {
        advertised,
        dscp: Some(config.media.dscp).filter(|mark| *mark > 0),
        ..phone::call::MediaConfig::new(bind, config.rtp_ports()?)
    })
}
