//! The task of one call: prompt, trunk after trunk, and its end or its return to the queue.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use phone::call::{CallEvent, CallRequest, PlacedCall};
use phone::ending::{Cause, Ending, Failure};
use phone::leg_record::LegRecord;
use phone::trunk::RedirectGuard;
use sound::PromptError;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::breaker::Evidence;
use super::customers::CustomerLimits;
use super::dial_progress::{DialProgress, TrunkTry};
use super::end_reason::{self, EndReason};
use super::evidence;
use super::leg_records;
use super::line_events::LineEvents;
use super::playback::{Playback, PlaybackPlan};
use super::prompt_guard::{self, PromptGuard};
use super::recorder::{CallRecorder, NoLeave, RETRY_COMMIT};
use super::redirect_guard::AccountGuard;
use super::trunk_pool::{Channel, NoChannel, PooledTrunk, TrunkPool};
use crate::barred_numbers::BarredNumbers;
use crate::config::DispatchConfig;
use crate::domain::call::NewCall;
use crate::domain::claim::ClaimedCall;
use crate::domain::hearing::Hearing;
use crate::domain::notice::ending::NoticeEnding;
use crate::domain::notice::machine::MachineDetection;
use crate::domain::outcome::Outcome;
use crate::domain::response_policy::{Judgement, ResponsePolicy, Verdict};
use crate::random;
use crate::store::StoreError;

/// A call keeps its channel for so long while its prompt is being made.
const READY_SOON: Duration = Duration::from_millis(50);

/// How long a call waits of which it turns out that no trunk can be used for it.
const WHEN_UNUSABLE: SignedDuration = SignedDuration::from_secs(1);

/// A call is retried after this time while too many other prompts are being rendered.
const WHEN_BUSY: SignedDuration = SignedDuration::from_secs(1);
/// A prompt that could not be made is tried again after this time at first, and after this time at most.
const FIRST_PROMPT_PAUSE: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_PROMPT_PAUSE: SignedDuration = SignedDuration::from_secs(60);
/// A call is retried after this time when there was no leave to dial it: the database did not take it, or the lease is uncertain.
const WHEN_WITHHELD: SignedDuration = SignedDuration::from_secs(1);
/// A trunk may ask us to wait for this long at most (Retry-After).
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// How long a call may ring, and how long it waits when every trunk has failed.
#[derive(Debug, Clone, Copy)]
pub struct DialTimes {
    pub ring: Duration,
    pub first_retry: SignedDuration,
    pub longest_retry: SignedDuration,
}

impl DialTimes {
    pub fn of(settings: &DispatchConfig) -> Self {
        Self {
            ring: settings.ring_time,
            first_retry: settings.first_retry,
            longest_retry: settings.longest_retry,
        }
    }
}

/// Makes calls, any number at once.
#[derive(Debug)]
pub struct CallRunner {
    pub pool: Arc<TrunkPool>,
    pub playback: Arc<Playback>,
    pub recorder: CallRecorder,
    pub prompt_guard: Arc<PromptGuard>,
    pub barred: Arc<BarredNumbers>,
    pub customers: Arc<CustomerLimits>,
    /// Notified when there is room for other calls.
    pub queued: Arc<Notify>,
    pub times: DialTimes,
}

/// What becomes of a call.
enum Next {
    End(EndReason),
    Requeue(SignedDuration),
    /// The same, where no trunk can be used for its number.
    HoldBack(SignedDuration),
    /// Another node has taken the call over and ends it.
    TakenOver,
}

/// What came of trying one trunk.
enum Tried {
    Ended(EndReason),
    /// Nothing has rung, and the answer is not about the callee.
    Refused(Failure, Judgement),
    TakenOver,
    /// Nothing was sent, because of us: there was no leave, or the call was given up before there was.
    Withheld,
}

impl CallRunner {
    /// Makes the call. Whatever happens, it ends with an outcome, or goes back to the queue.
    pub async fn run(
        &self,
        claimed: ClaimedCall,
        channel: Result<Channel, NoChannel>,
        hang_up: CancellationToken,
    ) {
        let span = tracing::info_span!("call", callSid = %claimed.call.sid);
        let mut progress = DialProgress::new(claimed);
        async {
            match self.try_trunks(&mut progress, channel, &hang_up).await {
                Next::End(reason) => self.recorder.end(progress, reason).await,
                Next::Requeue(pause) => self.recorder.requeue(progress, pause).await,
                Next::HoldBack(pause) => self.recorder.hold_back(progress, pause).await,
                Next::TakenOver => tracing::warn!("the call was taken over by another node"),
            }
        }
        .instrument(span)
        .await;
    }

