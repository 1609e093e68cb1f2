//! The course of one call: prompt, trunk after trunk, the record of how far it has come, and its end.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use phone::call::{CallEvent, CallRequest};
use phone::ending::{Ending, Failure};
use phone::media::stream::PlaybackItem as Play;
use phone::signalling::DialogSnapshot;
use sound::PromptError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::end_reason::EndReason;
use super::trunk_pool::{Channel, NoChannel};
use super::{Dispatch, PendingChannel};
use crate::domain::call_state::CallState;
use crate::domain::callback::{CallReport, OwedCallback};
use crate::domain::claim::{CallUpdate, ClaimedCall, EndedCall};
use crate::domain::outcome::Outcome;
use crate::random;
use crate::store::StoreError;

/// How soon a call is looked at again that found all its trunks full.
const WHEN_FULL: SignedDuration = SignedDuration::from_millis(250);
/// How soon where too many other prompts are being made.
const WHEN_BUSY: SignedDuration = SignedDuration::from_secs(1);
/// How soon where the database did not take that it is being dialled.
const WHEN_UNWRITTEN: SignedDuration = SignedDuration::from_secs(1);
/// Events of a call that are written down together at most.
const MAX_EVENTS: usize = 16;
/// A commit that fails is tried again: the database may be away for a moment, and the call is over in any case.
const RETRY_COMMIT: Duration = Duration::from_millis(500);

/// What is known of a call so far.
#[derive(Debug, Clone)]
pub struct DialProgress {
    pub claimed: ClaimedCall,
    pub trunk: Option<String>,
    pub attempts: u32,
    pub dialled_at: Option<Timestamp>,
    pub rang_at: Option<Timestamp>,
    pub answered_at: Option<Timestamp>,
    /// When it was hung up, by the engine's own watch.
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

/// What one trunk made of a call.
enum Tried {
    Ended(EndReason),
    /// Nothing has rung: another trunk may have it.
    Failed(Failure),
    /// It is not ours any more; whoever has it ends it.
    Lost,
    /// The database did not take it. Nothing was sent.
    Unwritten,
}

impl Dispatch {
    /// Makes the call. Whatever happens, it ends with an outcome, or goes back to the queue.
    pub(super) async fn make(
        self: Arc<Self>,
        claimed: ClaimedCall,
        pending: PendingChannel,
        hang_up: CancellationToken,
    ) {
        let span = tracing::info_span!("call", callSid = %claimed.call.sid);
        let mut progress = DialProgress::new(claimed);
        async {
            match self.try_trunks(&mut progress, pending, &hang_up).await {
                Next::Ended(reason_of_end) => self.end(progress, reason_of_end).await,
                Next::Requeue(pause) => self.requeue(&progress.claimed, pause).await,
                Next::Lost => tracing::warn!("the call was taken over by another node"),
            }
        }
        .instrument(span)
        .await;
    }

    async fn try_trunks(
        &self,
        progress: &mut DialProgress,
        pending: PendingChannel,
        hang_up: &CancellationToken,
    ) -> Next {
        let mut pending = Some(pending);
        let plan = match self.plan(progress).await {
            Ok(plan) => plan,
            Err(PromptError::Busy) => return Next::Requeue(WHEN_BUSY),
            Err(error) => {
                let reason = error.to_string();
                return Next::Ended(EndReason::because(Outcome::PromptFailed, reason));
            }
        };
        let Ok(paid) = self.paid_seconds(progress, &plan).await else {
            return Next::Requeue(WHEN_UNWRITTEN);
        };
        let mut tried = Vec::new();
        loop {
            // The operator has cancelled it, or the server stops: nothing has rung, and in the queue either is known.
            if hang_up.is_cancelled() {
                return Next::Requeue(SignedDuration::ZERO);
            }
            let digits = progress.claimed.call.number.digits();
            let drawn = u32::from_be_bytes(random::bytes());
            let channel = match self.trunks.channel(digits, &tried, drawn) {
                Ok(channel) => channel,
                Err(NoChannel::NoRoute) => {
                    return Next::Ended(EndReason::plain(Outcome::NoRoute));
                }
                Err(NoChannel::Full) if tried.is_empty() => return Next::Requeue(WHEN_FULL),
                Err(NoChannel::Full | NoChannel::Down) => {
                    return Next::Requeue(self.back_off(progress.attempts, tried.len()));
                }
            };
            pending.take();
            let line = Arc::clone(&channel.line);
            match self
                .try_trunk(progress, channel, plan.clone(), paid, hang_up)
                .await
            {
                Tried::Ended(reason_of_end) => {
                    line.note(true);
                    return Next::Ended(reason_of_end);
                }
                Tried::Lost => return Next::Lost,
                Tried::Unwritten => return Next::Requeue(WHEN_UNWRITTEN),
                Tried::Failed(failure) => {
                    line.note(false);
                    tracing::info!(trunk = line.name(), %failure, "a trunk failed; trying the next");
                    tried.push(line.name().to_owned());
                }
            }
        }
    }

