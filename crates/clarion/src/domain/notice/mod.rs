//! A notice: what one request asks for. It keeps calling, number after number, until somebody knows. A request that asks for one call only has none.

pub mod call_hours;
pub mod ending;
pub mod keys;
pub mod machine;
pub mod plan;
pub mod silence;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use self::call_hours::CallHours;
use self::ending::{NoticeEnd, NoticeEnding};
use self::keys::{CalleeChoice, NoticeKeys};
use self::machine::MachineDetection;
use self::plan::{
    AttemptVerdict, Candidate, FollowUp, NextAttempt, NoticePlan, NumberTurn, PastAttempt,
    RedialReason,
};
use self::silence::NoticeSilence;
use super::attempt::Attempt;
use super::call_list::{CallList, ListName, ListedNumber};
use super::call_window::CallWindow;
use super::hearing::AnsweredBy;
use super::numbering_plan::NumberingPlan;
use super::outcome::Outcome;
use super::phone_number::PhoneNumber;
use super::route::CallEnds;

/// Somebody whom a notice may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    /// Exactly as the client wrote it: bills show this.
    pub called: String,
    pub number: PhoneNumber,
    /// Who is called: one call at a time, and as often as the caps let it be.
    pub callee: String,
    /// Canonical digits of the number that is shown, or `None` if the platform has no default.
    pub caller: Option<String>,
}

impl Recipient {
    /// What tells one number of a notice from another: its digits, with the extension where there is one.
    pub fn line(&self) -> String {
        line(&self.number)
    }

    /// What decides which trunks carry a call to them.
    pub fn ends(&self) -> CallEnds<'_> {
        CallEnds {
            called: self.number.digits(),
            caller: self.caller.as_deref(),
        }
    }
}

/// A list that a request names among its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedList {
    pub name: ListName,
    /// Its numbers have their turns before the number of this place.
    pub place: usize,
}

/// Everything that a request says about its notice. It never changes afterwards; what its lists say may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub plan: NoticePlan,
    /// Those that the request itself names, in the order of their turns, `to` first, each of them once.
    pub numbers: Vec<Recipient>,
    /// In the order of their turns. Who is on them is asked before each attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<NamedList>,
    /// Canonical digits of the number that the request may show to those on its lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<CallWindow>,
    /// It lifts the hours of its account, by a right that the account has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lifts_hours: bool,
    /// How long one attempt may ring, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<u16>,
    /// What the callee is asked to press, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<NoticeKeys>,
    /// What a callee may ask of the source of the alert that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<NoticeSilence>,
    /// What it wants to know about whoever answers, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineDetection>,
}

/// What follows an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sequel {
    /// This number, and not before this moment.
    Dial {
        number: Recipient,
        not_before: Timestamp,
    },
    Over(NoticeEnding),
}

impl Notice {
    /// A request that says nothing of this, to nobody yet.
    pub fn single() -> Self {
        Self {
            plan: NoticePlan::single(),
            numbers: Vec::new(),
            lists: Vec::new(),
            shown: None,
            window: None,
            lifts_hours: false,
            ring: None,
            keys: None,
            silence: None,
            machine: None,
        }
    }

    /// Everybody whom it calls, in the order of their turns, each of them once. `lists` are those of its lists that there are.
    pub fn recipients(&self, lists: &[CallList], plan: &NumberingPlan) -> Vec<Recipient> {
        let mut recipients: Vec<Recipient> = Vec::new();
        for place in 0..=self.numbers.len() {
            let named = self.lists.iter().filter(|named| named.place == place);
            let found = named.filter_map(|named| lists.iter().find(|list| list.name == named.name));
            let listed = found.flat_map(|list| &list.numbers);
            let listed = listed.map(|listed| self.recipient(listed, plan));
            for to in listed.chain(self.numbers.get(place).cloned()) {
                if !recipients.iter().any(|known| known.number == to.number) {
                    recipients.push(to);
                }
            }
        }
        recipients
    }

