//! The heartbeat of this node: it shows that it lives, checks that its calls are still its own, and has orphans recovered.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use supervisor::Watch;
use tokio::sync::watch;

use super::node::Node;
use super::recovery::Recovery;
use super::running::RunningCalls;
use super::trunk_pool::TrunkPool;
use crate::domain::call::CallSid;
use crate::domain::claim::NodeShare;
use crate::store::StoreError;

/// A few heartbeats may be lost before another node believes that this one is gone.
const BEATS_PER_LEASE: u32 = 5;
const SHORTEST_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct Heartbeat {
    pub node: Node,
    pub share: watch::Sender<NodeShare>,
    pub pool: Arc<TrunkPool>,
    pub running: Arc<RunningCalls>,
    pub recovery: Recovery,
}

impl Heartbeat {
    pub async fn run(self: Arc<Self>, watch: Watch) {
        let lease = Duration::try_from(self.node.lease).unwrap_or_default();
        let interval = (lease / BEATS_PER_LEASE).max(SHORTEST_INTERVAL);
        let mut unattended = HashSet::new();
        loop {
            watch.beat();
            if let Err(error) = self.beat(&mut unattended).await {
                tracing::error!(%error, "the heartbeat could not be written");
            }
            tokio::time::sleep(interval).await;
        }
    }

    /// Shows that this node lives, and learns its share among the nodes that do.
    pub async fn renew(&self) -> Result<(), StoreError> {
        let node = &self.node;
        let (begun, now) = (node.lease_watch.now(), node.clock.now());
        let heartbeat = node.store.heartbeat(&node.id, now, node.lease_until(now));
        let share = heartbeat.await?;
        node.lease_watch.renewed(begun);
        self.share.send_replace(share);
        self.pool.share(share);
        Ok(())
    }

    /// `unattended` are the calls that were ours at the last heartbeat with no task working at them. A call that is so twice is an
    /// orphan: it was claimed in a commit whose confirmation never came, or its task has broken down.
    async fn beat(&self, unattended: &mut HashSet<CallSid>) -> Result<(), StoreError> {
        self.renew().await?;
        let node = &self.node;
        // In this order: what runs before the look was claimed before it.
        let running = self.running.all();
        let held = node.store.held_calls(&node.id).await?;
        let held: HashSet<_> = held.into_iter().collect();
        // A call that another node has taken over is hung up here: it must not be talked to by one that may not write its end. A call
        // that has just ended looks the same, and is not harmed.
        for (sid, hang_up) in running.iter().filter(|(sid, _)| !held.contains(*sid)) {
            tracing::debug!(callSid = %sid, "not held any more");
            hang_up.cancel();
        }
        let is_unattended =
            |sid: &CallSid| !self.running.contains(sid) && !running.contains_key(sid);
        let now_unattended: HashSet<_> = held.into_iter().filter(is_unattended).collect();
        let abandoned: Vec<_> = now_unattended.intersection(unattended).cloned().collect();
        *unattended = now_unattended;
        self.recovery.recover_orphans(&abandoned).await
    }
}
