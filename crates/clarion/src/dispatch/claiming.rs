//! Claims calls from the queue: as many as this node has capacity for, shared out fairly between accounts.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use super::capacity::{TrunksLeft, fair_shares};
use super::customers::{CustomerLimits, SPENT};
use super::node::Node;
use super::running::RunningCalls;
use super::switches::Switches;
use super::trunk_pool::TrunkPool;
use crate::claim_holds::ClaimHolds;
use crate::domain::claim::{CalleeCaps, Claim, ClaimedCall};
use crate::domain::route::RouteKey;
use crate::store::StoreError;

/// Calls claimed in one go at most: a commit stays short, and other accounts get their turn.
const LARGEST_CLAIM: u32 = 256;

/// After a claim that has got less than it asked for: other nodes may have held calls that they left in the queue.
const MET_SOON: Duration = Duration::from_millis(40);

#[derive(Debug)]
pub struct Claimer {
    pub node: Node,
    pub caps: CalleeCaps,
    pub capacity: NodeCapacity,
    pub customers: Arc<CustomerLimits>,
    pub switches: Arc<Switches>,
    pub holds: ClaimHolds,
}

/// The calls that may start now, and how long it takes until it is worth while to look again.
#[derive(Debug, Default)]
pub struct ClaimedCalls {
    pub calls: Vec<ClaimedCall>,
    pub next_look: Option<Duration>,
    pub rest: QueueRest,
}

/// What a claim has left in the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QueueRest {
    /// Nothing is due.
    Nothing,
    /// Whatever may start has started, or nobody looked.
    #[default]
    Waits,
    /// No trunk can carry anything: calls that are queued meanwhile cannot start either.
    TrunksFull,
    /// As much was claimed as was asked for: more may start at once.
    MayStart,
}

impl Claimer {
    /// Claims what may start now. Who comes first in one turn comes last in the next.
    pub async fn claim(&self, turn: usize) -> Result<ClaimedCalls, StoreError> {
        let free = self.capacity.left();
        // What is claimed while no lease is certain cannot be dialled.
        let has_lease = self.node.lease_watch.current().is_some();
        if free == 0 || !has_lease || self.switches.is_stopped() || self.holds.is_held() {
            return Ok(ClaimedCalls::default());
        }
        let queued = self.node.store.queued_lanes().await?;
        let next_due = queued.next_due.map(SignedDuration::unsigned_abs);
        let waiting = self.customers.waiting(queued.due).await?;
        let (lanes, trunks) = (waiting.len(), self.capacity.trunks_left());
        let full: Vec<_> = waiting
            .iter()
            .filter(|waiting| !trunks.is_free(&waiting.account, &waiting.lane.route))
            .map(|waiting| (waiting.account.clone(), waiting.lane.route.clone()))
            .collect();
        // More of a trunk is of no use to an account whose calls it takes one by one.
        let routes = full.iter().map(|(_, route)| route);
        let wanted = routes.filter(|route| trunks.is_full(route));
        self.pool().want_more(wanted.flat_map(RouteKey::trunks));
        let all_full = trunks.are_all_full();
        let shares = fair_shares(free, trunks, waiting, turn);
        if shares.is_empty() {
            let starts = full.iter();
            let starts =
                starts.filter_map(|(account, route)| self.pool().next_start(account, route));
            return Ok(ClaimedCalls {
                calls: Vec::new(),
                next_look: next_due.into_iter().chain(starts).min(),
                rest: match lanes {
                    0 => QueueRest::Nothing,
                    _ if all_full => QueueRest::TrunksFull,
                    _ => QueueRest::Waits,
                },
            });
        }
        let claim = Claim {
            node: self.node.id.clone(),
            limits: self.customers.limits(&shares),
            shares: shares.clone(),
            caps: self.caps,
        };
        let calls = self.node.store.claim_calls(claim).await?;
        self.customers.note_claimed(&shares, &calls);
        let asked: u32 = shares.iter().map(|share| share.calls).sum();
        let rest = match calls.len() {
            0 => QueueRest::Waits,
            claimed if shares.len() < lanes || claimed == asked as usize => QueueRest::MayStart,
            // What was due is claimed, or waits for its callee. Should more be due than one claim has looked at, it is met soon.
            _ => QueueRest::Nothing,
        };
        let pause = match rest {
            QueueRest::Nothing => MET_SOON,
            _ => SPENT,
        };
        Ok(ClaimedCalls {
            calls,
            next_look: Some(next_due.unwrap_or(pause).min(pause)),
            rest,
        })
    }

    fn pool(&self) -> &TrunkPool {
        &self.capacity.pool
    }
}

/// How many calls this node can still start.
#[derive(Debug)]
pub struct NodeCapacity {
    /// `None`: as many as the trunks carry.
    limit: Option<u32>,
    running: Arc<RunningCalls>,
    pool: Arc<TrunkPool>,
}

impl NodeCapacity {
    pub fn new(limit: Option<u32>, running: Arc<RunningCalls>, pool: Arc<TrunkPool>) -> Self {
        Self {
            limit,
            running,
            pool,
        }
    }

    fn left(&self) -> u32 {
        let own = self
            .limit
            .map_or(u32::MAX, |limit| limit.saturating_sub(self.running.count()));
        own.min(LARGEST_CLAIM)
    }

    fn trunks_left(&self) -> TrunksLeft {
        TrunksLeft::new(self.pool.left())
    }
}
