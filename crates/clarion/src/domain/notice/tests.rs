//! What becomes of a notice after each attempt.

mod hours;

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
    let numbers = notice
        .numbers
        .iter()
        .map(|to| (to.clone(), NumberTurn::Open));
    let numbers: Vec<_> = numbers.collect();
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
    for (wanted, choice, answered_by, expected) in [
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
            outcome(wanted, choice, answered_by),
            expected,
            "{wanted:?} {choice:?} {answered_by:?}"
        );
    }
}

#[test]
fn a_notice_is_read_back_as_it_was_stored() {
    let notice = notice(Some("1-5 0800-2100"));
    let stored = serde_json::to_string(&notice).unwrap();
    assert_eq!(serde_json::from_str::<Notice>(&stored).unwrap(), notice);
}