    async fn try_trunk(
        &self,
        progress: &mut DialProgress,
        channel: Channel,
        plan: Vec<Play>,
        paid: Option<u32>,
        hang_up: &CancellationToken,
    ) -> Tried {
        let line = &channel.line;
        let now = self.clock.now();
        let dialling = CallUpdate::Dialling {
            trunk: line.name().to_owned(),
            at: now,
        };
        // Durable before the first packet leaves: a call that may have been dialled is never dialled again by itself.
        match self.advance(progress, dialling).await {
            Ok(true) => {}
            Ok(false) => return Tried::Lost,
            Err(_) => return Tried::Unwritten,
        }
        progress.attempts += 1;
        progress.trunk = Some(line.name().to_owned());
        progress.dialled_at.get_or_insert(now);
        let call = &progress.claimed.call;
        let order = CallRequest {
            number: line.number(call.number.digits()),
            caller: line.caller(call.caller.as_deref()),
            call_id: format!("{}-{}@clarion", call.sid, progress.attempts),
            plan,
            ring_time: self.config.dispatch.ring_time,
            talk_time: self.talk_time(call.max_talk, paid),
        };
        let (events, mut happened) = mpsc::unbounded_channel();
        let calling = async {
            let ended = self.phone.call(&line.trunk, &order, &events, hang_up).await;
            drop(events);
            ended
        };
        // Beside the call: neither playing nor hanging up waits for a commit.
        let recording = async {
            let mut events = Vec::new();
            while happened.recv_many(&mut events, MAX_EVENTS).await > 0 {
                // Somebody is there: the trunk works, however long the call lasts.
                if events.iter().any(is_progress) {
                    line.note(true);
                }
                self.note(progress, events.drain(..)).await;
            }
        };
        let ((ending, facts), ()) = tokio::join!(calling, recording);
        metrics::counter!("clarion_media_packets_total").increment(facts.packets_sent.into());
        metrics::counter!("clarion_media_packets_late_total").increment(facts.packets_late.into());
        match ending {
            Ending::Talked { time, .. } => {
                // By the engine's own watch: what is written and confirmed afterwards does not lengthen a call.
                let answered = *progress.answered_at.get_or_insert(now);
                let time = SignedDuration::try_from(time).unwrap_or_default();
                progress.hung_up_at = Some(answered + time);
                Tried::Ended(EndReason::plain(Outcome::Talked))
            }
            Ending::Failed(failure) if failure.may_fail_over() => Tried::Failed(failure),
            Ending::Failed(failure) => {
                // Whoever answered in the moment in which we gave up, or could not be talked to, is not billed.
                progress.answered_at = None;
                Tried::Ended(EndReason::of_failure(&failure))
            }
        }
    }

    /// Writes down how far the call has come. Of several events that have come together only the last is written: it says more than those before
    /// it, and an answer is not acknowledged before.
    async fn note(&self, progress: &mut DialProgress, events: impl Iterator<Item = CallEvent>) {
        let now = self.clock.now();
        let mut last = None;
        let mut waiting = Vec::new();
        for event in events {
            let step = match event {
                CallEvent::Dialling(facts) => {
                    note_set_up(progress, now);
                    CallUpdate::Sent {
                        at: now,
                        dialog: written(facts),
                    }
                }
                CallEvent::Ringing(facts) => {
                    progress.rang_at.get_or_insert(now);
                    CallUpdate::Ringing {
                        at: now,
                        dialog: written(facts),
                    }
                }
                CallEvent::Answered(facts, waits) => {
                    progress.answered_at.get_or_insert(now);
                    waiting.push(waits);
                    CallUpdate::Answered {
                        at: now,
                        dialog: written(facts),
                    }
                }
                CallEvent::Key(key) => {
                    tracing::info!(%key, "the callee pressed a key");
                    continue;
                }
            };
            // An answer is told at once, the ringing before it perhaps only when the peer has confirmed something else.
            let further = |last: &CallUpdate| last.state().number() <= step.state().number();
            if last.as_ref().is_none_or(further) {
                last = Some(step);
            }
        }
        if let Some(step) = last {
            self.set_state(&progress.claimed.call.sid, step.state());
            // If it is not ours any more, the next pulse hangs it up; what could not be written is made good by the end.
            let _ = self.advance(progress, step).await;
        }
        drop(waiting);
    }

