//! Writes down what happens to a call: how far it has come, its return to the queue, its end. Every change is guarded by the call's lease.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use phone::call::CallEvent;
use phone::signalling::DialogSnapshot;
use supervisor::PanicPoint;
use tokio::sync::Notify;

use super::end_reason::EndReason;
use super::node::Node;
use super::running::RunningCalls;
use crate::domain::callback::{CallReport, OwedCallback};
use crate::domain::claim::{CallUpdate, ClaimedCall, EndedCall};
use crate::store::StoreError;

/// A commit that fails is tried again: the database may be away for a moment, and the call is over in any case.
const RETRY_COMMIT: Duration = Duration::from_millis(500);

/// What is known of a claimed call so far.
#[derive(Debug, Clone)]
pub struct DialProgress {
    pub claimed: ClaimedCall,
    pub trunk: Option<String>,
    pub attempts: u32,
    pub dialled_at: Option<Timestamp>,
    pub rang_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    /// By the calling engine's own watch: what is written and confirmed afterwards does not lengthen a call.
    pub hung_up_at: Option<Timestamp>,
}

impl DialProgress {
    pub fn new(claimed: ClaimedCall) -> Self {
        Self {
            attempts: claimed.attempts,
            claimed,
            trunk: None,
            dialled_at: None,
            rang_at: None,
            answered_at: None,
            hung_up_at: None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct CallRecorder {
    pub node: Node,
    pub running: Arc<RunningCalls>,
    /// Notified when a call has ended: a callback may be owed.
    pub ended: Arc<Notify>,
    /// A call's progress has been recorded.
    pub recorded_point: PanicPoint,
}

impl CallRecorder {
    /// Records what has happened on the line. Of several events only the furthest is written: it says more than those before it, and an
    /// answer is not acknowledged before it is durable.
    pub async fn record_progress(
        &self,
        progress: &mut DialProgress,
        events: impl Iterator<Item = CallEvent>,
    ) {
        let now = self.node.clock.now();
        let mut furthest: Option<CallUpdate> = None;
        let mut waiting = Vec::new();
        for event in events {
            let update = match event {
                CallEvent::Dialling(dialog) => {
                    measure_setup(progress, now);
                    CallUpdate::Sent {
                        at: now,
                        dialog: stored(dialog),
                    }
                }
                CallEvent::Ringing(dialog) => {
                    progress.rang_at.get_or_insert(now);
                    CallUpdate::Ringing {
                        at: now,
                        dialog: stored(dialog),
                    }
                }
                CallEvent::Answered(dialog, recorded) => {
                    progress.answered_at.get_or_insert(now);
                    waiting.push(recorded);
                    CallUpdate::Answered {
                        at: now,
                        dialog: stored(dialog),
                    }
                }
                CallEvent::Key(key) => {
                    tracing::info!(%key, "the callee pressed a key");
                    continue;
                }
            };
            // An answer is told at once; the ringing before it may come after it.
            let is_further = |known: &CallUpdate| known.state().number() <= update.state().number();
            if furthest.as_ref().is_none_or(is_further) {
                furthest = Some(update);
            }
        }
        if let Some(update) = furthest {
            let sid = &progress.claimed.call.sid;
            self.running.set_state(sid, update.state());
            // If the call is not ours any more, the next heartbeat hangs it up. What could not be written is made good by the end.
            let _ = self.advance(&progress.claimed, update).await;
            self.recorded_point.reach();
        }
        drop(waiting);
    }

    /// False if the call is not ours any more.
    pub async fn advance(
        &self,
        claimed: &ClaimedCall,
        update: CallUpdate,
    ) -> Result<bool, StoreError> {
        let (sid, lease) = (&claimed.call.sid, &claimed.lease);
        let advanced = self.node.store.advance_call(sid, lease, update).await;
        advanced.inspect_err(
            |error| tracing::error!(%error, "the state of a call could not be written"),
        )
    }

    /// Keeps only as much money reserved as the message costs. The seconds that it pays for, where money is a limit.
    pub async fn tighten_reservation(
        &self,
        claimed: &ClaimedCall,
        seconds: u32,
    ) -> Result<Option<u32>, StoreError> {
        let (sid, lease) = (&claimed.call.sid, &claimed.lease);
        let paid = self.node.store.tighten_reservation(sid, lease, seconds);
        paid.await
            .inspect_err(|error| tracing::error!(%error, "a reservation could not be tightened"))
    }

    /// Puts a call back into the queue, due after a pause. Without a pause it keeps its place.
    pub async fn requeue(&self, claimed: &ClaimedCall, pause: SignedDuration) {
        let (sid, lease) = (&claimed.call.sid, &claimed.lease);
        loop {
            match self.node.store.requeue_call(sid, lease, pause).await {
                Ok(_) => return,
                Err(error) => {
                    tracing::error!(%error, "a call could not be put back; trying again");
                    tokio::time::sleep(RETRY_COMMIT).await;
                }
            }
        }
    }

    /// Outcome, bill line and owed callback, in one commit.
    pub async fn end(&self, progress: DialProgress, reason: EndReason) {
        let ended_at = progress.hung_up_at.unwrap_or_else(|| self.node.clock.now());
        self.end_at(progress, reason, ended_at).await;
    }

    pub async fn end_at(&self, progress: DialProgress, reason: EndReason, ended_at: Timestamp) {
        let ended = self.ended_call(progress, reason, ended_at);
        loop {
            match self.node.store.end_call(ended.clone()).await {
                Ok(true) => break,
                Ok(false) => {
                    tracing::warn!("the call had been taken over; its end is not ours to write");
                    return;
                }
                Err(error) => {
                    tracing::error!(%error, "the end of a call could not be written; trying again");
                    tokio::time::sleep(RETRY_COMMIT).await;
                }
            }
        }
        let outcome = ended.outcome.as_str();
        metrics::counter!("clarion_calls_ended_total", "outcome" => outcome).increment(1);
        tracing::info!(
            outcome,
            to = %ended.claimed.call.number,
            seconds = ended.seconds(),
            trunk = ended.trunk,
            reason = ended.reason,
            "the call has ended"
        );
        self.ended.notify_one();
    }

    fn ended_call(
        &self,
        progress: DialProgress,
        reason: EndReason,
        ended_at: Timestamp,
    ) -> EndedCall {
        let zone = self.node.clock.zone();
        let mut ended = EndedCall {
            claimed: progress.claimed,
            outcome: reason.outcome,
            trunk: progress.trunk,
            attempts: progress.attempts,
            dialled_at: progress.dialled_at,
            rang_at: progress.rang_at,
            answered_at: progress.answered_at,
            ended_at,
            sip_code: reason.sip_code,
            reason: reason.text,
            bill_day: ended_at.to_zoned(zone.clone()).date(),
            callback: None,
        };
        let call = &ended.claimed.call;
        ended.callback = call.resp_url.clone().map(|url| {
            let report = CallReport {
                call: &call.sid,
                called: &call.called,
                outcome: ended.outcome,
                dialled_at: ended.dialled_at,
                answered_at: ended.answered_at,
                ended_at,
                user_data: call.user_data.as_deref(),
            };
            OwedCallback::new(&report, call.app.clone(), url, zone)
        });
        ended
    }
}

/// A dialog as it is kept in the store.
fn stored(dialog: Option<Box<DialogSnapshot>>) -> Option<String> {
    dialog.and_then(|dialog| serde_json::to_string(&dialog).ok())
}

/// From accept to the first INVITE, the wait in the queue included. Further attempts are not counted.
fn measure_setup(progress: &DialProgress, now: Timestamp) {
    if progress.attempts == 1 {
        let waited = now.duration_since(progress.claimed.call.accepted_at);
        metrics::histogram!("clarion_call_setup_seconds").record(waited.as_secs_f64());
    }
}
