//! Calls of a process that is gone. One that was not dialled yet goes back to the queue. Any other is not dialled again: between an answer
//! and its commit nobody can know, so it ends as interrupted, with what is known, and its leg is hung up if it can be.

use phone::signalling::LegFacts;

use super::Dispatch;
use super::course::{Course, Verdict};
use crate::domain::call_state::CallState;
use crate::domain::claim::LostCall;
use crate::domain::outcome::Outcome;

const MOST: u32 = 200;

impl Dispatch {
    /// Takes over what others have left behind, until nothing is left.
    pub(super) async fn bury_lost(&self) {
        loop {
            let now = self.clock.now();
            let until = self.lease_until(now);
            match self
                .store
                .take_lost_calls(&self.node, now, until, MOST)
                .await
            {
                Ok(lost) if lost.is_empty() => return,
                Ok(lost) => {
                    for call in lost {
                        self.bury(call).await;
                    }
                    self.queued.notify_one();
                }
                Err(error) => {
                    tracing::error!(%error, "calls of lost processes could not be taken over");
                    return;
                }
            }
        }
    }

    async fn bury(&self, lost: LostCall) {
        let (sid, lease) = (&lost.claimed.call.sid, &lost.claimed.lease);
        let again = match lost.state {
            CallState::Queued | CallState::Claimed => true,
            CallState::Dialling => self.config.dispatch.redial_after_crash,
            _ => false,
        };
        if again {
            tracing::info!(callSid = %sid, "a call that was not dialled yet goes back to the queue");
            if let Err(error) = self.store.requeue_call(sid, lease, self.clock.now()).await {
                tracing::error!(%error, callSid = %sid, "a lost call could not be put back");
            }
            return;
        }
        self.hang_up_orphan(&lost);
        tracing::warn!(callSid = %sid, state = ?lost.state, "a call was interrupted: its process is gone");
        let mut course = Course::new(lost.claimed);
        course.trunk = lost.trunk;
        course.dialled_at = lost.dialled_at;
        course.rang_at = lost.rang_at;
        course.answered_at = lost.answered_at;
        // It is known to have lasted from the answer to the last sign of life.
        let last_known = [lost.answered_at, lost.rang_at, lost.dialled_at]
            .into_iter()
            .flatten()
            .fold(lost.last_seen, Ord::max);
        self.end_at(course, Verdict::plain(Outcome::Interrupted), last_known)
            .await;
    }

    /// Best effort, beside everything else: a trunk may not answer for seconds.
    fn hang_up_orphan(&self, lost: &LostCall) {
        let facts = lost
            .dialog
            .as_deref()
            .and_then(|dialog| serde_json::from_str::<LegFacts>(dialog).ok());
        let line = lost
            .trunk
            .as_deref()
            .and_then(|trunk| self.trunks.named(trunk));
        if let (Some(facts), Some(line)) = (facts, line) {
            let (trunk, sid) = (line.trunk.clone(), lost.claimed.call.sid.clone());
            tokio::spawn(async move {
                match trunk.end_orphan(&facts).await {
                    Ok(true) => tracing::info!(callSid = %sid, "an orphaned leg was hung up"),
                    Ok(false) => tracing::warn!(callSid = %sid, "an orphaned leg did not answer"),
                    Err(error) => {
                        tracing::warn!(%error, callSid = %sid, "an orphaned leg could not be hung up");
                    }
                }
            });
        }
    }
}