    /// False if the call is not ours any more.
    async fn advance(&self, progress: &DialProgress, step: CallUpdate) -> Result<bool, StoreError> {
        let (sid, lease) = (&progress.claimed.call.sid, &progress.claimed.lease);
        let advanced = self.store.advance_call(sid, lease, step).await;
        if let Err(error) = &advanced {
            tracing::error!(%error, "the state of a call could not be written");
        }
        advanced
    }

    /// Twice as long each time that all trunks were tried in vain.
    fn back_off(&self, attempts: u32, trunks: usize) -> SignedDuration {
        let trunks = u32::try_from(trunks).unwrap_or(u32::MAX).max(1);
        let rounds = attempts.div_ceil(trunks);
        let settings = &self.config.dispatch;
        let doubled = settings.retry_pause * (1 << rounds.saturating_sub(1).min(16));
        let pause = doubled.min(settings.longest_retry_pause);
        SignedDuration::try_from(pause.max(Duration::from_secs(1))).unwrap_or(SignedDuration::MAX)
    }

    pub(super) async fn requeue(&self, claimed: &ClaimedCall, pause: SignedDuration) {
        let (sid, lease) = (&claimed.call.sid, &claimed.lease);
        loop {
            let due = self.clock.now() + pause;
            match self.store.requeue_call(sid, lease, due).await {
                Ok(_) => return,
                Err(error) => {
                    tracing::error!(%error, "a call could not be put back; trying again");
                    tokio::time::sleep(RETRY_COMMIT).await;
                }
            }
        }
    }

    /// Outcome, bill line and owed callback, in one commit.
    pub async fn end(&self, progress: DialProgress, reason_of_end: EndReason) {
        let ended_at = progress.hung_up_at.unwrap_or_else(|| self.clock.now());
        self.end_at(progress, reason_of_end, ended_at).await;
    }

    pub async fn end_at(
        &self,
        progress: DialProgress,
        reason_of_end: EndReason,
        ended_at: Timestamp,
    ) {
        let outcome = reason_of_end.outcome;
        let number = progress.claimed.call.number.clone();
        let ended = self.ended(progress, reason_of_end, ended_at);
        let seconds = ended.seconds();
        let (reason, trunk) = (ended.reason.clone(), ended.trunk.clone());
        loop {
            match self.store.end_call(ended.clone()).await {
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
        metrics::counter!("clarion_calls_ended_total", "outcome" => outcome.as_str()).increment(1);
        tracing::info!(outcome = outcome.as_str(), to = %number, seconds, trunk, reason, "the call has ended");
        self.ended.notify_one();
    }

    fn ended(
        &self,
        progress: DialProgress,
        reason_of_end: EndReason,
        ended_at: Timestamp,
    ) -> EndedCall {
        let zone = self.clock.zone();
        let mut ended = EndedCall {
            claimed: progress.claimed,
            outcome: reason_of_end.outcome,
            trunk: progress.trunk,
            attempts: progress.attempts,
            dialled_at: progress.dialled_at,
            rang_at: progress.rang_at,
            answered_at: progress.answered_at,
            ended_at,
            sip_code: reason_of_end.sip_code,
            reason: reason_of_end.reason,
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

    pub(super) fn set_state(&self, sid: &crate::domain::call::CallSid, state: CallState) {
        if let Some(running) = self.running().get_mut(sid) {
            let furthest = running.state.number().max(state.number());
            running.state = CallState::from_number(furthest).unwrap_or(state);
        }
    }
}

/// What becomes of a call.
enum Next {
    Ended(EndReason),
    Requeue(SignedDuration),
    Lost,
}

fn is_progress(event: &CallEvent) -> bool {
    matches!(event, CallEvent::Ringing(_) | CallEvent::Answered(..))
}

/// The facts of a leg as they are kept.
fn written(facts: Option<Box<DialogSnapshot>>) -> Option<String> {
    facts.and_then(|facts| serde_json::to_string(&facts).ok())
}

/// From accept to the first INVITE, the wait in the queue included; further attempts are not counted.
fn note_set_up(progress: &DialProgress, now: Timestamp) {
    if progress.attempts == 1 {
        let waited = now.duration_since(progress.claimed.call.accepted_at);
        metrics::histogram!("clarion_call_setup_seconds").record(waited.as_secs_f64());
    }
}
