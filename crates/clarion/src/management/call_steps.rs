//! What has happened to a call so far, step by step, as the database tells it.
//!
//! All steps are made anew from what is stored, at each look. So none is missing, however short it was and whoever looks when; each has an identity by which a
//! watcher knows those that it has told.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::domain::attempt::{Attempt, AttemptNumber, CallHistory, LegOfCall};
use crate::domain::call::CallSid;
use crate::domain::call_record::{CallRecord, CurrentAttempt};
use crate::domain::call_state::CallState;
use crate::domain::callback::{Callback, CallbackKey, CallbackState};
use crate::domain::hearing::Hearing;
use crate::domain::leg::{HangUpReason, HungUpBy, Leg, LegKey};
use crate::domain::notice::ending::NoticeEnding;
use crate::domain::notice::plan::FollowUp;
use crate::domain::outcome::Outcome;
use crate::domain::phone_number::PhoneNumber;
use crate::store::{Store, StoreError};

/// Everything that is stored of a call, at one look.
#[derive(Debug)]
pub struct SeenCall {
    pub record: CallRecord,
    pub history: CallHistory,
    /// The final one, if it is owed.
    pub callback: Option<Callback>,
}

impl SeenCall {
    /// Looks again. What cannot have changed is not read again. `None` if there is no such call.
    pub(super) async fn again(
        before: Option<Self>,
        store: &dyn Store,
        call: &CallSid,
    ) -> Result<Option<Self>, StoreError> {
        let Some(record) = store.call_record(call).await? else {
            return Ok(None);
        };
        let history = match before {
            // Attempts and legs are stored by commits that change the record as well.
            Some(before) if before.record == record => before.history,
            _ => store.call_history(call).await?,
        };
        let callback = if record.state == CallState::Ended {
            let found = store.callback(&CallbackKey::of_end(call.clone())).await?;
            found.map(|(callback, _)| callback)
        } else {
            None
        };
        Ok(Some(Self {
            record,
            history,
            callback,
        }))
    }

    /// The attempt that the call is at, unless it ended between two looks.
    pub fn current(&self) -> Option<&CurrentAttempt> {
        let is_over = |number| {
            let mut attempts = self.history.attempts.iter();
            attempts.any(|attempt| attempt.number == number)
        };
        let current = self.record.current.as_ref();
        current.filter(|current| !is_over(current.number))
    }

    /// Why an attempt to this number came, or comes, after the attempts before it.
    pub fn why(&self, number: AttemptNumber, to: &PhoneNumber) -> Option<FollowUp> {
        let attempts = &self.history.attempts;
        let before = attempts.partition_point(|attempt| attempt.number < number);
        let notice = self.record.notice.as_deref()?;
        notice.why(to, &attempts[..before])
    }

    /// Everything that has happened until now, in order.
    pub fn steps(&self, now: Timestamp) -> Vec<CallStep> {
        let mut steps = vec![self.queued()];
        for attempt in &self.history.attempts {
            steps.extend(self.follow_up(attempt.number, &attempt.to));
            let legs = self.legs_of(attempt.number);
            if let (true, Some(at)) = (legs.is_empty(), attempt.dialled_at) {
                steps.push(dialling(at, attempt.number, &attempt.to, None));
            }
            steps.extend(leg_steps(&attempt.to, &legs, true));
            steps.extend(hang_up(attempt, legs.last().map(|leg| &leg.leg)));
        }
        if let Some(current) = self.current() {
            steps.extend(self.follow_up(current.number, &current.to));
            let legs = self.legs_of(current.number);
            steps.extend(leg_steps(&current.to, &legs, false));
            steps.extend(self.under_way(current, now));
        }
        steps.extend(self.ended());
        let callback = self.callback.as_ref();
        steps.extend(callback.map(|callback| CallStep::of_callback(callback, now)));
        steps
    }

    fn legs_of(&self, attempt: AttemptNumber) -> Vec<&LegOfCall> {
        let legs = self.history.legs.iter();
        legs.filter(|leg| leg.attempt == attempt).collect()
    }

    fn queued(&self) -> CallStep {
        let to = self.record.number.clone();
        CallStep::new(self.record.accepted_at, CallStepKind::Queued { to })
    }

    /// Another attempt follows: of the same number, or of the next one.
    fn follow_up(&self, number: AttemptNumber, to: &PhoneNumber) -> Option<CallStep> {
        let why = self.why(number, to)?;
        let attempts = self.history.attempts.iter();
        let mut before = attempts.filter(|attempt| attempt.number < number);
        let last = before.next_back()?;
        let kind = CallStepKind::FollowUp {
            to: to.clone(),
            why,
        };
        Some(CallStep::new(last.ended_at, kind).of(number))
    }

