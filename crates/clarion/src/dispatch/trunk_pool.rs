//! The trunks of this server, and which of them a call gets.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Zoned};
use phone::signalling::RefusalCounts;
use phone::signalling::Transport;
use phone::trunk::Health;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::breaker::{Breaker, Evidence, SendLeave};
use super::capacity::TrunkLeft;
use super::lock;
use super::node::HeldLease;
use super::recent_packets::RecentPackets;
use super::trunk_capacity::GrantedCapacity;
use super::trunk_line::TrunkLine;
use crate::config::TrunkSettings;
use crate::domain::account::AccountSid;
use crate::domain::response_policy::ResponsePolicy;
use crate::domain::route::{self, CallEnds, RouteKey, TrunkRoute};
use crate::domain::trunk_grants::{GrantRequest, TrunkCapacity, TrunkGrant};

/// One trunk with what is left of its capacity.
#[derive(Debug)]
pub struct PooledTrunk {
    settings: TrunkSettings,
    pub line: Arc<dyn TrunkLine>,
    capacity: Mutex<GrantedCapacity>,
    /// Notified when this node's part of a trunk should be looked at anew.
    share_changed: Arc<Notify>,
    breaker: Mutex<Breaker>,
    /// The operator lets it run empty.
    drained: AtomicBool,
    /// It is outside of its hours.
    closed: AtomicBool,
    /// Since when it has not been fit for calls, as far as that was looked at.
    dead_since: Mutex<Option<Instant>>,
    /// How it has fared since the start of the process, the newest last.
    history: Mutex<VecDeque<TrunkChange>>,
}

/// A trunk is in this state since then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrunkChange {
    pub at: Timestamp,
    pub state: TrunkState,
}

/// Changes of a trunk that are kept.
const REMEMBERED_CHANGES: usize = 50;

/// A channel of a trunk, given back when it is dropped.
#[derive(Debug)]
pub struct Channel {
    pub trunk: Arc<PooledTrunk>,
    /// It was given for seeing whether the trunk works again.
    trial: Option<u64>,
    was_started: bool,
}

impl Channel {
    /// Waits for the turn of this call among the starts of the trunk.
    pub async fn start(&mut self) {
        let start = lock(&self.trunk.capacity).start(Instant::now());
        self.was_started = true;
        // A sleep, of no time too, lasts until the next millisecond.
        if let Some(start) = start {
            tokio::time::sleep_until(start).await;
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if lock(&self.trunk.capacity).give_back(self.was_started) {
            self.trunk.share_changed.notify_one();
        }
        if let Some(trial) = self.trial {
            lock(&self.trunk.breaker).trial_over(trial);
        }
    }
}

impl PooledTrunk {
    pub fn name(&self) -> &str {
        self.settings.name()
    }

    pub fn settings(&self) -> &TrunkSettings {
        &self.settings
    }

    pub fn transport(&self) -> Transport {
        self.settings.transport()
    }

    /// True if that is a change.
    pub fn set_drained(&self, drained: bool) -> bool {
        self.drained.swap(drained, Ordering::Relaxed) != drained
    }

    /// Opens and closes by the hours that it has.
    fn keep_hours(&self, now: &Zoned) {
        let Some(hours) = &self.settings.route.hours else {
            return;
        };
        let closed = !hours.is_open(now);
        if self.closed.swap(closed, Ordering::Relaxed) != closed {
            tracing::info!(trunk = self.name(), closed, "a trunk keeps its hours");
        }
    }

    /// It is left alone, whatever its health.
    fn rests(&self) -> bool {
        self.drained.load(Ordering::Relaxed) || self.closed.load(Ordering::Relaxed)
    }

