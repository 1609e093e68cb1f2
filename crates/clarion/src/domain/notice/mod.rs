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
use self::plan::{AttemptVerdict, FollowUp, NextAttempt, NoticePlan, PastAttempt, RedialReason};
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

    /// What follows these attempts. `numbers` are those of its numbers that may be called now.
    pub fn sequel(
        &self,
        numbers: &[&Recipient],
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
        let lines: Vec<_> = numbers.iter().map(|to| to.line()).collect();
        let NextAttempt::Dial { place, not_before } = self.plan.next(&lines, &past, now) else {
            return Sequel::Over(NoticeEnding::Exhausted);
        };
        match hours.next_open(not_before) {
            Some(not_before) => Sequel::Dial {
                number: numbers[place].clone(),
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
mod tests {
    use jiff::tz::TimeZone;

    use super::super::attempt::AttemptNumber;
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn recipient(number: u16) -> Recipient {
        let digits = format!("86138{number:08}");
        Recipient {
            called: digits.clone(),
            callee: digits.clone(),
            number: PhoneNumber::from_stored(digits, None),
            caller: None,
        }
    }

    fn attempt(number: u16, to: u16, outcome: Outcome) -> Attempt {
        let is_answered = outcome == Outcome::Talked;
        Attempt {
            number: AttemptNumber::new(number).unwrap(),
            to: recipient(to).number,
            outcome,
            dialled_at: Some(at(i64::from(number) * 100)),
            answered_at: is_answered.then(|| at(i64::from(number) * 100 + 5)),
            ended_at: at(i64::from(number) * 100 + 10),
            choice: None,
            answered_by: is_answered.then_some(AnsweredBy::Human),
            voice: None,
        }
    }

    fn notice(window: Option<&str>) -> Notice {
        Notice {
            plan: NoticePlan {
                redials: 1,
                ..NoticePlan::single()
            },
            numbers: vec![recipient(1), recipient(2)],
            lists: vec![],
            shown: None,
            window: window.map(|window| window.parse().unwrap()),
            lifts_hours: false,
            ring: None,
            keys: None,
            silence: None,
            machine: None,
        }
    }

    fn sequel(notice: &Notice, past: &[Attempt], account: Option<&CallWindow>) -> Sequel {
        let numbers: Vec<_> = notice.numbers.iter().collect();
        let windows = notice.hours(account);
        let zone = TimeZone::UTC;
        let hours = CallHours {
            windows: &windows,
            zone: &zone,
        };
        let now = past.last().map_or(at(0), |last| last.ended_at);
        notice.sequel(&numbers, past, hours, now)
    }

    #[test]
    fn an_attempt_ends_its_notice_or_gives_birth_to_the_next() {
        let notice = notice(None);
        let dial = |to, not_before| Sequel::Dial {
            number: recipient(to),
            not_before: at(not_before),
        };
        let interrupted_talk = Attempt {
            answered_at: Some(at(105)),
            ..attempt(1, 1, Outcome::Interrupted)
        };
        let cases: [(&str, Vec<Attempt>, Sequel); 8] = [
            ("the first", vec![], dial(1, 0)),
            ("busy", vec![attempt(1, 1, Outcome::Busy)], dial(1, 170)),
            (
                "declined",
                vec![attempt(1, 1, Outcome::Declined)],
                dial(2, 110),
            ),
            (
                "unknown",
                vec![attempt(1, 1, Outcome::InvalidNumber)],
                dial(2, 110),
            ),
            (
                "broken off",
                vec![attempt(1, 1, Outcome::Interrupted)],
                dial(1, 170),
            ),
            (
                "somebody knows",
                vec![attempt(1, 1, Outcome::Talked)],
                Sequel::Over(NoticeEnding::Talked),
            ),
            (
                "nobody is told twice",
                vec![interrupted_talk],
                Sequel::Over(NoticeEnding::Interrupted),
            ),
            (
                "no try is left",
                vec![
                    attempt(1, 1, Outcome::Busy),
                    attempt(2, 1, Outcome::Busy),
                    attempt(3, 2, Outcome::Declined),
                ],
                Sequel::Over(NoticeEnding::Exhausted),
            ),
        ];
        for (what, past, expected) in cases {
            assert_eq!(sequel(&notice, &past, None), expected, "{what}");
        }
    }

    #[test]
    fn lists_have_their_turn_where_they_are_named_as_they_are_now() {
        let list = |name: &str, numbers: &[u16]| CallList {
            account: "a".repeat(32).parse().unwrap(),
            name: name.parse().unwrap(),
            numbers: numbers
                .iter()
                .map(|number| ListedNumber {
                    called: format!("written {number}"),
                    number: recipient(*number).number,
                    person: None,
                })
                .collect(),
            updated_at: at(0),
        };
        let named = |name: &str, place| NamedList {
            name: name.parse().unwrap(),
            place,
        };
        let notice = Notice {
            lists: vec![named("b", 1), named("a", 1), named("c", 2)],
            shown: Some("8613800000005".to_owned()),
            ..notice(None)
        };
        let mut plan = NumberingPlan::china();
        plan.default_caller = Some("864001234567".to_owned());
        let turns = |lists: &[CallList]| {
            let recipients = notice.recipients(lists, &plan);
            let digits = recipients.iter().map(|to| to.number.digits()[5..].parse());
            digits.collect::<Result<Vec<u16>, _>>().unwrap()
        };
        let lists = [
            list("a", &[3, 4]),
            list("b", &[5, 1]),
            list("c", &[2, 4, 6]),
        ];
        assert_eq!(turns(&lists), [1, 5, 3, 4, 2, 6], "each of them once");
        assert_eq!(turns(&lists[..1]), [1, 3, 4, 2], "a list that is gone");
        assert_eq!(turns(&[]), [1, 2]);
        let recipients = notice.recipients(&lists, &plan);
        let shown = |place: usize| recipients[place].caller.as_deref();
        assert_eq!(recipients[2].called, "written 3");
        assert_eq!(shown(2), Some("8613800000005"));
        assert_eq!(
            shown(1),
            Some("864001234567"),
            "nobody is called by himself"
        );
    }

    #[test]
    fn a_notice_from_before_there_were_lists_is_read() {
        let stored = serde_json::to_string(&notice(None)).unwrap();
        assert!(!stored.contains("lists") && !stored.contains("shown"));
        assert_eq!(
            serde_json::from_str::<Notice>(&stored).unwrap(),
            notice(None)
        );
    }

    #[test]
    fn the_next_attempt_waits_for_the_hours_of_the_notice_and_of_the_account() {
        // The first moment is a Friday, 08:00 in UTC.
        let account = "1-5 0000-0900".parse().unwrap();
        let first = |notice: &Notice, account| match sequel(notice, &[], account) {
            Sequel::Dial { not_before, .. } => not_before.duration_since(at(0)),
            Sequel::Over(ending) => panic!("{}", ending.as_str()),
        };
        assert_eq!(first(&notice(None), Some(&account)), SignedDuration::ZERO);
        let morning = notice(Some("0830-1000"));
        assert_eq!(
            first(&morning, Some(&account)),
            SignedDuration::from_mins(30)
        );
        let evening = notice(Some("0900-1000"));
        assert_eq!(
            sequel(&evening, &[], Some(&account)),
            Sequel::Over(NoticeEnding::Expired),
            "they are never open together"
        );
        let lifted = Notice {
            lifts_hours: true,
            ..evening
        };
        assert_eq!(
            first(&lifted, Some(&account)),
            SignedDuration::from_hours(1)
        );
    }

    #[test]
    fn the_end_tells_of_the_furthest_attempt_with_the_times_of_the_last() {
        let past = [
            attempt(1, 1, Outcome::Busy),
            attempt(2, 2, Outcome::TrunkFailure),
        ];
        let end = Notice::end(NoticeEnding::Exhausted, &past, Outcome::Expired, at(999));
        assert_eq!((end.outcome, end.attempts), (Outcome::Busy, 2));
        assert_eq!((end.dialled_at, end.ended_at), (Some(at(200)), at(210)));
        let never = Notice::end(NoticeEnding::Expired, &[], Outcome::Expired, at(999));
        assert_eq!((never.outcome, never.attempts), (Outcome::Expired, 0));
        assert_eq!((never.dialled_at, never.ended_at), (None, at(999)));
    }

    #[test]
    fn a_machine_comes_further_than_nobody_and_less_far_than_a_person_who_did_not_confirm() {
        let machine = Attempt {
            answered_by: Some(AnsweredBy::Machine),
            ..attempt(1, 1, Outcome::Machine)
        };
        let past = [machine, attempt(2, 2, Outcome::Busy)];
        let end = Notice::end(NoticeEnding::Exhausted, &past, Outcome::Expired, at(999));
        assert_eq!(
            (end.outcome, end.answered_by),
            (Outcome::Machine, Some(AnsweredBy::Machine)),
            "both tell of the same attempt"
        );
        assert_eq!(end.dialled_at, Some(at(200)));
        assert!(rank(Outcome::Unconfirmed) > rank(Outcome::Machine));
    }

    #[test]
    fn a_machine_is_missed_where_the_request_says_so_and_pressed_no_key() {
        let outcome = |machine, choice, answered_by| {
            let notice = Notice {
                machine,
                ..notice(None)
            };
            notice.answered(choice, Some(answered_by), true)
        };
        let (human, machine) = (AnsweredBy::Human, AnsweredBy::Machine);
        for (wish, choice, answered_by, expected) in [
            (None, None, machine, Outcome::Talked),
            (
                Some(MachineDetection::Report),
                None,
                machine,
                Outcome::Talked,
            ),
            (
                Some(MachineDetection::HangUp),
                None,
                machine,
                Outcome::Machine,
            ),
            (
                Some(MachineDetection::AfterBeep),
                None,
                machine,
                Outcome::Machine,
            ),
            (Some(MachineDetection::HangUp), None, human, Outcome::Talked),
            (
                Some(MachineDetection::HangUp),
                None,
                AnsweredBy::Unknown,
                Outcome::Talked,
            ),
            (
                Some(MachineDetection::AfterBeep),
                Some(CalleeChoice::Confirmed('1')),
                machine,
                Outcome::Confirmed,
            ),
        ] {
            assert_eq!(
                outcome(wish, choice, answered_by),
                expected,
                "{wish:?} {choice:?} {answered_by:?}"
            );
        }
    }

    #[test]
    fn a_notice_is_read_back_as_it_was_stored() {
        let notice = notice(Some("1-5 0800-2100"));
        let stored = serde_json::to_string(&notice).unwrap();
        assert_eq!(serde_json::from_str::<Notice>(&stored).unwrap(), notice);
    }
}