    /// What the attempt has come to that is not over.
    fn under_way(&self, current: &CurrentAttempt, now: Timestamp) -> Vec<CallStep> {
        let (record, number) = (&self.record, current.number);
        let mut steps = Vec::new();
        if let (CallState::Queued, Some(until)) = (record.state, record.due_at)
            && until > now
        {
            let step = CallStep::new(now, CallStepKind::Waiting { until });
            steps.push(step.of(number).told_by(until.as_second()));
        }
        if let Some(at) = record.dialled_at {
            steps.push(dialling(at, number, &current.to, record.trunk.as_deref()));
        }
        let step = |at, kind| CallStep::new(at, kind).of(number);
        steps.extend(record.rang_at.map(|at| step(at, CallStepKind::Ringing)));
        steps.extend(
            record
                .answered_at
                .map(|at| step(at, CallStepKind::Answered)),
        );
        steps
    }

    fn ended(&self) -> Option<CallStep> {
        let record = &self.record;
        let (at, outcome) = (record.ended_at?, record.outcome?);
        let attempts = self.history.attempts.iter();
        let kind = CallStepKind::Ended {
            outcome,
            ending: record.ending,
            dialled: attempts
                .filter(|attempt| attempt.dialled_at.is_some())
                .count(),
            state: record.callback_state()?,
        };
        Some(CallStep::new(at, kind))
    }
}

/// How much of a message the callee was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayedMessage {
    pub played: Duration,
    pub whole: Duration,
}

impl PlayedMessage {
    /// `None` if no sound was sent.
    fn of(leg: &Leg) -> Option<Self> {
        leg.media.codec.as_ref()?;
        Some(Self {
            played: leg.media.played,
            whole: leg.media.to_play,
        })
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStepKind {
    Queued {
        to: PhoneNumber,
    },
    /// Another attempt comes.
    FollowUp {
        to: PhoneNumber,
        why: FollowUp,
    },
    Waiting {
        until: Timestamp,
    },
    /// Over a trunk, where that is known.
    Dialling {
        to: PhoneNumber,
        trunk: Option<String>,
    },
    Ringing,
    Answered,
    /// It is known who has answered, or what the network says.
    Heard(Hearing),
    Key(char),
    /// A leg ended, and the attempt went on.
    Refused {
        trunk: String,
        sip_code: Option<u16>,
        /// `None` if nothing was said.
        response: Option<String>,
    },
    /// The end of an attempt that was dialled.
    HangUp {
        to: PhoneNumber,
        outcome: Outcome,
        talk: Option<SignedDuration>,
        sip_code: Option<u16>,
        /// What was said instead of an answer.
        response: Option<String>,
        /// Who ended the talk, and what was played of the message in it.
        by: Option<HungUpBy>,
        /// Where we have ended it.
        reason: Option<HangUpReason>,
        played: Option<PlayedMessage>,
    },
    Ended {
        outcome: Outcome,
        ending: Option<NoticeEnding>,
        /// Attempts that were dialled.
        dialled: usize,
        /// That of the callback.
        state: char,
    },
    /// What became of the final callback.
    Callback {
        state: CallbackState,
        host: String,
        attempts: u32,
        due: Option<Timestamp>,
    },
}

impl CallStepKind {
    /// A word of the API's events, where there is one for it.
    pub fn event(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::FollowUp {
                why: FollowUp::Redial,
                ..
            } => "redial",
            Self::FollowUp { .. } => "escalated",
            Self::Waiting { .. } => "waiting",
            Self::Dialling { .. } => "dialling",
            Self::Ringing => "ringing",
            Self::Answered => "answered",
            Self::Heard(_) => "heard",
            Self::Key(_) => "key",
            Self::Refused { .. } => "refused",
            Self::HangUp { .. } => "hangup",
            Self::Ended { .. } => "ended",
            Self::Callback { .. } => "callback",
        }
    }
}

/// One thing that has happened to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStep {
    pub at: Timestamp,
    pub kind: CallStepKind,
    pub attempt: Option<AttemptNumber>,
    /// Tells it from every other step of its call, at each look the same.
    pub identity: String,
}

impl CallStep {
    fn new(at: Timestamp, kind: CallStepKind) -> Self {
        Self {
            at,
            identity: kind.event().to_owned(),
            kind,
            attempt: None,
        }
    }

    fn of(mut self, attempt: AttemptNumber) -> Self {
        self.attempt = Some(attempt);
        self.told_by(attempt.number())
    }

