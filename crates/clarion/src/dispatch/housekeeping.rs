//! What is looked after once a second: calls that shall end without being dialled, calls under way that shall be hung up, the operator's
//! switches, the gauges, and calls that ended so long ago that they are forgotten.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::StreamExt;

use super::call_task::DialProgress;
use super::end_reason::EndReason;
use super::{Dispatch, STOP_ALL, drained_switch};
use crate::domain::call_state::CallState;
use crate::domain::claim::Overdue;
use crate::domain::outcome::Outcome;
use crate::store::StoreError;

/// Calls ended in one go that were never dialled.
const MAX_OVERDUE: u32 = 500;
/// Ends that are written at once: they share commits.
pub(super) const ENDS_AT_ONCE: usize = 64;
/// For one of them: an end that the database does not take must not keep the others waiting, nor the heartbeat. It is tried again when nobody is
/// found to work at the call.
const FOR_ONE_END: Duration = Duration::from_secs(2);
/// Calls forgotten in one commit: a short one, between others.
const MAX_FORGOTTEN: u32 = 500;

impl Dispatch {
    pub(super) async fn run_housekeeping(self: &Arc<Self>) {
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
        self.limits().forget_idle(Instant::now());
        if let Err(error) = self.forget_old().await {
            tracing::error!(%error, "calls that are too old to be kept could not be forgotten");
        }
    }

    pub(super) async fn obey_switches(&self) {
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
            let drained = set(&drained_switch(line.name()));
            if line.drained.swap(drained, Ordering::Relaxed) != drained {
                tracing::warn!(
                    trunk = line.name(),
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
            .claim_overdue(&self.node, now, until, MAX_OVERDUE)
            .await?;
        futures_util::stream::iter(overdue)
            .for_each_concurrent(ENDS_AT_ONCE, |(claimed, why)| {
                let outcome = match why {
                    Overdue::Expired => Outcome::Expired,
                    Overdue::Cancelled => Outcome::Cancelled,
                };
                let progress = DialProgress::new(claimed);
                within_limit(self.end(progress, EndReason::plain(outcome)))
            })
            .await;
        Ok(())
    }

    /// A step a second: five hundred are more than calls end in the long run on most machines, and nobody waits for it.
    async fn forget_old(&self) -> Result<(), StoreError> {
        let Some(retention) = self.config.calls.retention else {
            return Ok(());
        };
        let before = self.clock.now() - retention;
        let forgotten = self.store.forget_calls(before, MAX_FORGOTTEN).await?;
        if forgotten > 0 {
            tracing::debug!(forgotten, "calls are too old to be kept");
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
            let name = line.name().to_owned();
            let up = f64::from(u8::from(line.state() == "up"));
            metrics::gauge!("clarion_trunk_up", "trunk" => name.clone()).set(up);
            metrics::gauge!("clarion_trunk_calls", "trunk" => name).set(f64::from(line.calls()));
        }
    }
}

/// What ends one call of many; whatever is not done in time is left as it is.
pub(super) async fn within_limit(ending: impl Future<Output = ()>) {
    if tokio::time::timeout(FOR_ONE_END, ending).await.is_err() {
        tracing::error!("the end of a call could not be written in time; it is tried again later");
    }
}