    fn recipient(&self, listed: &ListedNumber, plan: &NumberingPlan) -> Recipient {
        Recipient {
            called: listed.called.clone(),
            callee: plan.callee(&listed.number),
            caller: plan.caller(self.shown.clone(), &listed.number),
            number: listed.number.clone(),
        }
    }

    pub fn list_names(&self) -> Vec<ListName> {
        self.lists.iter().map(|named| named.name.clone()).collect()
    }

    /// How long the number of an attempt may be held back, where another could have its turn.
    pub fn patience(&self, number: &PhoneNumber, past: &[Attempt]) -> Option<SignedDuration> {
        let tries = past.iter().filter(|attempt| attempt.to == *number);
        let has_others = self.numbers.len() > 1 || !self.lists.is_empty();
        has_others.then(|| self.plan.patience(tries.count()))
    }

    /// Whether the request itself names this number.
    pub fn names(&self, number: &PhoneNumber) -> bool {
        self.numbers.iter().any(|to| to.number == *number)
    }

    /// What follows these attempts. `numbers` are all its numbers as they are now, those that may not be called among them.
    pub fn sequel(
        &self,
        numbers: &[(Recipient, NumberTurn)],
        past: &[Attempt],
        hours: CallHours<'_>,
        now: Timestamp,
    ) -> Sequel {
        if let Some(last) = past.last()
            && let Some(ending) = self.ending(last)
        {
            return Sequel::Over(ending);
        }
        let past: Vec<_> = past.iter().map(past_attempt).collect();
        let candidates = numbers.iter().map(|(to, turn)| Candidate {
            number: to.line(),
            turn: *turn,
        });
        let candidates: Vec<_> = candidates.collect();
        let NextAttempt::Dial { place, not_before } = self.plan.next(&candidates, &past, now)
        else {
            return Sequel::Over(NoticeEnding::Exhausted);
        };
        match hours.next_open(not_before) {
            Some(not_before) => Sequel::Dial {
                number: numbers[place].0.clone(),
                not_before,
            },
            // The hours were changed, and leave nothing open any more.
            None => Sequel::Over(NoticeEnding::Expired),
        }
    }

    /// Whether an attempt ends it, whatever the plan says.
    fn ending(&self, last: &Attempt) -> Option<NoticeEnding> {
        match last.outcome {
            Outcome::Talked => Some(NoticeEnding::Talked),
            Outcome::Confirmed => Some(NoticeEnding::Confirmed),
            Outcome::Expired => Some(NoticeEnding::Expired),
            // Where a key is asked for, nobody counts as told who has not pressed it.
            Outcome::Interrupted if last.answered_at.is_some() && !self.wants_confirmation() => {
                Some(NoticeEnding::Interrupted)
            }
            // Whether the notice was cancelled, or only this attempt of it broken off, its mark says.
            Outcome::Cancelled
            | Outcome::PromptFailed
            | Outcome::Interrupted
            | Outcome::NotAnswered
            | Outcome::Busy
            | Outcome::Declined
            | Outcome::Unconfirmed
            | Outcome::Machine
            | Outcome::Stopped
            | Outcome::NoRoute
            | Outcome::TrunkFailure
            | Outcome::InvalidNumber => None,
        }
    }

    fn wants_confirmation(&self) -> bool {
        self.keys
            .as_ref()
            .is_some_and(|keys| !keys.confirm.is_empty())
    }

    /// What an attempt has come to that was answered and is over. `has_begun` tells whether anything of the message was played.
    pub fn answered(
        &self,
        choice: Option<CalleeChoice>,
        answered_by: Option<AnsweredBy>,
        has_begun: bool,
    ) -> Outcome {
        let is_missed = |machine: MachineDetection| machine.is_missed(answered_by);
        match choice {
            // Whoever presses a key is a human, whatever it sounded like before.
            Some(choice) => choice.outcome(),
            None if self.machine.is_some_and(is_missed) => Outcome::Machine,
            None if self.wants_confirmation() => Outcome::Unconfirmed,
            // We were silent until we would know who it is, and they have not waited for that.
            None if !has_begun && self.machine.is_some_and(MachineDetection::waits) => {
                Outcome::Unconfirmed
            }
            None => Outcome::Talked,
        }
    }