    async fn try_trunks(
        &self,
        progress: &mut DialProgress,
        channel: Result<Channel, NoChannel>,
        hang_up: &CancellationToken,
    ) -> Next {
        let begun = tokio::time::Instant::now();
        let (plan, mut channel) = self.prepare(&progress.claimed, channel).await;
        metrics::histogram!("clarion_prompt_wait_seconds").record(begun.elapsed());
        let plan = match plan {
            Ok(plan) => plan,
            Err(PromptError::Busy) => return Next::Requeue(WHEN_BUSY),
            Err(error) if prompt_guard::is_final(&error) => {
                let reason = EndReason::because(Outcome::PromptFailed, error.to_string());
                return Next::End(reason);
            }
            // It may pass: a folder that is away for a moment, a speech server that is started anew. Another node may be able to.
            Err(error) => {
                tracing::warn!(%error, "the prompt cannot be made now; the call waits");
                self.prompt_guard.failed(&error);
                return Next::Requeue(self.prompt_pause(&progress.claimed.call));
            }
        };
        self.prompt_guard.worked();
        progress.voice.clone_from(&plan.voice);
        let needed = plan.seconds().saturating_add(1);
        let reserved = self.recorder.tighten_reservation(&progress.claimed, needed);
        let Ok(paid) = reserved.await else {
            return Next::Requeue(WHEN_WITHHELD);
        };
        if let Some(reason) = self.unpaid(&progress.claimed.call, needed, paid) {
            return Next::End(reason);
        }
        let mut tried = TriedTrunks::default();
        loop {
            // The operator has cancelled it, or the server stops: nothing has rung, and the queue knows what to do with it.
            if hang_up.is_cancelled() {
                return Next::Requeue(SignedDuration::ZERO);
            }
            // Whoever looks for calls that are over ends it.
            if progress.is_too_late() {
                return Next::Requeue(SignedDuration::ZERO);
            }
            match self.obstacle(&progress.claimed).await {
                Ok(None) => {}
                Ok(Some(next)) => return next,
                Err(_) => return Next::Requeue(WHEN_WITHHELD),
            }
            let taken = match channel {
                Ok(channel) => channel,
                Err(NoChannel::NoRoute) => return Next::End(EndReason::plain(Outcome::NoRoute)),
                // Another call was quicker. This one keeps its place.
                Err(NoChannel::Full) if tried.names.is_empty() => {
                    return Next::Requeue(SignedDuration::ZERO);
                }
                // No trunk that carries it can be used now, whatever its lane says.
                Err(_) if tried.names.is_empty() => return Next::HoldBack(WHEN_UNUSABLE),
                // Every trunk of its route has said that it does not carry the call, and none that it may do so later.
                Err(NoChannel::Tried) if let Some(refusal) = tried.all_refused() => {
                    return Next::End(refusal);
                }
                // Also where another trunk is only full or down: it may take the call then, and none is asked before the time that it has said.
                Err(why) => {
                    let back_off = self.back_off(progress.tries_of_attempt(), tried.names.len());
                    let pause = back_off.max(tried.soonest.unwrap_or_default());
                    return match why {
                        NoChannel::Full => Next::Requeue(pause),
                        _ => Next::HoldBack(pause),
                    };
                }
            };
            let trunk = Arc::clone(&taken.trunk);
            match self.try_trunk(progress, taken, &plan, paid, hang_up).await {
                Tried::Ended(reason) => return Next::End(reason),
                Tried::TakenOver => return Next::TakenOver,
                // The first look of the next round finds out that it was given up.
                Tried::Withheld if hang_up.is_cancelled() => {}
                Tried::Withheld => return Next::Requeue(WHEN_WITHHELD),
                Tried::Refused(failure, judgement) => {
                    let verdict = judgement.verdict.as_str();
                    tracing::info!(trunk = trunk.name(), %failure, verdict, "a trunk failed; trying the next");
                    tried.add(trunk.name(), &failure, judgement);
                }
            }
            channel = self.channel(&progress.claimed, &tried.names);
        }
    }

