//! Writes down what happens to a call: how far it has come, its return to the queue, its end. Every change is guarded by the call's lease.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use phone::call::{AnswerRecorded, CallEvent, ChoiceRecorded, KeyChoice, LeaveRequest};
use phone::signalling::{DialogSnapshot, Leave};
use supervisor::PanicPoint;
use tokio::time::{Instant, timeout};

use super::answer_notes::{AnswerNote, AnswerNotes};
use super::dial_progress::{DialProgress, TrunkTry};
use super::end_reason::EndReason;
use super::line_events::{LineEvents, stored};
use super::node::Node;
use super::notices::{Leaving, NoticePlanner, NoticeStep};
use super::planted::{self, PlantedBug};
use super::running::RunningCalls;
use super::trunk_pool::TrunkPool;
use crate::callbacks::OwedSignal;
use crate::domain::call::NewCall;
use crate::domain::call_state::CallState;
use crate::domain::callback::{CallReport, EventSubscription, OwedCallback, OwedEvent, StateEvent};
use crate::domain::claim::{CallUpdate, ClaimedCall, Requeue, WatchedUpdate};
use crate::domain::ended_call::{EndedCall, GoingOn, WentOn};
use crate::domain::notice::ending::NoticeEnding;
use crate::domain::notice::keys::CalleeChoice;
use crate::domain::outcome::Outcome;
use crate::seldom::Seldom;
use crate::store::StoreError;

/// A callee is kept waiting for no longer by a database that is away: their answer is noted.
const SLOW_COMMIT: Duration = Duration::from_millis(100);
/// A commit that fails is tried again: the database may be away for a moment.
pub const RETRY_COMMIT: Duration = Duration::from_millis(500);
/// Commits that failed: while a database is away, every call tries again.
static FAILURES: Seldom = Seldom::new();

/// Why an INVITE got no leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLeave {
    /// Another node has taken the call over.
    TakenOver,
    /// The database did not take that the call is dialled.
    Unwritten,
    /// No heartbeat has been written for too long: another node may take the call over at any moment.
    LeaseLost,
}

/// A choice of the callee that is not written down yet. They hear that it was understood as soon as it is.
#[derive(Debug)]
pub struct UnrecordedChoice {
    choice: CalleeChoice,
    recorded: ChoiceRecorded,
}

/// What has happened and is not written down yet.
#[derive(Default)]
struct Unrecorded {
    /// Of several events only the furthest is written: it says more than those before it.
    furthest: Option<CallUpdate>,
    /// Answers that are not acknowledged before they are durable.
    waiting: Vec<AnswerRecorded>,
}

impl Unrecorded {
    /// An answer is told at once; the ringing before it may come after it.
    fn add(&mut self, update: CallUpdate) {
        let is_further = |known: &CallUpdate| known.state().number() <= update.state().number();
        if self.furthest.as_ref().is_none_or(is_further) {
            self.furthest = Some(update);
        }
    }
}

#[derive(Debug, Clone)]
pub struct CallRecorder {
    pub node: Node,
    pub running: Arc<RunningCalls>,
    pub planner: Arc<NoticePlanner>,
    pub notes: Arc<AnswerNotes>,
    /// To be told when a callback or an event may be owed.
    pub owed: Arc<OwedSignal>,
    /// A call's progress has been recorded.
    pub recorded_point: PanicPoint,
}

