//! Takes calls from the queue and makes them: as many as there is room for, fairly between accounts, one task a call.
//!
//! The loop is woken by what happens (a call accepted, a call ended) and looks at the queue on its own only every second. It never
//! decides what is true: that is in the store, and every change there is guarded by the call's lease.

mod breaker;
mod course;
mod lost;
pub mod room;
pub mod trunks;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use phone::call::Phone;
use sound::Studio;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::course::{Course, Verdict};
use self::room::{Room, fair_shares};
use self::trunks::Trunks;
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::account::AccountSid;
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::{CalleeCaps, Claim, ClaimedCall, NodeId, Overdue};
use crate::domain::outcome::Outcome;
use crate::random;
use crate::store::{Store, StoreError};
use crate::voices::{VoiceFiles, studio};

/// How often the queue is looked at when nothing has happened.
const LOOK: Duration = Duration::from_secs(1);
/// Calls claimed in one go at most: a commit stays short, and other accounts get their turn.
const LARGEST_CLAIM: u32 = 256;
/// Calls ended in one go that were never dialled.
const MOST_OVERDUE: u32 = 500;

/// The switch that stops all dialling. What is under way goes on; what is queued waits.
pub const STOP_ALL: &str = "stop-all";

/// The switch that lets a trunk run empty.
pub fn drained_switch(trunk: &str) -> String {
    format!("drained:{trunk}")
}

/// A call that is under way here.
#[derive(Debug)]
pub struct Running {
    account: AccountSid,
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
    pub trunks: Trunks,
    studio: Studio,
    voices: VoiceFiles,
    running: Mutex<HashMap<CallSid, Running>>,
    accounts: Mutex<HashMap<AccountSid, Room>>,
    /// The operator has stopped all dialling.
    stopped: AtomicBool,
    /// Somebody has put a call into the queue, or has made room.
    pub queued: Arc<Notify>,
    /// A call has ended: something may be owed.
    ended: Arc<Notify>,
}

impl Dispatch {
    pub async fn start(
        config: Arc<Config>,
        store: Arc<dyn Store>,
        clock: Clock,
        voices: VoiceFiles,
        ended: Arc<Notify>,
    ) -> anyhow::Result<Arc<Self>> {
        let phone = Phone::start(&media(&config)?).context("the sound cannot start")?;
        let trunks = Trunks::start(&config, &phone).await?;
        Ok(Arc::new(Self {
            studio: studio::open(&config)?,
            node: NodeId::new(random::bytes()),
            running: Mutex::default(),
            accounts: Mutex::default(),
            stopped: AtomicBool::new(false),
            queued: Arc::default(),
            config,
            store,
            clock,
            phone,
            trunks,
            voices,
            ended,
        }))
    }

