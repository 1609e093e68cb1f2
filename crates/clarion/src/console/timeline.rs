//! What happened to a call, step by step, in the operator's language: the same steps as `clarion call watch` tells.

use jiff::Timestamp;
use jiff::civil::Date;

use super::shown::{outcome_mark, whole};
use super::times;
use super::words::{Words, fill};
use crate::clock::Clock;
use crate::domain::attempt::AttemptNumber;
use crate::domain::callback::CallbackState;
use crate::domain::hearing::{AnsweredBy, HeardTone, Hearing};
use crate::domain::leg::{HangUpReason, HungUpBy};
use crate::domain::notice::plan::FollowUp;
use crate::domain::outcome::Outcome;
use crate::management::{CallStep, CallStepKind, PlayedMessage, SeenCall};

/// One thing that has happened.
#[derive(Debug)]
pub struct TimelineStep {
    pub time: String,
    /// Where another day begins than that of the step before, or than the day on which the call was accepted.
    pub day: Option<String>,
    /// Date and time.
    pub exact: String,
    pub iso: String,
    /// Since the call was accepted.
    pub after: String,
    pub title: String,
    pub detail: String,
    pub tone: &'static str,
}

struct Timeline<'a> {
    seen: &'a SeenCall,
    clock: &'a Clock,
    words: &'static Words,
    /// Of the last step.
    day: Date,
    steps: Vec<TimelineStep>,
}

/// In the order in which they happened. Clocks of different writers may differ by milliseconds, so the order is not that of the times.
pub fn steps(seen: &SeenCall, clock: &Clock, words: &'static Words) -> Vec<TimelineStep> {
    let mut timeline = Timeline {
        seen,
        clock,
        words,
        day: times::day(seen.record.accepted_at, clock),
        steps: Vec::new(),
    };
    for step in seen.steps(clock.now()) {
        timeline.tell(step);
    }
    timeline.steps
}

