//! Recovers orphaned calls: those of a process that is gone, and those of our own that no task works at.
//!
//! A call that was not dialled yet goes back to the queue. Any other is not dialled again (unless the operator wants that, and nobody is
//! known to have heard it ring): between an answer and its commit nobody can know, so it ends as interrupted, with what is known, and its
//! leg is hung up if it can be.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use jiff::SignedDuration;
use phone::signalling::DialogSnapshot;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::dial_progress::DialProgress;
use super::end_reason::EndReason;
use super::housekeeping::{ENDS_AT_ONCE, within_limit};
use super::leg_records;
use super::recorder::CallRecorder;
use super::running::SettlingSlot;
use super::trunk_pool::{PooledTrunk, TrunkPool};
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::OrphanedCall;
use crate::domain::notice::keys::CalleeChoice;
use crate::domain::outcome::Outcome;
use crate::store::StoreError;

/// So long the end of a call waits for its leg to be hung up.
const HANG_UP_FIRST: Duration = Duration::from_secs(1);
/// Calls taken over in one commit.
const BATCH: u32 = 200;

#[derive(Debug, Clone)]
pub struct Recovery {
    pub recorder: CallRecorder,
    pub pool: Arc<TrunkPool>,
    /// Calls that were dialled and are not known to have rung are dialled again.
    pub redial: bool,
    /// Notified when calls have gone back to the queue.
    pub queued: Arc<Notify>,
}

/// An orphan that is ours now.
#[derive(Debug)]
pub struct TakenOver {
    slot: SettlingSlot,
    orphan: OrphanedCall,
}

impl Recovery {
    /// Takes over what others have left behind and what nobody here works at (`abandoned`), until nothing is left. Nobody else takes these calls from
    /// now on, however long it takes to recover them.
    pub async fn take_over(&self, abandoned: &[CallSid]) -> Result<Vec<TakenOver>, StoreError> {
        let node = &self.recorder.node;
        let (mut taken, mut abandoned) = (Vec::new(), abandoned);
        loop {
            let orphans = node
                .store
                .take_orphaned_calls(&node.id, node.lease, abandoned, BATCH)
                .await?;
            let count = orphans.len();
            taken.extend(orphans.into_iter().map(|orphan| TakenOver {
                slot: self.recorder.running.settle(&orphan.claimed),
                orphan,
            }));
            if count < BATCH as usize {
                return Ok(taken);
            }
            // Those that are ours now would be taken again.
            abandoned = &[];
        }
    }

    /// Brings each to its end, or back to the queue.
    pub async fn recover(&self, taken: Vec<TakenOver>) {
        futures_util::stream::iter(taken)
            .for_each_concurrent(ENDS_AT_ONCE, async |TakenOver { slot, orphan }| {
                within_limit(Box::pin(self.recover_one(orphan))).await;
                drop(slot);
            })
            .await;
        self.queued.notify_one();
    }

    /// Hangs up legs that the life before this one had noted, because the database may not know of them. Some of them may be over. It is waited for
    /// a moment. A note stays, for the next life, until its trunk has confirmed that the leg is down, or is no trunk any more.
    pub async fn hang_up_noted(&self) {
        let (notes, pool) = (Arc::clone(&self.recorder.notes), Arc::clone(&self.pool));
        let hung_up = tokio::spawn(async move {
            let done = futures_util::stream::iter(notes.take_found())
                .map(async |(place, note)| {
                    let dialog = serde_json::from_str::<DialogSnapshot>(&note.dialog);
                    let (Ok(dialog), Some(trunk)) = (dialog, pool.named(&note.trunk)) else {
                        return Some(place);
                    };
                    let ended = trunk.line.end_orphan(&dialog).await;
                    tracing::info!(noted = %note.at, ?ended, "a leg that only a note may know of was to be hung up");
                    matches!(ended, Ok(true)).then_some(place)
                })
                .buffer_unordered(ENDS_AT_ONCE);
            let done: Vec<_> = done.collect().await;
            notes.wipe(done.into_iter().flatten().collect()).await;
        });
        let _ = timeout(HANG_UP_FIRST, hung_up).await;
    }

