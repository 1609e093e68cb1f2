//! What happened to a call, step by step, in the operator's language: from the same facts as `clarion call show`.

use jiff::{SignedDuration, Timestamp};

use super::desk::CallFile;
use super::shown::{outcome_mark, whole};
use super::times;
use super::words::{Words, fill};
use crate::clock::Clock;
use crate::domain::attempt::{Attempt, AttemptNumber};
use crate::domain::call_record::CurrentAttempt;
use crate::domain::call_state::CallState;
use crate::domain::callback::{Callback, CallbackState};
use crate::domain::leg::{HungUpBy, Leg};
use crate::domain::notice::plan::FollowUp;
use crate::domain::phone_number::PhoneNumber;

/// One thing that has happened.
#[derive(Debug)]
pub struct TimelineStep {
    pub time: String,
    pub iso: String,
    /// Since the call was accepted.
    pub after: String,
    pub title: String,
    pub detail: String,
    pub tone: &'static str,
}

/// Writes steps in the order in which they happened. Clocks of different writers may differ by milliseconds, so the order is not that of the times.
struct Timeline<'a> {
    file: &'a CallFile,
    clock: &'a Clock,
    words: &'static Words,
    steps: Vec<TimelineStep>,
}

pub fn steps(file: &CallFile, clock: &Clock, words: &'static Words) -> Vec<TimelineStep> {
    let mut timeline = Timeline {
        file,
        clock,
        words,
        steps: Vec::new(),
    };
    timeline.tell();
    timeline.steps
}