impl Timeline<'_> {
    fn tell(&mut self, step: CallStep) {
        let (at, words) = (step.at, self.words);
        match step.kind {
            CallStepKind::Queued { to } => {
                self.add(at, words.story_accepted, whole(&to), "quiet");
            }
            CallStepKind::FollowUp { to, why } => {
                let detail = join(&[&whole(&to), self.why(why)]);
                self.add(at, words.story_next, detail, "quiet");
            }
            CallStepKind::Waiting { until } => {
                let until = times::exact(until, self.clock);
                let until = fill(words.story_waits_until, &[("time", &until)]);
                self.add(at, words.story_waits, until, "quiet");
            }
            CallStepKind::Dialling { to, trunk } => {
                let to = whole(&to);
                let detail = match trunk {
                    Some(trunk) => fill(words.story_over, &[("to", &to), ("trunk", &trunk)]),
                    None => to,
                };
                self.add(at, words.story_dialling, detail, "busy");
            }
            CallStepKind::Ringing => self.add(at, words.story_ringing, "", "busy"),
            CallStepKind::Answered => self.add(at, words.story_answered, "", "good"),
            CallStepKind::Heard(heard) => self.heard(at, heard),
            CallStepKind::Key(key) => self.add(at, words.story_key, key.to_string(), "good"),
            CallStepKind::Refused {
                trunk, response, ..
            } => {
                let said = response.as_deref().unwrap_or(words.story_no_answer);
                let detail = fill(words.story_refused_by, &[("trunk", &trunk), ("said", said)]);
                self.add(at, words.story_refused, detail, "warn");
            }
            CallStepKind::HangUp {
                outcome,
                response,
                by,
                reason,
                played,
                ..
            } => {
                self.message(at, played);
                self.hung_up(at, by, reason, response);
                self.attempt_over(at, step.attempt, outcome);
            }
            CallStepKind::Ended { outcome, .. } => {
                let mark = outcome_mark(outcome, words);
                self.add(at, words.story_ended, mark.word, mark.tone);
            }
            CallStepKind::Callback {
                state,
                host,
                attempts,
                due,
            } => self.callback(at, state, &host, attempts, due),
        }
    }

    fn add(
        &mut self,
        at: Timestamp,
        title: impl Into<String>,
        detail: impl Into<String>,
        tone: &'static str,
    ) {
        let since = at.duration_since(self.seen.record.accepted_at);
        let day = times::day(at, self.clock);
        let is_another = std::mem::replace(&mut self.day, day) != day;
        self.steps.push(TimelineStep {
            day: is_another.then(|| day.to_string()),
            exact: times::exact(at, self.clock),
            time: times::of_day(at, self.clock),
            iso: at.to_string(),
            after: format!("+{:.3}", since.as_secs_f64().max(0.0)),
            title: title.into(),
            detail: detail.into(),
            tone,
        });
    }

    fn heard(&mut self, at: Timestamp, heard: Hearing) {
        let words = self.words;
        let (who, tone) = match heard.answered_by {
            Some(AnsweredBy::Human) => (words.heard_human, "good"),
            Some(AnsweredBy::Machine) => (words.heard_machine, "warn"),
            Some(AnsweredBy::Unknown) => (words.heard_unknown, "quiet"),
            None => ("", "warn"),
        };
        let said = match heard.tone {
            Some(HeardTone::Busy) => words.heard_busy,
            Some(HeardTone::Congestion) => words.heard_congestion,
            Some(HeardTone::Dial) => words.heard_dial,
            Some(HeardTone::Special) => words.heard_special,
            Some(HeardTone::Fax) => words.heard_fax,
            Some(HeardTone::Announcement) => words.heard_announcement,
            None => "",
        };
        let seconds = format!("{:.1}", heard.after.as_secs_f64());
        let after = fill(words.heard_after, &[("seconds", &seconds)]);
        let detail = join(&[who, said, &after]);
        self.add(at, words.story_heard, detail, tone);
    }

    fn why(&self, why: FollowUp) -> &'static str {
        match why {
            FollowUp::Redial => self.words.story_redial,
            FollowUp::TriesUsed => self.words.story_tries_used,
            FollowUp::NoReason => self.words.story_no_reason,
            FollowUp::TurnOver => self.words.story_turn_over,
            FollowUp::GaveWay => self.words.story_gave_way,
        }
    }

    fn message(&mut self, at: Timestamp, played: Option<PlayedMessage>) {
        let Some(PlayedMessage { played, whole }) = played else {
            return;
        };
        let seconds = |time: std::time::Duration| format!("{:.1}", time.as_secs_f64());
        let values = [("played", &*seconds(played)), ("whole", &seconds(whole))];
        let detail = fill(self.words.story_played_of, &values);
        let tone = if played >= whole { "good" } else { "warn" };
        self.add(at, self.words.story_played, detail, tone);
    }

    /// Somebody hung up, or nobody had answered.
    fn hung_up(
        &mut self,
        at: Timestamp,
        by: Option<HungUpBy>,
        reason: Option<HangUpReason>,
        response: Option<String>,
    ) {
        let words = self.words;
        let Some(by) = by else {
            let said = response.unwrap_or_else(|| words.story_no_answer.to_owned());
            self.add(at, words.story_refused, said, "bad");
            return;
        };
        let by = match by {
            HungUpBy::Us => words.story_by_us,
            HungUpBy::Them => words.story_by_them,
            HungUpBy::Nobody | HungUpBy::Unknown => words.story_by_unknown,
        };
        let reason = reason.map(|reason| self.hang_up_reason(reason));
        let detail = join(&[by, reason.unwrap_or_default()]);
        self.add(at, words.story_hung_up, detail, "quiet");
    }

    fn hang_up_reason(&self, reason: HangUpReason) -> &'static str {
        match reason {
            HangUpReason::Played => self.words.hung_up_played,
            HangUpReason::PlaybackFailed => self.words.hung_up_playback_failed,
            HangUpReason::LongestTalk => self.words.hung_up_longest_talk,
            HangUpReason::HeldTooLong => self.words.hung_up_held_too_long,
            HangUpReason::Vanished => self.words.hung_up_vanished,
            HangUpReason::Asked => self.words.hung_up_asked,
            HangUpReason::Machine => self.words.hung_up_machine,
            HangUpReason::Tone => self.words.hung_up_tone,
            HangUpReason::BadAnswer => self.words.hung_up_bad_answer,
            HangUpReason::NoAnswer => self.words.hung_up_no_answer,
            HangUpReason::NoProgress => self.words.hung_up_no_progress,
        }
    }

    /// A simple call has one attempt, which needs no name.
    fn attempt_over(&mut self, at: Timestamp, number: Option<AttemptNumber>, outcome: Outcome) {
        let (Some(number), true) = (number, self.seen.record.notice.is_some()) else {
            return;
        };
        let words = self.words;
        let number = number.number().to_string();
        let which = fill(words.story_attempt, &[("n", &number)]);
        let mark = outcome_mark(outcome, words);
        let detail = join(&[&which, mark.word]);
        self.add(at, words.story_attempt_over, detail, mark.tone);
    }

    fn callback(
        &mut self,
        at: Timestamp,
        state: CallbackState,
        host: &str,
        attempts: u32,
        due: Option<Timestamp>,
    ) {
        let words = self.words;
        let to = fill(words.story_to, &[("host", host)]);
        match state {
            CallbackState::Delivered => {
                self.add(at, words.story_callback_delivered, to, "good");
            }
            CallbackState::GivenUp | CallbackState::Superseded => {
                self.add(at, words.story_callback_given_up, to, "bad");
            }
            CallbackState::Waiting | CallbackState::Delivering if attempts == 0 => {
                self.add(at, words.story_callback_owed, to, "quiet");
            }
            CallbackState::Waiting | CallbackState::Delivering => {
                let again = due.map(|due| {
                    let due = times::exact(due, self.clock);
                    fill(words.story_again, &[("host", host), ("time", &due)])
                });
                let detail = again.unwrap_or(to);
                self.add(at, words.story_callback_failed, detail, "warn");
            }
        }
    }
}

fn join(parts: &[&str]) -> String {
    let said = parts.iter().copied().filter(|part| !part.is_empty());
    said.collect::<Vec<_>>().join(" · ")
}