impl CallRecorder {
    /// Records what has happened on the line and what could not be written before, and gives leave to INVITEs that are ready. An error if one got none.
    pub async fn record_progress(
        &self,
        progress: &mut DialProgress,
        trunk_try: &TrunkTry,
        chosen: &mut Option<UnrecordedChoice>,
        events: Vec<CallEvent>,
    ) -> Result<(), NoLeave> {
        let now = self.node.clock.now();
        let mut unrecorded = Unrecorded {
            furthest: progress.unwritten.take(),
            ..Unrecorded::default()
        };
        for event in events {
            match event {
                CallEvent::Ready(dialog, request) => {
                    // What an earlier leg has done first: its dialog must not be written over the new one.
                    self.write(progress, std::mem::take(&mut unrecorded)).await;
                    self.give_leave(progress, trunk_try, &dialog, request)
                        .await?;
                }
                CallEvent::Ringing(dialog) => {
                    progress.rang_at.get_or_insert(now);
                    let dialog = dialog.as_deref().and_then(stored);
                    unrecorded.add(CallUpdate::Ringing { at: now, dialog });
                }
                CallEvent::Answered(dialog, recorded) => {
                    progress.answered_at.get_or_insert(now);
                    unrecorded.waiting.push(recorded);
                    let dialog = dialog.as_deref().and_then(stored);
                    unrecorded.add(CallUpdate::Answered { at: now, dialog });
                }
                CallEvent::Key(key) => tracing::info!(%key, "the callee pressed a key"),
                CallEvent::Chosen(choice, recorded) => {
                    let choice = callee_choice(choice);
                    progress.choice.get_or_insert(choice);
                    *chosen = Some(UnrecordedChoice { choice, recorded });
                }
            }
        }
        self.write(progress, unrecorded).await;
        self.write_choice(progress, chosen).await;
        Ok(())
    }

    /// Waits for a step of the recording. An answer that comes meanwhile would have to wait for it: it is noted.
    pub async fn note_answers_during<T>(
        &self,
        step: impl Future<Output = T>,
        trunk: &str,
        events: &mut LineEvents,
    ) -> T {
        let mut step = pin!(step);
        let mut due = None;
        loop {
            let is_over = events.is_over;
            match (events.answer(), due) {
                (Some(_), None) => due = Some(Instant::now() + SLOW_COMMIT),
                (Some((dialog, recorded)), Some(at)) if at <= Instant::now() => {
                    self.note(self.node.clock.now(), trunk, dialog.as_ref())
                        .await;
                    recorded.done();
                    due = None;
                }
                (_, due) => {
                    let waiting = tokio::time::sleep_until(due.unwrap_or_else(Instant::now));
                    tokio::select! {
                        biased;
                        done = &mut step => return done,
                        () = waiting, if due.is_some() => {}
                        () = events.receive(), if !is_over => {}
                    }
                }
            }
        }
    }

    /// After the answer. What the database does not take now is tried again while the callee waits; if they do not, the end makes it good.
    async fn write_choice(
        &self,
        progress: &mut DialProgress,
        chosen: &mut Option<UnrecordedChoice>,
    ) {
        if progress.unwritten.is_some() {
            return;
        }
        let Some(UnrecordedChoice { choice, recorded }) = chosen.take() else {
            return;
        };
        let keys = progress.claimed.call.keys();
        let key = choice.confirming_key().or(keys.and_then(|keys| keys.stop));
        let now = self.node.clock.now();
        let step = WatchedUpdate {
            update: CallUpdate::Chosen { at: now, choice },
            event: key.and_then(|key| self.event(progress, StateEvent::Key(key), now)),
        };
        match self.advance(&progress.claimed, step).await {
            Ok(true) => recorded.done(),
            // Somebody has cancelled it before, or it is not ours any more, and whoever has it does not know of this.
            Ok(false) => progress.choice = progress.choice.filter(|first| *first != choice),
            Err(_) => *chosen = Some(UnrecordedChoice { choice, recorded }),
        }
        self.recorded_point.reach();
    }

    async fn write(&self, progress: &mut DialProgress, mut unrecorded: Unrecorded) {
        if let Some(update) = unrecorded.furthest.take() {
            let sid = &progress.claimed.call.sid;
            self.running.set_state(sid, update.state());
            let event = match &update {
                CallUpdate::Ringing { at, .. } => self.event(progress, StateEvent::Ringing, *at),
                CallUpdate::Answered { at, .. } => self.event(progress, StateEvent::Answered, *at),
                CallUpdate::Dialling { .. } | CallUpdate::Chosen { .. } => None,
            };
            let step = WatchedUpdate {
                update: update.clone(),
                event,
            };
            // If the call is not ours any more, the next heartbeat hangs it up. What could not be written is made good by the end at the
            // latest.
            let mut advancing = pin!(self.advance(&progress.claimed, step));
            let advanced = match timeout(SLOW_COMMIT, &mut advancing).await {
                Ok(Ok(ours)) => Ok(ours),
                Ok(Err(error)) => {
                    self.note_answer(progress, &update, &unrecorded.waiting)
                        .await;
                    Err(error)
                }
                Err(_slow) => {
                    self.note_answer(progress, &update, &unrecorded.waiting)
                        .await;
                    unrecorded.waiting.clear();
                    advancing.await
                }
            };
            progress.unwritten = advanced.is_err().then_some(update);
            self.recorded_point.reach();
        }
        drop(unrecorded.waiting);
    }

