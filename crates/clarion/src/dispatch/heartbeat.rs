//! The pulse of this node: it shows that it lives, looks whether what it works at is still its own, and takes over what others have left.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::Dispatch;
use crate::domain::call::CallSid;
use crate::store::StoreError;

/// Of a lease: a few heartbeats may be lost before another node believes that this one is gone.
const BEATS_A_LEASE: u32 = 5;
const SHORTEST_BEAT: Duration = Duration::from_millis(200);

impl Dispatch {
    pub(super) async fn keep_beating(self: Arc<Self>) {
        let every = self.config.dispatch.lease / BEATS_A_LEASE;
        let mut idle = HashSet::new();
        loop {
            if let Err(error) = self.heartbeat(&mut idle).await {
                tracing::error!(%error, "the heartbeat could not be written");
            }
            tokio::time::sleep(every.max(SHORTEST_BEAT)).await;
        }
    }

    /// `idle` are the calls that were ours at the last pulse with nobody working at them: one that is so twice is taken over like a lost
    /// one. It was claimed in a commit whose confirmation never came, or its task has broken down.
    pub(super) async fn heartbeat(&self, idle: &mut HashSet<CallSid>) -> Result<(), StoreError> {
        let now = self.clock.now();
        let share = self
            .store
            .heartbeat(&self.node, now, self.lease_until(now))
            .await?;
        self.set_share(share);
        // In this order: what is under way before the look was claimed before it.
        let under_way: HashMap<_, _> = {
            let running = self.running();
            let tokens = running
                .iter()
                .map(|(sid, call)| (sid.clone(), call.hang_up.clone()));
            tokens.collect()
        };
        let held = self.store.held_calls(&self.node).await?;
        let held: HashSet<_> = held.into_iter().collect();
        // A call that another node has taken over is hung up here: it must not be talked to by one that may not write its end. One that has just
        // ended looks the same, and is not harmed.
        for (sid, hang_up) in under_way.iter().filter(|(sid, _)| !held.contains(*sid)) {
            tracing::debug!(callSid = %sid, "not held any more");
            hang_up.cancel();
        }
        let unattended: HashSet<_> = {
            let running = self.running();
            let free = |sid: &CallSid| !running.contains_key(sid) && !under_way.contains_key(sid);
            held.into_iter().filter(free).collect()
        };
        let abandoned: Vec<_> = unattended.intersection(idle).cloned().collect();
        *idle = unattended;
        self.recover_orphans(&abandoned).await
    }
}
