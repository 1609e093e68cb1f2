//! The loop that claims calls and starts a task for each.

use std::sync::Arc;
use std::time::Duration;

use supervisor::{PanicPoint, Supervisor, TaskGuard, Watch};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call_task::CallRunner;
use super::claiming::{Claimer, QueueRest};
use super::customers::CustomerSlot;
use super::running::RunningSlot;
use super::wake_ups::WakeUps;
use crate::domain::claim::ClaimedCall;
use crate::seldom::Seldom;
use crate::store::StoreError;

/// The queue is looked at this often when nothing has happened.
const POLL: Duration = Duration::from_secs(1);
/// The dispatcher waits for the database at most this long before it counts as down.
const PATIENCE: Duration = Duration::from_secs(15);
/// After the last calls were hung up, their ends have this long to be written. What is not written then, the next start finds.
const TIME_FOR_LAST_ENDS: Duration = Duration::from_secs(10);

/// The loop around the claimer, and the tasks that it starts.
#[derive(Debug)]
pub struct Dispatcher {
    pub claimer: Claimer,
    pub runner: Arc<CallRunner>,
    pub calls: TaskTracker,
    /// Cancelled when the process can wait no longer for its calls.
    pub given_up: CancellationToken,
    pub wake_ups: WakeUps,
    /// Calls have been claimed and have no task yet.
    pub claimed_point: PanicPoint,
}

impl Dispatcher {
    pub fn supervise(
        self: &Arc<Self>,
        supervisor: &Supervisor,
        stopping: &CancellationToken,
    ) -> TaskGuard {
        let (dispatcher, stopping) = (Arc::clone(self), stopping.clone());
        supervisor.restart("dispatch", Some(PATIENCE), move |watch| {
            Arc::clone(&dispatcher).run(watch, stopping.clone())
        })
    }

    async fn run(self: Arc<Self>, watch: Watch, stopping: CancellationToken) {
        static FAILURES: Seldom = Seldom::new();
        let mut turn = 0;
        while !stopping.is_cancelled() {
            watch.heartbeat();
            let (pause, rest) = match self.step(&mut turn).await {
                // Others get their turn first.
                Ok((_, QueueRest::MayStart)) => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Ok((next_look, rest)) => (next_look.min(POLL), rest),
                Err(error) => {
                    if let Some(unsaid) = FAILURES.say() {
                        tracing::error!(%error, unsaid, "no calls could be claimed");
                    }
                    (POLL, QueueRest::Waits)
                }
            };
            stopping
                .run_until_cancelled(self.wake_ups.next(pause, rest))
                .await;
        }
    }

    /// Starts what can be started now. How long it is not worth while to look again, and what is left.
    async fn step(&self, turn: &mut usize) -> Result<(Duration, QueueRest), StoreError> {
        let claimed = self.claimer.claim(*turn).await?;
        if !claimed.calls.is_empty() {
            self.claimed_point.reach();
            *turn += 1;
        }
        for call in claimed.calls {
            self.start(call);
        }
        Ok((claimed.next_look.unwrap_or(POLL), claimed.rest))
    }

    fn start(&self, claimed: ClaimedCall) {
        let slot = CallSlot {
            running: self.runner.recorder.running.enter(&claimed),
            _customer: self
                .claimer
                .customers
                .enter(&claimed.call.account, &claimed.call.app),
            _wake: WakeOnDrop(Arc::clone(&self.wake_ups.room)),
        };
        let channel = self.runner.first_channel(&claimed);
        let (runner, given_up) = (Arc::clone(&self.runner), self.given_up.clone());
        self.calls.spawn(async move {
            let hang_up = slot.running.hang_up.clone();
            let call = Box::pin(runner.run(claimed, channel, hang_up));
            given_up.run_until_cancelled(call).await;
            drop(slot);
        });
    }

    /// Lets calls that run finish; after a while they are hung up.
    pub async fn finish(&self, limit: Duration) {
        self.calls.close();
        let running = &self.runner.recorder.running;
        if running.count() > 0 {
            tracing::info!(
                calls = running.count(),
                "waiting for calls under way to finish"
            );
        }
        if tokio::time::timeout(limit, self.calls.wait()).await.is_ok() {
            return;
        }
        running.hang_up_all();
        if tokio::time::timeout(TIME_FOR_LAST_ENDS, self.calls.wait())
            .await
            .is_err()
        {
            let left = self.calls.len();
            tracing::error!(
                left,
                "the end of some calls could not be written; the next start does that"
            );
            self.given_up.cancel();
            self.calls.wait().await;
        }
    }
}

/// What a call takes while it runs. In this order: whoever is woken finds the places free.
struct CallSlot {
    running: RunningSlot,
    _customer: CustomerSlot,
    _wake: WakeOnDrop,
}

struct WakeOnDrop(Arc<Notify>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