    /// An answer that the database does not take now is noted beside it: should this process be lost, the next one can hang up.
    async fn note_answer(
        &self,
        progress: &DialProgress,
        update: &CallUpdate,
        waiting: &[AnswerRecorded],
    ) {
        // It is noted already, while it waited, or when it was tried before.
        if waiting.iter().all(AnswerRecorded::is_done) {
            return;
        }
        if let (CallUpdate::Answered { at, dialog }, Some(trunk)) = (update, &progress.trunk) {
            self.note(*at, trunk, dialog.as_ref()).await;
        }
    }

    /// Notes what it takes to hang up.
    pub async fn note(&self, at: Timestamp, trunk: &str, dialog: Option<&String>) {
        if let Some(dialog) = dialog {
            let note = AnswerNote {
                at,
                trunk: trunk.to_owned(),
                dialog: dialog.clone(),
            };
            self.notes.keep(&note).await;
        }
    }

    /// Commits that the call is dialled, with what it takes to end the leg, and then gives leave to send the INVITE while the lease holds.
    /// So a call that may have been dialled is never dialled again by itself, and can be ended from another process.
    async fn give_leave(
        &self,
        progress: &mut DialProgress,
        trunk_try: &TrunkTry,
        dialog: &DialogSnapshot,
        request: LeaveRequest,
    ) -> Result<(), NoLeave> {
        let now = self.node.clock.now();
        // Before the commit: it says that the call was ours at a moment since then.
        let lease = self.node.lease_watch.current().ok_or(NoLeave::LeaseLost)?;
        let may_leave = move || lease.holds() || planted::is(PlantedBug::LeaseNotChecked);
        let mut leave = Some((request, Leave::while_holds(may_leave)));
        if planted::is(PlantedBug::InviteBeforeCommit) {
            grant(leave.take());
        }
        let dialling = CallUpdate::Dialling {
            tries: trunk_try.number,
            trunk: trunk_try.trunk.clone(),
            at: now,
            dialog: stored(dialog).ok_or(NoLeave::Unwritten)?,
        };
        // Further legs of an attempt are no news.
        let is_first = progress.dialled_at.is_none() && progress.claimed.legs_before == 0;
        let event = is_first.then(|| self.event(progress, StateEvent::Dialling, now));
        let step = WatchedUpdate {
            update: dialling,
            event: event.flatten(),
        };
        match self.advance(&progress.claimed, step).await {
            Ok(true) => {}
            Ok(false) => return Err(NoLeave::TakenOver),
            Err(_) => return Err(NoLeave::Unwritten),
        }
        // It would be written over what belongs to this leg.
        progress.unwritten = None;
        let sid = &progress.claimed.call.sid;
        self.running.set_state(sid, CallState::Dialling);
        measure_setup(progress, trunk_try, self.node.clock.now());
        progress.trunk = Some(trunk_try.trunk.clone());
        progress.dialled_at.get_or_insert(now);
        grant(leave);
        Ok(())
    }