    async fn recover_one(&self, orphan: OrphanedCall) {
        let sid = &orphan.claimed.call.sid;
        let may_dial = match orphan.state {
            CallState::Queued | CallState::Claimed => true,
            // The plan of a notice says what comes after an attempt that is lost.
            CallState::Dialling => self.redial && orphan.claimed.call.notice.is_none(),
            _ => false,
        };
        if may_dial {
            if orphan.state == CallState::Dialling {
                // It may be ringing still.
                self.hang_up(&orphan).await;
            }
            tracing::info!(callSid = %sid, state = ?orphan.state, "an orphaned call goes back to the queue");
            let progress = self.known_progress(orphan);
            self.recorder.requeue(progress, SignedDuration::ZERO).await;
            return;
        }
        self.hang_up(&orphan).await;
        tracing::warn!(callSid = %sid, state = ?orphan.state, "a call was interrupted: its process is gone");
        // It is known to have lasted from the answer to the last sign of life.
        let last_known = orphan.last_known();
        let progress = self.known_progress(orphan);
        // What the callee has said counts, even though nobody could tell them.
        let outcome = progress
            .choice
            .map_or(Outcome::Interrupted, CalleeChoice::outcome);
        let reason = EndReason::plain(outcome);
        self.recorder.end_at(progress, reason, last_known).await;
    }

    /// What was committed of the call. Of its legs since it was claimed, that is the last one.
    fn known_progress(&self, orphan: OrphanedCall) -> DialProgress {
        let trunk = self.trunk(&orphan);
        let transport = trunk.map(|trunk| trunk.transport());
        let leg = dialog(&orphan)
            .and_then(|dialog| leg_records::orphaned_leg(&orphan, &dialog, transport));
        DialProgress {
            trunk: orphan.trunk,
            dialled_at: orphan.dialled_at,
            rang_at: orphan.rang_at,
            answered_at: orphan.answered_at,
            choice: orphan.choice,
            legs: leg.into_iter().collect(),
            ..DialProgress::new(orphan.claimed)
        }
    }

    fn trunk(&self, orphan: &OrphanedCall) -> Option<&Arc<PooledTrunk>> {
        let name = orphan.trunk.as_deref();
        name.and_then(|name| self.pool.named(name))
    }

    /// Best effort. It is waited for a moment. A trunk may not answer for seconds; then the rest happens beside everything else. A leg that is not known
    /// to be down is noted: once the end is written, nothing else knows of it, should this process be lost as well.
    async fn hang_up(&self, orphan: &OrphanedCall) {
        if let (Some(dialog), Some(trunk)) = (dialog(orphan), self.trunk(orphan)) {
            let (line, sid) = (Arc::clone(&trunk.line), orphan.claimed.call.sid.clone());
            let hung_up = tokio::spawn(async move {
                let ended = line.end_orphan(&dialog).await;
                match &ended {
                    Ok(true) => tracing::info!(callSid = %sid, "an orphaned leg was hung up"),
                    Ok(false) => tracing::warn!(callSid = %sid, "an orphaned leg did not answer"),
                    Err(error) => {
                        tracing::warn!(%error, callSid = %sid, "an orphaned leg could not be hung up");
                    }
                }
                matches!(ended, Ok(true))
            });
            if !matches!(timeout(HANG_UP_FIRST, hung_up).await, Ok(Ok(true))) {
                let now = self.recorder.node.clock.now();
                (self.recorder)
                    .note(now, trunk.name(), orphan.dialog.as_ref())
                    .await;
            }
        }
    }
}

fn dialog(orphan: &OrphanedCall) -> Option<DialogSnapshot> {
    serde_json::from_str(orphan.dialog.as_deref()?).ok()
}
