//! What there is to see at this moment: calls that have not ended, callbacks that wait, nodes, trunks and disks.
//!
//! What grows with the queue is counted once for all who look, and so seldom that counting takes a twentieth of the time at most.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{Management, ManagementError};
use crate::disk_room::FreeDisk;
use crate::dispatch::STOP_ALL;
use crate::dispatch::trunk_pool::{TrunkChange, TrunkState};
use crate::domain::call_record::{CallFilter, CallLife, CallRecord};
use crate::domain::call_state::CallState;
use crate::store::{OwedCallbacks, QueueOverview, SeenNode, StoreError, WantedOwed};

/// An answer is good for at least this long.
const REMEMBERED: Duration = Duration::from_secs(1);
/// And for so many times as long as it took.
const PAUSES: u32 = 20;
/// Receivers that are told.
const RECEIVERS: u32 = 100;
/// Callbacks given up are counted to this number.
pub const GIVEN_UP: u32 = 1000;

const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Calls under way that are told.
pub const LIVE_CALLS: u32 = 50;

/// Everything that is counted.
#[derive(Debug, Clone)]
pub struct Overview {
    pub queue: QueueOverview,
    /// Calls that were accepted in the last minute.
    pub accepted: u64,
    pub callbacks: OwedCallbacks,
    pub nodes: Vec<SeenNode>,
    /// The newest calls that have not ended.
    pub live: Vec<CallRecord>,
    pub is_stopped: bool,
}

/// The last overview, for all who look.
#[derive(Debug, Default)]
pub struct OverviewMemory(Mutex<Option<(Instant, Arc<Overview>)>>);

/// A trunk as this node has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrunkUse {
    pub name: String,
    pub state: TrunkState,
    pub calls: u32,
    /// What all nodes may use of it together.
    pub channels: u32,
    pub calls_per_second: u32,
    /// Since the start of this node, the newest change first.
    pub history: Vec<TrunkChange>,
}

/// What this node knows about itself.
#[derive(Debug, Clone, Default)]
pub struct NodeUse {
    /// As `SeenNode` names it.
    pub name: String,
    pub trunks: Vec<TrunkUse>,
    /// In the last minutes: packets that have left, and those of them that were late.
    pub packets: (u64, u64),
    pub disks: Vec<FreeDisk>,
}

impl Management {
    /// As it was a moment ago, where there is a server that remembers it.
    pub async fn overview(&self) -> Result<Arc<Overview>, ManagementError> {
        let Some(server) = &self.server else {
            return Ok(Arc::new(self.count().await?));
        };
        // Whoever comes while it is counted waits for that.
        let mut memory = server.overview.0.lock().await;
        if let Some((until, known)) = &*memory
            && Instant::now() < *until
        {
            return Ok(Arc::clone(known));
        }
        let began = Instant::now();
        let counted = Arc::new(self.count().await?);
        let pause = (began.elapsed() * PAUSES).max(REMEMBERED);
        *memory = Some((Instant::now() + pause, Arc::clone(&counted)));
        Ok(counted)
    }

    /// `None` beside a server: what it knows is in its memory.
    pub async fn node_use(&self) -> Option<NodeUse> {
        let server = self.server.as_ref()?;
        let trunks = server.trunks.iter().map(|trunk| TrunkUse {
            name: trunk.name().to_owned(),
            state: trunk.state(),
            calls: trunk.calls(),
            channels: trunk.settings().channels,
            calls_per_second: trunk.settings().calls_per_second,
            history: trunk.history(),
        });
        Some(NodeUse {
            name: server.node.to_string(),
            trunks: trunks.collect(),
            packets: server.packets.sent_and_missed(),
            disks: server.disk.free().await,
        })
    }

    /// Those that are under way, and while there is room for them those that wait: however many wait, nobody who talks disappears behind them.
    async fn live_calls(&self) -> Result<Vec<CallRecord>, StoreError> {
        let newest = |life| CallFilter {
            life,
            limit: LIVE_CALLS,
            ..CallFilter::default()
        };
        let mut calls = self
            .store
            .list_calls(newest(CallLife::Running))
            .await?
            .calls;
        let left = LIVE_CALLS as usize - calls.len().min(LIVE_CALLS as usize);
        if left > 0 {
            let alive = self.store.list_calls(newest(CallLife::Alive)).await?.calls;
            let waiting = alive
                .into_iter()
                .filter(|call| call.state == CallState::Queued);
            let running: HashSet<_> = calls.iter().map(|call| call.sid.clone()).collect();
            let waiting = waiting.filter(|call| !running.contains(&call.sid));
            calls.extend(waiting.take(left));
        }
        calls.sort_unstable_by(|a, b| b.sid.cmp(&a.sid));
        Ok(calls)
    }

    async fn count(&self) -> Result<Overview, StoreError> {
        let now = self.clock.now();
        let wanted = WantedOwed {
            receivers: RECEIVERS,
            given_up_since: self.sid_at(now - DAY),
            given_up_limit: GIVEN_UP,
        };
        let switches = self.store.switches().await?;
        let minute_ago = self.sid_at(now - MINUTE);
        Ok(Overview {
            live: self.live_calls().await?,
            queue: self.store.queue_overview().await?,
            accepted: self.store.accepted_since(&minute_ago).await?,
            callbacks: self.store.owed_callbacks(wanted).await?,
            nodes: self.store.nodes().await?,
            is_stopped: switches.iter().any(|(name, _)| name == STOP_ALL),
        })
    }
}