    /// A channel, if one is free and the trunk is worth a try.
    fn channel(self: &Arc<Self>, account: &AccountSid, now: Instant) -> Option<Channel> {
        if !self.may_be_tried_for(account, now) || !lock(&self.capacity).take(now) {
            return None;
        }
        let leave = lock(&self.breaker).ask(account, now);
        let channel = Channel {
            trunk: Arc::clone(self),
            trial: match leave {
                SendLeave::Trial(number) => Some(number),
                SendLeave::Free | SendLeave::Denied => None,
            },
            was_started: false,
        };
        (leave != SendLeave::Denied).then_some(channel)
    }

    /// How many calls could start now.
    fn left(&self, now: Instant) -> TrunkLeft {
        if !self.may_be_tried(now) {
            return TrunkLeft::of_all(0);
        }
        let left = lock(&self.capacity).left(now);
        let breaker = lock(&self.breaker);
        let slowed = breaker.slowed(now);
        // One tries, and what was claimed beside it would go back.
        TrunkLeft {
            calls: left.min(if breaker.is_tripped() { 1 } else { u32::MAX }),
            slowed: slowed
                .map(|(account, may_send)| (account.clone(), u32::from(may_send)))
                .collect(),
        }
    }

    /// The operator lets it carry calls at all; outside of its hours it does so later.
    fn is_in_service(&self) -> bool {
        !self.drained.load(Ordering::Relaxed) && self.settings.channels > 0
    }

    fn may_be_tried(&self, now: Instant) -> bool {
        self.is_usable() && lock(&self.breaker).would_allow_some(now)
    }

    fn may_be_tried_for(&self, account: &AccountSid, now: Instant) -> bool {
        self.is_usable() && lock(&self.breaker).would_allow(account, now)
    }

    /// It can be used, and is not just tried to see whether it works again.
    fn is_fit(&self) -> bool {
        self.is_usable() && !lock(&self.breaker).is_tripped()
    }

    fn keep_dead_time(&self, now: Instant) {
        let mut since = lock(&self.dead_since);
        *since = match *since {
            _ if self.is_fit() => None,
            None => Some(now),
            known => known,
        };
    }

    fn dead_for(&self, now: Instant) -> Option<Duration> {
        let since = *lock(&self.dead_since);
        since.map(|since| now.saturating_duration_since(since))
    }

    fn is_usable(&self) -> bool {
        !self.rests() && self.line.health().usable()
    }

    pub fn record(&self, evidence: Evidence<'_>) {
        lock(&self.breaker).record(evidence, Instant::now());
    }

    /// It has answered when it was last asked whether it is there.
    pub fn answers_options(&self) -> bool {
        self.line.answers_options()
    }

    /// Accounts whose calls it gets one by one, because it refuses their numbers.
    pub fn slowed_accounts(&self) -> usize {
        lock(&self.breaker).slowed(Instant::now()).count()
    }

    /// What becomes of calls that it refuses.
    pub fn policy(&self) -> &ResponsePolicy {
        &self.settings.policy
    }

    /// The numbers that it carries, where it may lead a call to another one.
    pub fn redirecting_route(&self) -> Option<&TrunkRoute> {
        let settings = &self.settings;
        settings.sip.follow_redirects.then_some(&settings.route)
    }

    /// A called number as this trunk wants it.
    pub fn number(&self, digits: &str) -> String {
        self.settings.route.called(digits)
    }

    /// The calling number as this trunk wants it.
    pub fn caller(&self, digits: Option<&str>) -> String {
        self.settings.route.calling(digits)
    }

    /// The most calls that it carries at once, over all nodes.
    pub fn channels(&self) -> u32 {
        self.settings.channels
    }

    pub fn calls(&self) -> u32 {
        lock(&self.capacity).in_use()
    }

    /// Keeps in mind how it is, if that has changed.
    fn remember(&self, now: Timestamp) {
        let (state, mut history) = (self.state(), lock(&self.history));
        if history.back().is_some_and(|last| last.state == state) {
            return;
        }
        if history.len() == REMEMBERED_CHANGES {
            history.pop_front();
        }
        history.push_back(TrunkChange { at: now, state });
    }