    /// A notice says all that it has to say, or nothing: its message is not cut off because the money is gone.
    fn unpaid(&self, call: &NewCall, needed: u32, paid: Option<u32>) -> Option<EndReason> {
        call.notice.as_ref()?;
        let needed = needed.min(self.recorder.planner.longest_talk(call.max_talk));
        let paid = paid.filter(|paid| *paid < needed)?;
        let why = format!("the money that is left pays for {paid} s, and {needed} s are needed");
        let reason = EndReason::because(Outcome::Cancelled, why);
        Some(reason.for_good(NoticeEnding::Unpaid))
    }

    /// What keeps a call from being dialled that was allowed when it was accepted.
    async fn obstacle(&self, claimed: &ClaimedCall) -> Result<Option<Next>, StoreError> {
        let call = &claimed.call;
        let rules = self.customers.rules(&call.account, &call.app).await?;
        if rules.is_stopped {
            let why = "the account was suspended while the call waited";
            let reason = EndReason::because(Outcome::Cancelled, why);
            let reason = reason.for_good(NoticeEnding::Cancelled);
            return Ok(Some(Next::End(reason)));
        }
        let planner = &self.recorder.planner;
        let reason = if self.barred.contains(call.number.digits()) {
            Some("the number was barred while the call waited")
        } else {
            planner.withdrawn(claimed).await?
        };
        if let Some(reason) = reason {
            let reason = EndReason::because(Outcome::Cancelled, reason);
            return Ok(Some(Next::End(reason)));
        }
        Ok(planner.closed_for(call).await?.map(Next::Requeue))
    }

    /// The prompt, and the channel that the call has then. While a prompt is being made that takes its time, other calls may have the channel:
    /// the slow texts of one customer would otherwise keep a trunk idle that others wait for.
    async fn prepare(
        &self,
        claimed: &ClaimedCall,
        channel: Result<Channel, NoChannel>,
    ) -> (
        Result<PlaybackPlan, PromptError>,
        Result<Channel, NoChannel>,
    ) {
        let call = &claimed.call;
        let mut plan = pin!(self.playback.plan(call));
        if let Ok(plan) = timeout(READY_SOON, plan.as_mut()).await {
            return (plan, channel);
        }
        let preparing = self.customers.prepare(&call.account);
        drop(channel);
        self.queued.notify_one();
        let plan = plan.await;
        drop(preparing);
        self.queued.notify_one();
        (plan, self.first_channel(claimed))
    }

    /// A channel for the first try, taken as soon as the call is claimed: no other call gets it meanwhile.
    pub fn first_channel(&self, claimed: &ClaimedCall) -> Result<Channel, NoChannel> {
        self.channel(claimed, &[])
    }

    fn channel(&self, claimed: &ClaimedCall, tried: &[String]) -> Result<Channel, NoChannel> {
        let drawn = u32::from_be_bytes(random::bytes());
        let only = claimed.only_trunk.as_deref();
        let call = &claimed.call;
        (self.pool).channel(&call.account, call.ends(), only, tried, drawn)
    }

    async fn try_trunk(
        &self,
        progress: &mut DialProgress,
        mut channel: Channel,
        plan: &PlaybackPlan,
        paid: Option<u32>,
        hang_up: &CancellationToken,
    ) -> Tried {
        channel.start().await;
        let trunk = &channel.trunk;
        let trunk_try = TrunkTry {
            number: progress.tries + 1,
            trunk: trunk.name().to_owned(),
        };
        let request = self.request(progress, &trunk_try, trunk, plan, paid);
        let dialled = self
            .dial(progress, &trunk_try, trunk, &request, hang_up)
            .await;
        let (placed, leave) = dialled;
        count_packets(&placed.legs);
        let nothing_left = placed.legs.is_empty();
        let legs = placed.legs.into_iter();
        let clock = self.recorder.node.clock.reading();
        let legs = legs.map(|record| leg_records::leg(record, trunk.name(), clock));
        progress.legs.extend(legs);
        // While the channel is held: the next trial comes after what this one has shown.
        if let Ending::Failed(failure) = &placed.ending {
            let call = &progress.claimed.call;
            let shown = evidence::of_failure(failure, trunk, &call.account, call.number.digits());
            if let Some(shown) = shown {
                trunk.record(shown);
            }
        }
        let is_cut_off = hang_up.is_cancelled() && self.recorder.running.is_stopping();
        let now = self.recorder.node.clock.now();
        let policy = trunk.policy();
        let last = progress.legs.last();
        let ended = EndedTry {
            ending: placed.ending,
            heard: last.and_then(|leg| leg.heard),
            has_begun: last.is_some_and(|leg| !leg.media.played.is_zero()),
            leave,
            is_cut_off,
        };
        let tried = conclude(progress, ended, now, policy);
        // A number under which nothing was sent is used again.
        if !(nothing_left && matches!(tried, Tried::Withheld)) {
            progress.tries = trunk_try.number;
        }
        tried
    }