    /// False if the call is not ours any more.
    async fn advance(
        &self,
        claimed: &ClaimedCall,
        step: WatchedUpdate,
    ) -> Result<bool, StoreError> {
        let (sid, lease) = (&claimed.call.sid, &claimed.lease);
        let is_told = step.event.is_some();
        let advanced = self.node.store.advance_call(sid, lease, step).await;
        if is_told {
            let call = &claimed.call;
            let receiver = call.events.as_ref().map(EventSubscription::receiver);
            self.owed.is_owed_at(&call.account, &call.app, receiver);
        }
        advanced.inspect_err(|error| {
            if let Some(unsaid) = FAILURES.say() {
                tracing::error!(%error, unsaid, "the state of a call could not be written");
            }
        })
    }

    /// What those who watch the call are told of this attempt.
    fn event(
        &self,
        progress: &DialProgress,
        event: StateEvent,
        at: Timestamp,
    ) -> Option<OwedEvent> {
        let claimed = &progress.claimed;
        OwedEvent::new(
            &claimed.call,
            event,
            Some(claimed.about()),
            at,
            self.node.clock.zone(),
        )
    }

    /// Keeps only as much money reserved as the message costs. The seconds that it pays for, where money is a limit.
    pub async fn tighten_reservation(
        &self,
        claimed: &ClaimedCall,
        seconds: u32,
    ) -> Result<Option<u32>, StoreError> {
        if !claimed.is_reserved {
            return Ok(None);
        }
        let (sid, lease) = (&claimed.call.sid, &claimed.lease);
        let paid = self.node.store.paid_talk(sid, lease, seconds);
        paid.await.inspect_err(|error| {
            if let Some(unsaid) = FAILURES.say() {
                tracing::error!(%error, unsaid, "a reservation could not be tightened");
            }
        })
    }

    /// Puts a call back into the queue, due after a pause, with the legs that it has had.
    pub async fn requeue(&self, progress: DialProgress, pause: SignedDuration) {
        self.put_back(progress, pause, false).await;
    }

    /// The same, where the number cannot be reached now: it loses its turn when its patience is over.
    pub async fn hold_back(&self, progress: DialProgress, pause: SignedDuration) {
        self.put_back(progress, pause, true).await;
    }

