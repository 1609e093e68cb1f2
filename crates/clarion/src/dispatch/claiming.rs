//! Claims calls from the queue: as many as this node has capacity for, shared out fairly between accounts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::capacity::fair_shares;
use super::customers::CustomerCapacity;
use super::node::Node;
use super::running::RunningCalls;
use super::switches::Switches;
use super::trunk_pool::TrunkPool;
use crate::domain::claim::{CalleeCaps, Claim, ClaimedCall};
use crate::store::StoreError;

/// Calls claimed in one go at most: a commit stays short, and other accounts get their turn.
const LARGEST_CLAIM: u32 = 256;

#[derive(Debug)]
pub struct Claimer {
    pub node: Node,
    pub caps: CalleeCaps,
    pub capacity: NodeCapacity,
    pub customers: Arc<CustomerCapacity>,
    pub switches: Arc<Switches>,
}

impl Claimer {
    /// The calls that may start now. Who comes first in one turn comes last in the next.
    pub async fn claim(&self, turn: usize) -> Result<Vec<ClaimedCall>, StoreError> {
        let free = self.capacity.left();
        if free == 0 || self.switches.is_stopped() {
            return Ok(Vec::new());
        }
        let now = self.node.clock.now();
        let mut queued = self.node.store.queued_apps().await?;
        queued.retain(|waiting| waiting.due_at <= now);
        let shares = fair_shares(free, self.customers.waiting(queued).await?, turn);
        if shares.is_empty() {
            return Ok(Vec::new());
        }
        let claim = Claim {
            node: self.node.id.clone(),
            now,
            lease_until: self.node.lease_until(now),
            shares,
            caps: self.caps,
        };
        self.node.store.claim_calls(claim).await
    }
}

/// How many calls this node can still start.
#[derive(Debug)]
pub struct NodeCapacity {
    /// `None`: as many as the trunks carry.
    limit: Option<u32>,
    running: Arc<RunningCalls>,
    pool: Arc<TrunkPool>,
    /// Calls that were claimed and have no channel yet.
    pending: Arc<AtomicU32>,
}

impl NodeCapacity {
    pub fn new(limit: Option<u32>, running: Arc<RunningCalls>, pool: Arc<TrunkPool>) -> Self {
        Self {
            limit,
            running,
            pool,
            pending: Arc::default(),
        }
    }

    /// A call on its way to a channel counts as if it had one: a call that is claimed in vain loses its place in the queue.
    fn left(&self) -> u32 {
        let own = self
            .limit
            .map_or(u32::MAX, |limit| limit.saturating_sub(self.running.count()));
        let pending = self.pending.load(Ordering::Relaxed);
        let channels = self.pool.left().saturating_sub(pending);
        channels.min(own).min(LARGEST_CLAIM)
    }

    pub fn pending_channel(&self) -> PendingChannel {
        self.pending.fetch_add(1, Ordering::Relaxed);
        PendingChannel(Arc::clone(&self.pending))
    }
}

/// A call without a channel, from its claim until it has one or is over.
#[derive(Debug)]
pub struct PendingChannel(Arc<AtomicU32>);

impl Drop for PendingChannel {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