    fn request(
        &self,
        progress: &DialProgress,
        trunk_try: &TrunkTry,
        trunk: &PooledTrunk,
        plan: &PlaybackPlan,
        paid: Option<u32>,
    ) -> CallRequest {
        let call = &progress.claimed.call;
        CallRequest {
            number: trunk.number(call.number.digits()),
            caller: trunk.caller(call.caller.as_deref()),
            call_id: format!("{}-{}@clarion", call.sid, trunk_try.number),
            opening: plan.opening.clone(),
            plan: plan.message.clone(),
            menu: plan.menu.clone(),
            machine: plan.machine,
            redirect_guard: trunk.redirecting_route().map(|route| {
                let guard = AccountGuard::new(&self.recorder.planner, call, route);
                Arc::new(guard) as Arc<dyn RedirectGuard>
            }),
            ring_time: call.ring_time().unwrap_or(self.times.ring),
            talk_time: self.playback.talk_time(call.max_talk, paid),
        }
    }

    /// Places the call and records what happens beside it: neither playing nor hanging up waits for a commit, only the INVITE does. An
    /// error if one got no leave.
    async fn dial(
        &self,
        progress: &mut DialProgress,
        trunk_try: &TrunkTry,
        trunk: &PooledTrunk,
        request: &CallRequest,
        hang_up: &CancellationToken,
    ) -> (PlacedCall, Result<(), NoLeave>) {
        let (events, happened) = mpsc::unbounded_channel();
        let calling = async {
            let placed = trunk.line.call(request, &events, hang_up).await;
            drop(events);
            placed
        };
        let recording = async {
            let mut events = LineEvents::new(happened);
            let mut chosen = None;
            let mut leave = Ok(());
            loop {
                let more = if progress.unwritten.is_some() || chosen.is_some() {
                    timeout(RETRY_COMMIT, events.wait()).await
                } else {
                    Ok(events.wait().await)
                };
                if more == Ok(false) {
                    break;
                }
                let arrived = events.take_arrived();
                // Somebody is there: the trunk works, however long the call lasts.
                if arrived.iter().any(is_progress) {
                    trunk.record(Evidence::Worked(&progress.claimed.call.account));
                }
                let recorder = &self.recorder;
                let recording = recorder.record_progress(progress, trunk_try, &mut chosen, arrived);
                let recorded = recorder
                    .note_answers_during(recording, trunk.name(), &mut events)
                    .await;
                leave = leave.and(recorded);
            }
            leave
        };
        tokio::join!(calling, recording)
    }

    /// The longer a call has waited already, the more rarely its prompt is tried again.
    fn prompt_pause(&self, call: &NewCall) -> SignedDuration {
        let waited = self
            .recorder
            .node
            .clock
            .now()
            .duration_since(call.accepted_at);
        (waited / 4).clamp(FIRST_PROMPT_PAUSE, LONGEST_PROMPT_PAUSE)
    }

    /// Twice as long each time that all trunks were tried in vain.
    fn back_off(&self, tries: u32, trunks: usize) -> SignedDuration {
        let trunks = u32::try_from(trunks).unwrap_or(u32::MAX).max(1);
        let rounds = tries.div_ceil(trunks).saturating_sub(1).min(16);
        let doubled = self.times.first_retry.saturating_mul(1 << rounds);
        doubled
            .min(self.times.longest_retry)
            .max(SignedDuration::from_secs(1))
    }
}