    /// Makes calls until it is told to stop; then those under way have a while for finishing.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        self.obey_switches().await;
        self.bury_lost().await;
        let beating = tokio::spawn(Arc::clone(&self).beat());
        let mut calls = JoinSet::new();
        let mut turn = 0;
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !*stop.borrow() {
            match self.step(turn, &mut calls).await {
                // There may be more, and room for it.
                Ok(started) if started > 0 => {
                    turn += 1;
                    continue;
                }
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "the queue could not be read"),
            }
            while calls.try_join_next().is_some() {}
            tokio::select! {
                () = self.queued.notified() => {}
                _ = look.tick() => self.look_around().await,
                _ = stop.changed() => {}
            }
        }
        self.finish(calls).await;
        beating.abort();
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
        let queued = self.store.queued_accounts().await?;
        let mut accounts = Vec::new();
        for waiting in queued.into_iter().filter(|waiting| waiting.due_at <= now) {
            let left = self.room_of(&waiting.account).await?;
            accounts.push((waiting.account, left));
        }
        let shares = fair_shares(room, accounts, turn);
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

    fn claim(&self, now: Timestamp, shares: Vec<(AccountSid, u32)>) -> Claim {
        let settings = &self.config.dispatch;
        Claim {
            node: self.node.clone(),
            now,
            lease_until: self.lease_until(now),
            shares,
            caps: CalleeCaps {
                a_minute: settings.callee_per_minute,
                an_hour: settings.callee_per_hour,
                a_day: settings.callee_per_day,
            },
        }
    }

    fn lease_until(&self, now: Timestamp) -> Timestamp {
        now + SignedDuration::from_secs(self.config.dispatch.lease_seconds.into())
    }

    fn begin(self: &Arc<Self>, claimed: ClaimedCall, calls: &mut JoinSet<()>) {
        let hang_up = CancellationToken::new();
        let (sid, account) = (claimed.call.sid.clone(), claimed.call.account.clone());
        if let Some(room) = self.accounts().get_mut(&account) {
            room.take(Instant::now());
        }
        self.running().insert(
            sid.clone(),
            Running {
                account,
                hang_up: hang_up.clone(),
                state: CallState::Claimed,
            },
        );
        let dispatch = Arc::clone(self);
        calls.spawn(async move {
            let place = Place {
                dispatch: Arc::clone(&dispatch),
                sid,
            };
            dispatch.make(claimed, hang_up).await;
            drop(place);
        });
    }

    /// Calls that may still start on this node.
    fn room_here(&self) -> u32 {
        let most = self.config.dispatch.max_calls;
        let running = u32::try_from(self.running().len()).unwrap_or(u32::MAX);
        let own = if most == 0 {
            u32::MAX
        } else {
            most.saturating_sub(running)
        };
        self.trunks.left().min(own).min(LARGEST_CLAIM)
    }

    async fn room_of(&self, account: &AccountSid) -> Result<u32, StoreError> {
        let limits = self
            .store
            .account(account)
            .await?
            .map(|account| account.limits)
            .unwrap_or_default();
        let settings = &self.config.dispatch;
        let at_once = limits.calls_at_once.unwrap_or(settings.calls_at_once);
        let a_second = limits.calls_per_second.unwrap_or(settings.calls_per_second);
        let now = Instant::now();
        let mut accounts = self.accounts();
        let room = accounts
            .entry(account.clone())
            .or_insert_with(|| Room::new(at_once, a_second, now));
        room.resize(at_once, a_second);
        Ok(room.left(now))
    }

    /// Once a second: calls that shall end without being dialled, and calls under way that shall be hung up.
    async fn look_around(self: &Arc<Self>) {
        if let Err(error) = self.end_overdue().await {
            tracing::error!(%error, "overdue calls could not be ended");
        }
        match self.store.cancelled_calls(&self.node).await {
            Ok(cancelled) => {
                for sid in cancelled {
                    if let Some(running) = self.running().get(&sid) {
                        running.hang_up.cancel();
                    }
                }
            }
            Err(error) => tracing::error!(%error, "cancelled calls could not be read"),
        }
        self.obey_switches().await;
        self.note_metrics().await;
    }

    async fn obey_switches(&self) {
        let switches = match self.store.switches().await {
            Ok(switches) => switches,
            Err(error) => {
                tracing::error!(%error, "the operator's switches could not be read");
                return;
            }
        };
        let set = |name: &str| switches.iter().any(|(known, _)| known == name);
        let stop = set(STOP_ALL);
        metrics::gauge!("clarion_dialling_stopped").set(f64::from(u8::from(stop)));
        if self.stopped.swap(stop, Ordering::Relaxed) != stop {
            tracing::warn!(stop, "the operator has switched dialling");
        }
        for line in &self.trunks.lines {
            let drained = set(&drained_switch(&line.config.name));
            if line.drained.swap(drained, Ordering::Relaxed) != drained {
                tracing::warn!(
                    trunk = line.config.name,
                    drained,
                    "the operator has switched a trunk"
                );
            }
        }
    }

    async fn end_overdue(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let until = self.lease_until(now);
        let overdue = self
            .store
            .claim_overdue(&self.node, now, until, MOST_OVERDUE)
            .await?;
        for (claimed, why) in overdue {
            let outcome = match why {
                Overdue::Expired => Outcome::Expired,
                Overdue::Cancelled => Outcome::Cancelled,
            };
            self.end(Course::new(claimed), Verdict::plain(outcome))
                .await;
        }
        Ok(())
    }

    async fn note_metrics(&self) {
        if let Ok((waiting, oldest)) = self.store.queue_depth().await {
            let age = oldest.map_or(0.0, |oldest| {
                self.clock.now().duration_since(oldest).as_secs_f64()
            });
            #[expect(clippy::cast_precision_loss, reason = "a gauge")]
            metrics::gauge!("clarion_queue_calls").set(waiting as f64);
            metrics::gauge!("clarion_queue_oldest_seconds").set(age);
        }
        for state in [
            CallState::Claimed,
            CallState::Dialling,
            CallState::Ringing,
            CallState::Answered,
        ] {
            let count = self
                .running()
                .values()
                .filter(|running| running.state == state)
                .count();
            #[expect(clippy::cast_precision_loss, reason = "a gauge")]
            metrics::gauge!("clarion_calls", "state" => format!("{state:?}").to_lowercase())
                .set(count as f64);
        }
        for line in &self.trunks.lines {
            let name = line.config.name.clone();
            let up = f64::from(u8::from(line.state() == "up"));
            metrics::gauge!("clarion_trunk_up", "trunk" => name.clone()).set(up);
            metrics::gauge!("clarion_trunk_calls", "trunk" => name).set(f64::from(line.calls()));
        }
    }

    /// Shows that this process lives, as often as it takes to be believed.
    async fn beat(self: Arc<Self>) {
        let every = Duration::from_secs(self.config.dispatch.lease_seconds.into()) / 5;
        loop {
            let now = self.clock.now();
            match self
                .store
                .heartbeat(&self.node, now, self.lease_until(now))
                .await
            {
                Ok(nodes) => self.trunks.share_among(nodes),
                Err(error) => tracing::error!(%error, "the heartbeat could not be written"),
            }
            tokio::time::sleep(every.max(Duration::from_millis(200))).await;
            self.bury_lost().await;
        }
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
            while calls.join_next().await.is_some() {}
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<CallSid, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<AccountSid, Room>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call's place among those under way, given back however its task ends.
struct Place {
    dispatch: Arc<Dispatch>,
    sid: CallSid,
}

impl Drop for Place {
    fn drop(&mut self) {
        let gone = self.dispatch.running().remove(&self.sid);
        if let Some(running) = gone
            && let Some(room) = self.dispatch.accounts().get_mut(&running.account)
        {
            room.give_back();
        }
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
