//! The heartbeat of this node: it shows that it lives, checks that its calls are still its own, and has orphans recovered.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use supervisor::Watch;

use super::clock_check::ClockCheck;
use super::node::Node;
use super::recovery::Recovery;
use super::running::RunningCalls;
use crate::domain::call::CallSid;
use crate::store::StoreError;

/// A few heartbeats may be lost before another node believes that this one is gone.
const BEATS_PER_LEASE: u32 = 5;
const SHORTEST_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct Heartbeat {
    pub node: Node,
    pub clock_check: ClockCheck,
    pub running: Arc<RunningCalls>,
    pub recovery: Recovery,
}

/// What the last heartbeat found.
#[derive(Debug, Default)]
struct LastBeat {
    /// Calls that were ours with no task working at them. A call that is so twice is an orphan: it was claimed in a commit whose confirmation
    /// never came, or its task has broken down.
    unattended: BTreeSet<CallSid>,
    clock_was_off: bool,
}

impl Heartbeat {
    pub async fn run(self: Arc<Self>, watch: Watch) {
        let lease = Duration::try_from(self.node.lease).unwrap_or_default();
        let interval = (lease / BEATS_PER_LEASE).max(SHORTEST_INTERVAL);
        let mut last = LastBeat::default();
        loop {
            watch.beat();
            if let Err(error) = self.beat(&mut last).await {
                tracing::error!(%error, "the heartbeat could not be written");
            }
            tokio::time::sleep(interval).await;
        }
    }

    async fn beat(&self, last: &mut LastBeat) -> Result<(), StoreError> {
        let node = &self.node;
        let clock_ahead = node.beat().await?;
        last.clock_was_off = self.clock_check.judge(clock_ahead, last.clock_was_off);
        // In this order: what runs before the look was claimed before it.
        let running = self.running.all();
        let held = node.store.held_calls(&node.id).await?;
        let held: BTreeSet<_> = held.into_iter().collect();
        // A call that another node has taken over is hung up here: it must not be talked to by one that may not write its end. A call
        // that has just ended looks the same, and is not harmed.
        for (sid, hang_up) in running.iter().filter(|(sid, _)| !held.contains(*sid)) {
            tracing::debug!(callSid = %sid, "not held any more");
            hang_up.cancel();
        }
        let is_unattended =
            |sid: &CallSid| !self.running.contains(sid) && !running.contains_key(sid);
        let now_unattended: BTreeSet<_> = held.into_iter().filter(is_unattended).collect();
        let abandoned = now_unattended.intersection(&last.unattended);
        let abandoned: Vec<_> = abandoned.cloned().collect();
        last.unattended = now_unattended;
        self.recovery.recover_orphans(&abandoned).await
    }
}
