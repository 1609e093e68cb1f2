//! The heartbeat of this node: it shows that it lives, checks that its calls are still its own, and has orphans recovered.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use supervisor::Watch;
use tokio::task::{JoinError, JoinSet};

use super::clock_check::ClockCheck;
use super::node::Node;
use super::recovery::{Recovery, TakenOver};
use super::running::RunningCalls;
use crate::domain::call::CallSid;
use crate::store::StoreError;

/// A few heartbeats may be lost before another node believes that this one is gone.
const BEATS_PER_LEASE: u32 = 5;
const SHORTEST_INTERVAL: Duration = Duration::from_millis(200);
/// Whatever the lease, calls of a lost node are taken over within two seconds after it has run out.
const LONGEST_LOOK_INTERVAL: Duration = Duration::from_millis(1500);

#[derive(Debug)]
pub struct Heartbeat {
    pub node: Node,
    pub clock_check: ClockCheck,
    pub running: Arc<RunningCalls>,
    pub recovery: Recovery,
}

impl Heartbeat {
    /// The leases are renewed in time, however long it takes to look after the calls.
    pub async fn run(self: Arc<Self>, watch: Watch) {
        let lease = Duration::try_from(self.node.lease).unwrap_or_default();
        let interval = (lease / BEATS_PER_LEASE).max(SHORTEST_INTERVAL);
        tokio::join!(
            self.renew_leases(interval, &watch),
            self.look_after_calls(interval.min(LONGEST_LOOK_INTERVAL))
        );
    }

    async fn renew_leases(&self, interval: Duration, watch: &Watch) {
        let mut clock_was_off = false;
        loop {
            watch.heartbeat();
            match self.node.heartbeat().await {
                Ok(ahead) => clock_was_off = self.clock_check.judge(ahead, clock_was_off),
                Err(error) => tracing::error!(%error, "the heartbeat could not be written"),
            }
            tokio::time::sleep(interval).await;
        }
    }

    /// Recovering calls takes its time, where a trunk does not answer: meanwhile others may be orphaned.
    async fn look_after_calls(&self, interval: Duration) {
        let mut unattended = BTreeSet::new();
        let mut recoveries = JoinSet::new();
        loop {
            tokio::time::sleep(interval).await;
            while let Some(recovered) = recoveries.try_join_next() {
                note_panic(recovered);
            }
            match self.find_orphans(&mut unattended).await {
                Ok(taken) if taken.is_empty() => {}
                Ok(taken) => {
                    let recovery = self.recovery.clone();
                    recoveries.spawn(async move { recovery.recover(taken).await });
                }
                Err(error) => {
                    tracing::error!(%error, "the calls of this node could not be looked after");
                }
            }
        }
    }

    /// `unattended` are calls that were ours with no task working at them. A call that is so twice is an orphan: it was claimed in a commit
    /// whose confirmation never came, or its task has broken down.
    async fn find_orphans(
        &self,
        unattended: &mut BTreeSet<CallSid>,
    ) -> Result<Vec<TakenOver>, StoreError> {
        let node = &self.node;
        // In this order: what is worked at before the look was claimed before it.
        let (running, settling) = (self.running.all(), self.running.all_settling());
        let held = node.store.held_calls(&node.id).await?;
        let held: BTreeSet<_> = held.into_iter().collect();
        // A call that another node has taken over is hung up here: it must not be talked to by one that may not write its end. A call
        // that has just ended looks the same, and is not harmed.
        for (sid, hang_up) in running.iter().filter(|(sid, _)| !held.contains(*sid)) {
            tracing::debug!(callSid = %sid, "not held any more");
            hang_up.cancel();
        }
        let was_attended = |sid: &CallSid| running.contains_key(sid) || settling.contains(sid);
        let is_unattended = |sid: &CallSid| !self.running.attends(sid) && !was_attended(sid);
        let now_unattended: BTreeSet<_> = held.into_iter().filter(is_unattended).collect();
        let abandoned = now_unattended.intersection(unattended);
        let abandoned: Vec<_> = abandoned.cloned().collect();
        *unattended = now_unattended;
        self.recovery.take_over(&abandoned).await
    }
}

/// What a panic leaves unfinished is found unattended by the next looks.
fn note_panic(recovered: Result<(), JoinError>) {
    if let Err(panic) = recovered {
        tracing::error!(%panic, "recovering calls panicked");
    }
}