impl Timeline<'_> {
    fn tell(&mut self) {
        let (file, words) = (self.file, self.words);
        let record = &file.call.record;
        let to = whole(&record.number);
        self.add(record.accepted_at, words.story_accepted, to, "quiet");
        for attempt in &file.history.attempts {
            self.attempt(attempt);
        }
        let is_over = |number| {
            let mut attempts = file.history.attempts.iter();
            attempts.any(|attempt| attempt.number == number)
        };
        if let Some(current) = record.current.as_ref()
            && !is_over(current.number)
        {
            self.current(current);
        }
        if let (Some(at), Some(outcome)) = (record.ended_at, record.outcome) {
            let mark = outcome_mark(outcome, words);
            self.add(at, words.story_ended, mark.word, mark.tone);
        }
        if let Some((callback, _)) = &file.callback {
            self.callback(callback);
        }
    }

    fn add(
        &mut self,
        at: Timestamp,
        title: impl Into<String>,
        detail: impl Into<String>,
        tone: &'static str,
    ) {
        let since = at.duration_since(self.file.call.record.accepted_at);
        self.steps.push(TimelineStep {
            time: times::of_day(at, self.clock),
            iso: at.to_string(),
            after: format!("+{:.3}", since.as_secs_f64().max(0.0)),
            title: title.into(),
            detail: detail.into(),
            tone,
        });
    }

    /// A simple call has one attempt, which needs no name.
    fn is_notice(&self) -> bool {
        self.file.call.record.notice.is_some()
    }

    fn follow_up(&mut self, number: AttemptNumber, to: &PhoneNumber) {
        let (file, words) = (self.file, self.words);
        let attempts = &file.history.attempts;
        let before = attempts.partition_point(|attempt| attempt.number < number);
        let Some(last) = attempts[..before].last() else {
            return;
        };
        let notice = file.call.record.notice.as_deref();
        let why = notice.and_then(|notice| notice.why(to, &attempts[..before]));
        let why = why.map_or("", |why| match why {
            FollowUp::Redial => words.story_redial,
            FollowUp::TriesUsed => words.story_tries_used,
            FollowUp::NoReason => words.story_no_reason,
            FollowUp::TurnOver => words.story_turn_over,
            FollowUp::GaveWay => words.story_gave_way,
        });
        let detail = join(&[&whole(to), why]);
        self.add(last.ended_at, words.story_next, detail, "quiet");
    }

    fn attempt(&mut self, attempt: &Attempt) {
        self.follow_up(attempt.number, &attempt.to);
        let legs: Vec<_> = self.file.history.legs_of(attempt.number).collect();
        if let (true, Some(at)) = (legs.is_empty(), attempt.dialled_at) {
            let to = whole(&attempt.to);
            self.add(at, self.words.story_dialling, to, "busy");
        }
        for (place, leg) in legs.iter().enumerate() {
            self.leg(&attempt.to, leg, place + 1 == legs.len());
        }
        if self.is_notice() {
            let words = self.words;
            let number = attempt.number.number().to_string();
            let which = fill(words.story_attempt, &[("n", &number)]);
            let mark = outcome_mark(attempt.outcome, words);
            let detail = join(&[&which, mark.word]);
            let (at, title) = (attempt.ended_at, words.story_attempt_over);
            self.add(at, title, detail, mark.tone);
        }
    }

    /// The attempt that is not over.
    fn current(&mut self, current: &CurrentAttempt) {
        self.follow_up(current.number, &current.to);
        let (file, words) = (self.file, self.words);
        let record = &file.call.record;
        let legs: Vec<_> = file.history.legs_of(current.number).collect();
        for leg in legs {
            self.leg(&current.to, leg, false);
        }
        let now = self.clock.now();
        if let (CallState::Queued, Some(due)) = (record.state, record.due_at)
            && due > now
        {
            let until = times::exact(due, self.clock);
            let until = fill(words.story_waits_until, &[("time", &until)]);
            self.add(now, words.story_waits, until, "quiet");
        }
        if let Some(at) = record.dialled_at {
            let trunk = record.trunk.as_deref();
            self.dialling(at, &current.to, trunk);
        }
        if let Some(at) = record.rang_at {
            self.add(at, words.story_ringing, "", "busy");
        }
        if let Some(at) = record.answered_at {
            self.add(at, words.story_answered, "", "good");
        }
    }

    fn dialling(&mut self, at: Timestamp, to: &PhoneNumber, trunk: Option<&str>) {
        let to = whole(to);
        let detail = match trunk {
            Some(trunk) => fill(self.words.story_over, &[("to", &to), ("trunk", trunk)]),
            None => to,
        };
        self.add(at, self.words.story_dialling, detail, "busy");
    }

    fn leg(&mut self, to: &PhoneNumber, leg: &Leg, is_last: bool) {
        let words = self.words;
        self.dialling(leg.sent_at, to, Some(&leg.trunk));
        if let Some(at) = leg.rang_at {
            self.add(at, words.story_ringing, "", "busy");
        }
        let said = response(leg).unwrap_or_else(|| words.story_no_answer.to_owned());
        let Some(answered) = leg.answered_at else {
            let values = [("trunk", leg.trunk.as_str()), ("said", said.as_str())];
            let detail = fill(words.story_refused_by, &values);
            let tone = if is_last { "bad" } else { "warn" };
            self.add(leg.ended_at, words.story_refused, detail, tone);
            return;
        };
        self.add(answered, words.story_answered, "", "good");
        for pressed in &leg.keys {
            let after = SignedDuration::try_from(pressed.after).unwrap_or_default();
            let at = answered.saturating_add(after).unwrap_or(answered);
            self.add(at, words.story_key, pressed.key.to_string(), "good");
        }
        let media = &leg.media;
        if media.codec.is_some() {
            let played = format!("{:.1}", media.played.as_secs_f64());
            let whole = format!("{:.1}", media.to_play.as_secs_f64());
            let values = [("played", played.as_str()), ("whole", &whole)];
            let detail = fill(words.story_played_of, &values);
            let is_whole = media.played >= media.to_play;
            let tone = if is_whole { "good" } else { "warn" };
            self.add(leg.ended_at, words.story_played, detail, tone);
        }
        let by = match leg.hung_up_by {
            HungUpBy::Us => words.story_by_us,
            HungUpBy::Them => words.story_by_them,
            HungUpBy::Nobody | HungUpBy::Unknown => words.story_by_unknown,
        };
        self.add(leg.ended_at, words.story_hung_up, by, "quiet");
    }

    fn callback(&mut self, callback: &Callback) {
        let words = self.words;
        let host = callback.url.host();
        let to = fill(words.story_to, &[("host", &host)]);
        let settled = callback.finished_at.unwrap_or(callback.owed_at);
        match callback.state {
            CallbackState::Delivered => {
                self.add(settled, words.story_callback_delivered, to, "good");
            }
            CallbackState::GivenUp | CallbackState::Superseded => {
                self.add(settled, words.story_callback_given_up, to, "bad");
            }
            CallbackState::Waiting | CallbackState::Delivering if callback.attempts == 0 => {
                self.add(callback.owed_at, words.story_callback_owed, to, "quiet");
            }
            CallbackState::Waiting | CallbackState::Delivering => {
                let again = callback.due_at.map(|due| {
                    let due = times::exact(due, self.clock);
                    let values = [("host", host.as_str()), ("time", &due)];
                    fill(words.story_again, &values)
                });
                let (at, detail) = (callback.owed_at, again.unwrap_or(to));
                self.add(at, words.story_callback_failed, detail, "warn");
            }
        }
    }
}

fn join(parts: &[&str]) -> String {
    let said = parts.iter().copied().filter(|part| !part.is_empty());
    said.collect::<Vec<_>>().join(" · ")
}

fn response(leg: &Leg) -> Option<String> {
    match (leg.sip_code, &leg.phrase) {
        (Some(code), Some(phrase)) => Some(format!("{code} {phrase}")),
        (Some(code), None) => Some(code.to_string()),
        (None, phrase) => phrase.clone(),
    }
}
