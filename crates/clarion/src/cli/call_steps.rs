//! What has happened to a call so far, step by step, as the database tells it.
//!
//! All steps are made anew from what is stored, at each look. So none is missing, however short it was and whoever looks when; each has an identity by which a
//! watcher knows those that it has told.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::call_story::{local, response};
use crate::clock::Clock;
use crate::domain::attempt::{Attempt, AttemptNumber, CallHistory, LegOfCall};
use crate::domain::call::CallSid;
use crate::domain::call_record::{CallRecord, CurrentAttempt};
use crate::domain::call_state::CallState;
use crate::domain::callback::{Callback, CallbackKey, CallbackState};
use crate::domain::leg::{Leg, LegKey};
use crate::domain::notice::ending::NoticeEnding;
use crate::domain::notice::plan::FollowUp;
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
    /// `None` if there is no such call.
    pub async fn look(store: &dyn Store, call: &CallSid) -> Result<Option<Self>, StoreError> {
        Self::again(None, store, call).await
    }

    /// Looks again. What cannot have changed is not read again.
    pub async fn again(
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

    /// Everything that has happened, in order.
    pub fn steps(&self, clock: &Clock) -> Vec<CallStep> {
        let mut steps = vec![self.queued()];
        for attempt in &self.history.attempts {
            steps.extend(self.follow_up(attempt.number, &attempt.to));
            let legs = self.legs_of(attempt.number);
            if let (true, Some(at)) = (legs.is_empty(), attempt.dialled_at) {
                steps.push(dialling(at, attempt.number, &attempt.to, None));
            }
            steps.extend(leg_steps(&attempt.to, &legs, true));
            steps.extend(hangup(attempt, legs.last().map(|leg| &leg.leg)));
        }
        if let Some(current) = self.current() {
            steps.extend(self.follow_up(current.number, &current.to));
            let legs = self.legs_of(current.number);
            steps.extend(leg_steps(&current.to, &legs, false));
            steps.extend(self.under_way(current, clock));
        }
        steps.extend(self.ended());
        let callback = self.callback.as_ref();
        steps.extend(callback.map(|callback| callback_step(callback, clock)));
        steps
    }

    fn legs_of(&self, attempt: AttemptNumber) -> Vec<&LegOfCall> {
        let legs = self.history.legs.iter();
        legs.filter(|leg| leg.attempt == attempt).collect()
    }

    fn queued(&self) -> CallStep {
        let to = self.record.number.to_string();
        CallStep::new(self.record.accepted_at, "queued")
            .saying(format!("for {to}"))
            .with("number", to)
    }

    /// Another attempt follows: of the same number, or of the next one.
    fn follow_up(&self, number: AttemptNumber, to: &PhoneNumber) -> Option<CallStep> {
        let why = self.why(number, to)?;
        let attempts = self.history.attempts.iter();
        let mut before = attempts.filter(|attempt| attempt.number < number);
        let last = before.next_back()?;
        let event = match why {
            FollowUp::Redial => "redial",
            _ => "escalated",
        };
        let step = CallStep::new(last.ended_at, event).of(number);
        Some(
            step.saying(format!("{to} is next: {}", why.meaning()))
                .with("number", to.to_string())
                .with("why", why.as_str()),
        )
    }

    /// What the attempt has come to that is not over.
    fn under_way(&self, current: &CurrentAttempt, clock: &Clock) -> Vec<CallStep> {
        let (record, number) = (&self.record, current.number);
        let now = clock.now();
        let mut steps = Vec::new();
        if let (CallState::Queued, Some(due)) = (record.state, record.due_at)
            && due > now
        {
            let until = local(due, clock);
            let step = CallStep::new(now, "waiting").of(number);
            steps.push(
                step.told_by(due.as_second())
                    .saying(format!("until {until}"))
                    .with("due", until),
            );
        }
        if let Some(at) = record.dialled_at {
            steps.push(dialling(at, number, &current.to, record.trunk.as_deref()));
        }
        steps.extend(record.rang_at.map(|at| ringing(at, number)));
        steps.extend(record.answered_at.map(|at| answered(at, number)));
        steps
    }

    fn ended(&self) -> Option<CallStep> {
        let record = &self.record;
        let (at, outcome) = (record.ended_at?, record.outcome?);
        let state = record.callback_state()?;
        let attempts = self.history.attempts.iter();
        let dialled = attempts.filter(|attempt| attempt.dialled_at.is_some());
        let dialled = dialled.count();
        let tried = match dialled {
            0 => "it was never dialled".to_owned(),
            1 => "after 1 attempt".to_owned(),
            many => format!("after {many} attempts"),
        };
        let ending = record.ending.map(NoticeEnding::as_str);
        let how = ending.map(|ending| format!(" ({ending})"));
        Some(
            CallStep::new(at, "ended")
                .saying(format!(
                    "{}{}, {tried}; state {state}",
                    outcome.as_str(),
                    how.unwrap_or_default()
                ))
                .with("outcome", outcome.as_str())
                .with("ending", ending)
                .with("attempts", dialled)
                .with("state", state.to_string()),
        )
    }
}

/// One thing that has happened to a call.
#[derive(Debug)]
pub struct CallStep {
    at: Timestamp,
    /// A word of the API's events, where there is one for it.
    event: &'static str,
    attempt: Option<AttemptNumber>,
    /// Tells it from every other step of its call, at each look the same.
    pub identity: String,
    sentence: String,
    facts: Map<String, Value>,
}