    /// The newest change first.
    pub fn history(&self) -> Vec<TrunkChange> {
        lock(&self.history).iter().rev().cloned().collect()
    }

    /// For people; what is said first weighs most.
    pub fn state(&self) -> TrunkState {
        if self.drained.load(Ordering::Relaxed) {
            return TrunkState::Drained;
        }
        if self.closed.load(Ordering::Relaxed) {
            return TrunkState::OutsideItsHours;
        }
        if !lock(&self.breaker).would_allow_some(Instant::now()) {
            return TrunkState::Failing;
        }
        match self.line.health() {
            Health::Unknown | Health::Up => TrunkState::Up,
            Health::Down { why } => TrunkState::Down { why },
        }
    }
}

/// Whether a trunk carries calls, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrunkState {
    Up,
    /// The operator lets it run empty.
    Drained,
    OutsideItsHours,
    /// Nearly all its calls fail.
    Failing,
    /// It does not answer, or does not know us.
    Down {
        why: String,
    },
}

#[derive(Debug)]
pub struct TrunkPool {
    trunks: Vec<Arc<PooledTrunk>>,
    pub share_changed: Arc<Notify>,
    /// How well the packets of all calls leave.
    pub packets: Arc<RecentPackets>,
    /// What strangers wanted of our SIP ports, and where trunks wanted to lead us.
    pub refusals: Arc<RefusalCounts>,
}

/// Why no channel was to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoChannel {
    /// No trunk carries the number.
    NoRoute,
    /// Those that do are full: soon one will be free.
    Full,
    /// Those that do are down or failing.
    Down,
    /// Those that do have been tried.
    Tried,
}

impl TrunkPool {
    pub fn over(lines: impl IntoIterator<Item = (TrunkSettings, Arc<dyn TrunkLine>)>) -> Self {
        let share_changed = Arc::new(Notify::new());
        let trunks = lines.into_iter().map(|(settings, line)| {
            let whole = TrunkCapacity {
                channels: settings.channels,
                per_second: settings.calls_per_second,
            };
            Arc::new(PooledTrunk {
                capacity: Mutex::new(GrantedCapacity::new(whole, Instant::now())),
                share_changed: Arc::clone(&share_changed),
                breaker: Mutex::new(Breaker::new(settings.health)),
                // Until somebody looks at the clock.
                closed: AtomicBool::new(settings.route.hours.is_some()),
                settings,
                line,
                drained: AtomicBool::new(false),
                dead_since: Mutex::default(),
                history: Mutex::default(),
            })
        });
        Self {
            trunks: trunks.collect(),
            share_changed,
            packets: Arc::default(),
            refusals: Arc::default(),
        }
    }

    pub fn trunks(&self) -> &[Arc<PooledTrunk>] {
        &self.trunks
    }

    pub fn named(&self, name: &str) -> Option<&Arc<PooledTrunk>> {
        self.trunks.iter().find(|trunk| trunk.name() == name)
    }

    /// How many calls could start now over each trunk.
    pub fn left(&self) -> impl Iterator<Item = (String, TrunkLeft)> {
        let now = Instant::now();
        let trunks = self.trunks.iter();
        trunks.map(move |trunk| (trunk.name().to_owned(), trunk.left(now)))
    }

    /// What this node asks for of each trunk.
    pub fn grant_requests(&self) -> Vec<GrantRequest> {
        let requests = self.trunks.iter().map(|trunk| {
            let mut capacity = lock(&trunk.capacity);
            capacity.request(trunk.name())
        });
        requests.collect()
    }

    /// What this node may use from now on, for as long as the lease holds that held when it asked.
    pub fn grant(&self, grants: &[(String, TrunkGrant)], lease: &HeldLease) {
        for (name, grant) in grants {
            if let Some(trunk) = self.named(name) {
                lock(&trunk.capacity).grant(*grant, lease.clone());
            }
        }
    }