    async fn put_back(&self, progress: DialProgress, pause: SignedDuration, is_held_back: bool) {
        let requeue = Requeue {
            pause,
            tries: progress.tries,
            legs: progress.legs,
            is_held_back,
        };
        let store = &self.node.store;
        loop {
            match store.requeue_call(&progress.claimed, requeue.clone()).await {
                Ok(_) => return,
                Err(error) => {
                    if let Some(unsaid) = FAILURES.say() {
                        tracing::error!(%error, unsaid, "a call could not be put back; trying again");
                    }
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
        let ending = reason.ending;
        let ended = self.ended_call(progress, reason, ended_at);
        let mut in_doubt = false;
        loop {
            match self.write_end(&ended, ending).await {
                Ok(true) => break,
                // An earlier try may have written it, and what it owes is told by nobody else.
                Ok(false) if in_doubt => return self.tell_what_is_owed(&ended.claimed.call),
                Ok(false) => {
                    tracing::warn!("the call had been taken over; its end is not ours to write");
                    return;
                }
                Err(error) => {
                    in_doubt |= error.is_unknown();
                    if let Some(unsaid) = FAILURES.say() {
                        tracing::error!(%error, unsaid, "the end of a call could not be written; trying again");
                    }
                    tokio::time::sleep(RETRY_COMMIT).await;
                }
            }
        }
        let outcome = ended.outcome.as_str();
        let what = match ended.claimed.call.notice {
            Some(_) => "attempt",
            None => "call",
        };
        metrics::counter!("clarion_calls_ended_total", "outcome" => outcome).increment(1);
        tracing::info!(
            outcome,
            to = %ended.claimed.call.number,
            seconds = ended.seconds(),
            trunk = ended.trunk,
            reason = ended.reason,
            "the {what} has ended"
        );
        self.tell_what_is_owed(&ended.claimed.call);
    }

    fn tell_what_is_owed(&self, call: &NewCall) {
        let receivers = call.receivers();
        self.owed.is_owed_at(&call.account, &call.app, receivers);
    }

    /// False if the call is not ours any more.
    async fn write_end(
        &self,
        ended: &EndedCall,
        ending: Option<NoticeEnding>,
    ) -> Result<bool, StoreError> {
        let store = &self.node.store;
        let Some(notice) = ended.claimed.call.notice.as_deref() else {
            return store.end_call(ended.clone()).await;
        };
        let leaving = Leaving::Ended(ending);
        match self.planner.step(notice, ended, leaving).await? {
            NoticeStep::Over(ended) => store.end_call(*ended).await,
            NoticeStep::GoesOn(going) => Ok(self.go_on(*going).await? != WentOn::NotOurs),
        }
    }

    /// A number that is held back, or for which no trunk can be used, loses its turn to the next one of its notice that a trunk can be used for. Where no
    /// other has one, it goes on waiting.
    pub async fn pass(&self, progress: DialProgress, pool: &TrunkPool) {
        let why = "the number was held back, or no trunk could be used for it, for longer than its interval";
        // What trunks have refused before is an attempt that was made.
        let outcome = match progress.claimed.legs_before {
            0 => Outcome::Cancelled,
            _ => Outcome::TrunkFailure,
        };
        let reason = EndReason::because(outcome, why);
        let ended = self.ended_call(progress.clone(), reason, self.node.clock.now());
        let step = match progress.claimed.call.notice.as_deref() {
            Some(notice) => {
                let leaving = Leaving::HeldBack(pool);
                self.planner.step(notice, &ended, leaving).await.ok()
            }
            None => None,
        };
        if let Some(NoticeStep::GoesOn(going)) = step
            && self.go_on(*going).await.is_ok()
        {
            return;
        }
        self.hold_back(progress, SignedDuration::ZERO).await;
    }

    async fn go_on(&self, going: GoingOn) -> Result<WentOn, StoreError> {
        let (to, pause) = (going.next.to.number.clone(), going.next.pause);
        let call = going.ended.claimed.call.clone();
        let went_on = self.node.store.go_on(going).await?;
        if went_on == WentOn::Yes {
            let seconds = pause.as_secs();
            tracing::info!(%to, seconds, "the next attempt of the notice is queued");
        }
        self.tell_what_is_owed(&call);
        Ok(went_on)
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
            choice: progress.choice,
            voice: progress.voice,
            trunk: progress.trunk,
            tries: progress.tries,
            dialled_at: progress.dialled_at,
            rang_at: progress.rang_at,
            answered_at: progress.answered_at,
            ended_at,
            sip_code: reason.sip_code,
            reason: reason.text,
            legs: progress.legs,
            bill_day: ended_at.to_zoned(zone.clone()).date(),
            notice: None,
            callback: None,
            events: Vec::new(),
            if_called_off: None,
        };
        let call = &ended.claimed.call;
        if call.notice.is_some() {
            return ended;
        }
        ended.callback = call.resp_url.clone().map(|url| {
            let report = CallReport {
                call: &call.sid,
                kind: call.kind,
                called: &call.called,
                outcome: ended.outcome,
                dialled_at: ended.dialled_at,
                answered_at: ended.answered_at,
                ended_at,
                user_data: call.user_data.as_deref(),
                notice: None,
            };
            OwedCallback::new(&report, call.app.clone(), url, zone)
        });
        ended.events = ended.last_events(ended.outcome, zone);
        ended
    }
}

fn grant(leave: Option<(LeaveRequest, Leave)>) {
    if let Some((request, leave)) = leave {
        request.grant(leave);
    }
}

fn callee_choice(choice: KeyChoice) -> CalleeChoice {
    match choice {
        KeyChoice::Confirmed(key) => CalleeChoice::Confirmed(key),
        KeyChoice::Stopped => CalleeChoice::Stopped,
    }
}

/// From accept to the first INVITE, the wait in the queue included. Further tries are not counted.
fn measure_setup(progress: &DialProgress, trunk_try: &TrunkTry, now: Timestamp) {
    if trunk_try.number == 1 && progress.dialled_at.is_none() {
        let waited = now.duration_since(progress.claimed.call.accepted_at);
        metrics::histogram!("clarion_call_setup_seconds").record(waited.as_secs_f64());
    }
}
