//! Calls of a process that is gone. One that was not dialled yet goes back to the queue. Any other is not dialled again (unless the operator wants
//! that, and nobody is known to have heard it ring): between an answer and its commit nobody can know, so it ends as interrupted, with what is
//! known, and its leg is hung up if it can be.

use futures_util::StreamExt;
use jiff::SignedDuration;
use phone::signalling::DialogSnapshot;

use super::Dispatch;
use super::call_task::DialProgress;
use super::end_reason::EndReason;
use super::housekeeping::{ENDS_AT_ONCE, within_limit};
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::OrphanedCall;
use crate::domain::outcome::Outcome;
use crate::store::StoreError;

const LIMIT: u32 = 200;

impl Dispatch {
    /// Takes over what others have left behind, and what nobody here works at, until nothing is left.
    pub(super) async fn recover_orphans(&self, abandoned: &[CallSid]) -> Result<(), StoreError> {
        loop {
            let now = self.clock.now();
            let until = self.lease_until(now);
            let lost = self
                .store
                .take_orphaned_calls(&self.node, now, until, abandoned, LIMIT)
                .await?;
            let count = lost.len();
            futures_util::stream::iter(lost)
                .for_each_concurrent(ENDS_AT_ONCE, |call| within_limit(self.recover(call)))
                .await;
            if count > 0 {
                self.queued.notify_one();
            }
            if count < LIMIT as usize {
                return Ok(());
            }
        }
    }

    async fn recover(&self, lost: OrphanedCall) {
        let sid = &lost.claimed.call.sid;
        let again = match lost.state {
            CallState::Queued | CallState::Claimed => true,
            CallState::Dialling => self.config.dispatch.redial_after_crash,
            _ => false,
        };
        if again {
            if lost.state == CallState::Dialling {
                // It may be ringing still.
                self.hang_up_orphan(&lost);
            }
            tracing::info!(callSid = %sid, state = ?lost.state, "a call of a lost process goes back to the queue");
            self.requeue(&lost.claimed, SignedDuration::ZERO).await;
            return;
        }
        self.hang_up_orphan(&lost);
        tracing::warn!(callSid = %sid, state = ?lost.state, "a call was interrupted: its process is gone");
        let mut progress = DialProgress::new(lost.claimed);
        progress.trunk = lost.trunk;
        progress.dialled_at = lost.dialled_at;
        progress.rang_at = lost.rang_at;
        progress.answered_at = lost.answered_at;
        // It is known to have lasted from the answer to the last sign of life.
        let last_known = [lost.answered_at, lost.rang_at, lost.dialled_at]
            .into_iter()
            .flatten()
            .fold(lost.last_seen, Ord::max);
        self.end_at(progress, EndReason::plain(Outcome::Interrupted), last_known)
            .await;
    }

    /// Best effort, beside everything else: a trunk may not answer for seconds.
    fn hang_up_orphan(&self, lost: &OrphanedCall) {
        let facts = lost
            .dialog
            .as_deref()
            .and_then(|dialog| serde_json::from_str::<DialogSnapshot>(dialog).ok());
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