impl CallStep {
    fn new(at: Timestamp, event: &'static str) -> Self {
        Self {
            at,
            event,
            attempt: None,
            identity: event.to_owned(),
            sentence: String::new(),
            facts: Map::new(),
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

    fn saying(mut self, sentence: impl Into<String>) -> Self {
        self.sentence = sentence.into();
        self
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// For people.
    pub fn line(&self, clock: &Clock) -> String {
        let attempt = self.attempt.map(AttemptNumber::number);
        let attempt = attempt.map(|number| format!("attempt {number}: "));
        let said = format!("{}{}", attempt.unwrap_or_default(), self.sentence);
        let said = said.trim_end_matches(": ");
        format!("{}  {:<10} {said}", local(self.at, clock), self.event)
    }

    pub fn describe(&self, clock: &Clock) -> Value {
        let mut value = json!({
            "time": local(self.at, clock),
            "event": self.event,
        });
        if let Some(attempt) = self.attempt {
            value["attempt"] = attempt.number().into();
        }
        for (name, fact) in &self.facts {
            value[name] = fact.clone();
        }
        value
    }

    /// What it says, without its time.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }
}

/// The legs of one attempt that are over. Of an attempt that is over, the last leg ended with it.
fn leg_steps(to: &PhoneNumber, legs: &[&LegOfCall], is_over: bool) -> Vec<CallStep> {
    let mut steps = Vec::new();
    for (place, of_call) in legs.iter().enumerate() {
        let (leg, attempt) = (&of_call.leg, of_call.attempt);
        steps.push(dialling(leg.sent_at, attempt, to, Some(&leg.trunk)));
        steps.extend(leg.rang_at.map(|at| ringing(at, attempt)));
        if let Some(at) = leg.answered_at {
            steps.push(answered(at, attempt));
            steps.extend(key_steps(leg, at, attempt));
        }
        if !is_over || place + 1 < legs.len() {
            let said = response(leg).unwrap_or_else(|| "no answer".to_owned());
            let step = CallStep::new(leg.ended_at, "refused").of(attempt);
            steps.push(
                step.told_by(of_call.number)
                    .saying(format!("over {}: {said}", leg.trunk))
                    .with("trunk", leg.trunk.as_str())
                    .with("sipCode", leg.sip_code),
            );
        }
    }
    steps
}

fn key_steps(leg: &Leg, answered: Timestamp, attempt: AttemptNumber) -> Vec<CallStep> {
    let keys = leg.keys.iter().enumerate();
    let step = |(place, pressed): (usize, &LegKey)| {
        let after = SignedDuration::try_from(pressed.after).unwrap_or_default();
        let at = answered.saturating_add(after).unwrap_or(answered);
        let step = CallStep::new(at, "key").of(attempt);
        step.told_by(place)
            .saying(pressed.key.to_string())
            .with("dtmf", pressed.key.to_string())
    };
    keys.map(step).collect()
}

/// One for each trunk that an attempt is tried over.
fn dialling(
    at: Timestamp,
    attempt: AttemptNumber,
    to: &PhoneNumber,
    trunk: Option<&str>,
) -> CallStep {
    let over = trunk.map(|trunk| format!(" over {trunk}"));
    CallStep::new(at, "dialling")
        .of(attempt)
        .told_by(trunk.unwrap_or_default())
        .saying(format!("{to}{}", over.unwrap_or_default()))
        .with("number", to.to_string())
        .with("trunk", trunk)
}

fn ringing(at: Timestamp, attempt: AttemptNumber) -> CallStep {
    CallStep::new(at, "ringing").of(attempt)
}

fn answered(at: Timestamp, attempt: AttemptNumber) -> CallStep {
    CallStep::new(at, "answered").of(attempt)
}

/// The end of an attempt that was dialled.
fn hangup(attempt: &Attempt, last: Option<&Leg>) -> Option<CallStep> {
    attempt.dialled_at?;
    let talk = attempt.answered_at.map(|answered| {
        let talk = attempt.ended_at.duration_since(answered);
        format!(" for {:.1} s", talk.as_secs_f64())
    });
    let response = last.filter(|_| talk.is_none()).and_then(response);
    let response = response.map(|response| format!(" ({response})"));
    let outcome = attempt.outcome;
    let step = CallStep::new(attempt.ended_at, "hangup").of(attempt.number);
    Some(
        step.saying(format!(
            "{}{}{}",
            outcome.as_str(),
            talk.unwrap_or_default(),
            response.unwrap_or_default()
        ))
        .with("number", attempt.to.to_string())
        .with("outcome", outcome.as_str())
        .with("sipCode", last.and_then(|leg| leg.sip_code)),
    )
}

/// What became of the final callback.
pub fn callback_step(callback: &Callback, clock: &Clock) -> CallStep {
    let (host, attempts) = (callback.url.host(), callback.attempts);
    let ended = callback.finished_at.unwrap_or(callback.owed_at);
    let due = callback.due_at.map(|due| local(due, clock));
    let (at, sentence) = match callback.state {
        CallbackState::Delivered => (ended, format!("delivered to {host}")),
        CallbackState::GivenUp | CallbackState::Superseded => {
            (ended, format!("given up after attempt {attempts}: {host}"))
        }
        CallbackState::Waiting | CallbackState::Delivering if attempts == 0 => {
            (callback.owed_at, format!("owed to {host}"))
        }
        CallbackState::Waiting | CallbackState::Delivering => {
            let due = due.as_deref().unwrap_or("soon");
            let sentence = format!("not delivered to {host} by attempt {attempts}; again {due}");
            (clock.now(), sentence)
        }
    };
    CallStep::new(at, "callback")
        .told_by(&sentence)
        .saying(sentence)
        .with("state", callback.state.as_str())
        .with("host", host)
        .with("attempts", attempts)
}