    /// As if this node were alone: a bug, where it is not.
    pub(super) fn grant_whole(&self, lease: &HeldLease) {
        for trunk in &self.trunks {
            lock(&trunk.capacity).grant_whole(lease.clone());
        }
    }

    /// Calls are due for these trunks, and nothing is left on any of them.
    pub fn want_more<'a>(&self, trunks: impl IntoIterator<Item = &'a str>) {
        for trunk in trunks.into_iter().filter_map(|name| self.named(name)) {
            if trunk.is_usable() && lock(&trunk.capacity).want_more() {
                self.share_changed.notify_one();
            }
        }
    }

    /// How long it takes until a call of this account may start on a trunk of this route that has a channel for it.
    pub fn next_start(&self, account: &AccountSid, route: &RouteKey) -> Option<Duration> {
        let now = Instant::now();
        let trunks = route.trunks().filter_map(|name| self.named(name));
        trunks
            .filter(|trunk| trunk.may_be_tried_for(account, now))
            .filter_map(|trunk| lock(&trunk.capacity).next_start(now))
            .min()
    }

    /// Opens and closes trunks by the clock, and remembers how they fare.
    pub fn look(&self, now: &Zoned) {
        for trunk in &self.trunks {
            trunk.keep_hours(now);
            trunk.keep_dead_time(Instant::now());
            trunk.remember(now.timestamp());
        }
    }

    pub fn has_dead_trunk(&self) -> bool {
        let now = Instant::now();
        let mut trunks = self.trunks.iter();
        trunks.any(|trunk| trunk.dead_for(now).is_some())
    }

    /// For how long no trunk of a route has been fit for calls; nothing where one is, or none is known.
    pub fn dead_for(&self, route: &RouteKey) -> Option<SignedDuration> {
        let now = Instant::now();
        let trunks = route.trunks().filter_map(|name| self.named(name));
        let times: Option<Vec<_>> = trunks.map(|trunk| trunk.dead_for(now)).collect();
        SignedDuration::try_from(times?.into_iter().min()?).ok()
    }

    /// Whether a trunk that may be tried now carries calls between these numbers.
    pub fn reaches(&self, ends: CallEnds<'_>) -> bool {
        let now = Instant::now();
        let mut trunks = self.trunks.iter();
        trunks.any(|trunk| trunk.may_be_tried(now) && trunk.settings.route.carries(ends))
    }

    /// The next channel for a call of an account, on a trunk that was not tried yet; on this one alone, where there is one.
    pub fn channel(
        &self,
        account: &AccountSid,
        ends: CallEnds<'_>,
        only: Option<&str>,
        tried: &[String],
        random: u32,
    ) -> Result<Channel, NoChannel> {
        let routes = self.trunks.iter().map(|trunk| &trunk.settings.route);
        let mut order = route::order(routes, ends, |below| random % below.max(1));
        order.retain(|place| only.is_none_or(|only| self.trunks[*place].name() == only));
        if order.is_empty() {
            return Err(NoChannel::NoRoute);
        }
        let now = Instant::now();
        let (mut full, mut untried) = (false, false);
        for trunk in order.into_iter().map(|place| &self.trunks[place]) {
            if tried.iter().any(|name| name == trunk.name()) {
                continue;
            }
            untried |= trunk.is_in_service();
            match trunk.channel(account, now) {
                Some(channel) => return Ok(channel),
                None => full |= trunk.may_be_tried_for(account, now),
            }
        }
        Err(match (untried, full) {
            (false, _) => NoChannel::Tried,
            (true, true) => NoChannel::Full,
            (true, false) => NoChannel::Down,
        })
    }

    pub fn stop(&self) {
        for trunk in &self.trunks {
            trunk.line.stop();
        }
    }
}

#[cfg(test)]
mod tests;