/// The trunks that were tried for a call since it was claimed, and what they said.
#[derive(Default)]
struct TriedTrunks {
    names: Vec<String>,
    /// One of them may carry the call later.
    may_wait: bool,
    /// So soon one of those wants to be asked again (Retry-After).
    soonest: Option<SignedDuration>,
    last: Option<EndReason>,
}

impl TriedTrunks {
    fn add(&mut self, trunk: &str, failure: &Failure, judgement: Judgement) {
        self.names.push(trunk.to_owned());
        if judgement.verdict != Verdict::NextTrunk {
            let asked = failure.retry_after.unwrap_or_default().min(LONGEST_WAIT);
            let asked = SignedDuration::try_from(asked).unwrap_or_default();
            self.soonest = Some(self.soonest.map_or(asked, |known| known.min(asked)));
            self.may_wait = true;
        }
        self.last = Some(EndReason::of_failure(failure, judgement.outcome));
    }

    /// How the call ends if there is no trunk left and none asked to wait.
    fn all_refused(&mut self) -> Option<EndReason> {
        self.last.take_if(|_| !self.may_wait)
    }
}

/// How a trunk that was tried has done.
struct EndedTry {
    ending: Ending,
    /// On its last leg.
    heard: Option<Hearing>,
    /// Something of the message was played on it.
    has_begun: bool,
    leave: Result<(), NoLeave>,
    /// The server stops.
    is_cut_off: bool,
}

fn conclude(
    progress: &mut DialProgress,
    ended: EndedTry,
    now: Timestamp,
    policy: &ResponsePolicy,
) -> Tried {
    let (leave, heard) = (ended.leave, ended.heard);
    match ended.ending {
        Ending::Talked { time, .. } => {
            progress.talked(time, now);
            // Whoever has pressed a key was there, whatever the line has sounded like since. Where it is only reported, nothing else changes.
            let machine = progress.claimed.call.machine();
            if progress.choice.is_none()
                && machine.is_none_or(MachineDetection::waits)
                && let Some(reason) = heard.and_then(EndReason::of_tone)
            {
                return Tried::Ended(reason);
            }
            let answered_by = heard.and_then(|heard| heard.answered_by);
            let call = &progress.claimed.call;
            let outcome = match call.answered(progress.choice, answered_by, ended.has_begun) {
                // As in a crash: nobody had the time to confirm that they would have had.
                Outcome::Unconfirmed if ended.is_cut_off => Outcome::Interrupted,
                outcome => outcome,
            };
            Tried::Ended(EndReason::plain(outcome))
        }
        Ending::Failed(_) if leave == Err(NoLeave::TakenOver) => Tried::TakenOver,
        Ending::Failed(failure) if failure.cause == Cause::Withheld && !failure.rang => {
            tracing::warn!(reason = ?leave.err(), "there was no leave to dial");
            Tried::Withheld
        }
        Ending::Failed(failure) => {
            let judgement = end_reason::judge(&failure, policy);
            let judgement = end_reason::with_heard(judgement, heard);
            // A callee who answered in the moment in which we gave up, or could not be talked to, is not billed.
            progress.answered_at = None;
            let call = &progress.claimed.call;
            if judgement.verdict != Verdict::Final && !failure.rang {
                return Tried::Refused(failure, judgement);
            }
            let outcome = match judgement.outcome {
                // As in a crash: nobody wanted the notice to end.
                Outcome::Cancelled if ended.is_cut_off && call.notice.is_some() => {
                    Outcome::Interrupted
                }
                outcome => outcome,
            };
            Tried::Ended(EndReason::of_failure(&failure, outcome))
        }
    }
}

fn is_progress(event: &CallEvent) -> bool {
    matches!(event, CallEvent::Ringing(_) | CallEvent::Answered(..))
}

fn count_packets(legs: &[LegRecord]) {
    let sent = legs.iter().map(|leg| u64::from(leg.media.packets_sent));
    let late = legs.iter().map(|leg| u64::from(leg.media.packets_late));
    metrics::counter!("clarion_media_packets_total").increment(sent.sum());
    metrics::counter!("clarion_media_packets_late_total").increment(late.sum());
}