    /// What tells it from other steps of this event.
    fn told_by(mut self, what: impl std::fmt::Display) -> Self {
        self.identity = format!("{} {what}", self.identity);
        self
    }

    /// What has become of the final callback until now.
    pub fn of_callback(callback: &Callback, now: Timestamp) -> Self {
        let (state, attempts) = (callback.state, callback.attempts);
        let ended = callback.finished_at.unwrap_or(callback.owed_at);
        let at = match state {
            CallbackState::Waiting | CallbackState::Delivering if attempts == 0 => callback.owed_at,
            CallbackState::Waiting | CallbackState::Delivering => now,
            CallbackState::Delivered | CallbackState::GivenUp | CallbackState::Superseded => ended,
        };
        let kind = CallStepKind::Callback {
            state,
            host: callback.url.host(),
            attempts,
            due: callback.due_at,
        };
        // While it waits, an attempt that has failed is news; that one is under way is none.
        let told_by = match state {
            CallbackState::Waiting | CallbackState::Delivering => "open",
            settled => settled.as_str(),
        };
        let due = callback.due_at.map(Timestamp::as_millisecond);
        let due = due.filter(|_| attempts > 0).unwrap_or_default();
        Self::new(at, kind).told_by(format!("{told_by} {attempts} {due}"))
    }
}

/// The legs of one attempt that are over. Of an attempt that is over, the last leg ended with it.
fn leg_steps(to: &PhoneNumber, legs: &[&LegOfCall], is_over: bool) -> Vec<CallStep> {
    let mut steps = Vec::new();
    for (place, of_call) in legs.iter().enumerate() {
        let (leg, attempt) = (&of_call.leg, of_call.attempt);
        let step = |at, kind| CallStep::new(at, kind).of(attempt);
        steps.push(dialling(leg.sent_at, attempt, to, Some(&leg.trunk)));
        steps.extend(leg.rang_at.map(|at| step(at, CallStepKind::Ringing)));
        steps.extend(leg.answered_at.map(|at| step(at, CallStepKind::Answered)));
        if let Some(heard) = leg.heard {
            let since = leg.answered_at.or(leg.rang_at).unwrap_or(leg.sent_at);
            let at = later(since, heard.after).min(leg.ended_at);
            steps.push(step(at, CallStepKind::Heard(heard)).told_by(of_call.number));
        }
        if let Some(at) = leg.answered_at {
            steps.extend(key_steps(leg, at, attempt));
        }
        if !is_over || place + 1 < legs.len() {
            let kind = CallStepKind::Refused {
                trunk: leg.trunk.clone(),
                sip_code: leg.sip_code,
                response: leg.response(),
            };
            steps.push(step(leg.ended_at, kind).told_by(of_call.number));
        }
    }
    steps
}

fn key_steps(leg: &Leg, answered: Timestamp, attempt: AttemptNumber) -> Vec<CallStep> {
    let keys = leg.keys.iter().enumerate();
    let step = |(place, pressed): (usize, &LegKey)| {
        let at = later(answered, pressed.after);
        let step = CallStep::new(at, CallStepKind::Key(pressed.key));
        step.of(attempt).told_by(place)
    };
    keys.map(step).collect()
}

fn later(moment: Timestamp, time: Duration) -> Timestamp {
    let time = SignedDuration::try_from(time).unwrap_or_default();
    moment.saturating_add(time).unwrap_or(moment)
}

/// One for each trunk that an attempt is tried over.
fn dialling(
    at: Timestamp,
    attempt: AttemptNumber,
    to: &PhoneNumber,
    trunk: Option<&str>,
) -> CallStep {
    let kind = CallStepKind::Dialling {
        to: to.clone(),
        trunk: trunk.map(str::to_owned),
    };
    let step = CallStep::new(at, kind).of(attempt);
    step.told_by(trunk.unwrap_or_default())
}

fn hang_up(attempt: &Attempt, last: Option<&Leg>) -> Option<CallStep> {
    attempt.dialled_at?;
    let talk = attempt.answered_at;
    let talk = talk.map(|answered| attempt.ended_at.duration_since(answered));
    let kind = CallStepKind::HangUp {
        to: attempt.to.clone(),
        outcome: attempt.outcome,
        talk,
        sip_code: last.and_then(|leg| leg.sip_code),
        response: last.filter(|_| talk.is_none()).and_then(Leg::response),
        by: last.filter(|_| talk.is_some()).map(|leg| leg.hung_up_by),
        reason: last.and_then(|leg| leg.hang_up_reason),
        played: last.and_then(PlayedMessage::of),
    };
    Some(CallStep::new(attempt.ended_at, kind).of(attempt.number))
}