    /// Why this number was dialled after these attempts, or will be.
    pub fn why(&self, number: &PhoneNumber, past: &[Attempt]) -> Option<FollowUp> {
        let past: Vec<_> = past.iter().map(past_attempt).collect();
        self.plan.why(&line(number), &past)
    }

    /// The hours in which it may dial: its own and, unless it lifts them, its account's.
    pub fn hours<'a>(&'a self, account: Option<&'a CallWindow>) -> Vec<&'a CallWindow> {
        let account = account.filter(|_| !self.lifts_hours);
        self.window.iter().chain(account).collect()
    }

    /// What is said of it in the end. `past` are its attempts; `undialled` is what became of the one that was never dialled, where it ended so.
    pub fn end(
        ending: NoticeEnding,
        past: &[Attempt],
        undialled: Outcome,
        now: Timestamp,
    ) -> NoticeEnd {
        let dialled = || past.iter().filter(|attempt| attempt.dialled_at.is_some());
        let last = dialled().next_back();
        let furthest = dialled().max_by_key(|attempt| rank(attempt.outcome));
        NoticeEnd {
            ending,
            outcome: furthest.map_or(undialled, |attempt| attempt.outcome),
            attempts: u16::try_from(dialled().count()).unwrap_or(u16::MAX),
            confirmed: None,
            answered_by: furthest.and_then(|attempt| attempt.answered_by),
            dialled_at: last.and_then(|attempt| attempt.dialled_at),
            answered_at: last.and_then(|attempt| attempt.answered_at),
            ended_at: last.map_or(now, |attempt| attempt.ended_at),
        }
    }
}

fn past_attempt(attempt: &Attempt) -> PastAttempt {
    PastAttempt {
        number: line(&attempt.to),
        verdict: match attempt.outcome {
            Outcome::Busy => AttemptVerdict::Missed(RedialReason::Busy),
            Outcome::NotAnswered => AttemptVerdict::Missed(RedialReason::NotAnswered),
            Outcome::Unconfirmed => AttemptVerdict::Missed(RedialReason::Unconfirmed),
            Outcome::Machine => AttemptVerdict::Missed(RedialReason::Machine),
            Outcome::Declined => AttemptVerdict::Missed(RedialReason::Declined),
            Outcome::TrunkFailure => AttemptVerdict::Missed(RedialReason::Failed),
            Outcome::Interrupted | Outcome::Cancelled => AttemptVerdict::Interrupted,
            Outcome::Talked
            | Outcome::Confirmed
            | Outcome::Stopped
            | Outcome::NoRoute
            | Outcome::InvalidNumber
            | Outcome::Expired
            | Outcome::PromptFailed => AttemptVerdict::Hopeless,
        },
        ended_at: attempt.ended_at,
    }
}

fn line(number: &PhoneNumber) -> String {
    match number.extension() {
        Some(extension) => format!("{}-{extension}", number.digits()),
        None => number.digits().to_owned(),
    }
}

/// How far an attempt came, for its notice. Of two that came equally far the later one counts.
fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Talked | Outcome::Confirmed => 5,
        Outcome::Unconfirmed => 4,
        Outcome::Machine => 3,
        Outcome::NotAnswered | Outcome::Busy | Outcome::Declined | Outcome::Stopped => 2,
        Outcome::Cancelled => 1,
        Outcome::NoRoute
        | Outcome::TrunkFailure
        | Outcome::InvalidNumber
        | Outcome::Expired
        | Outcome::Interrupted
        | Outcome::PromptFailed => 0,
    }
}

#[cfg(test)]
mod tests;
