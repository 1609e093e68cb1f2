use proptest::prelude::*;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn plan(redials: u16, pauses: &[i64], tries_a_turn: Option<u16>) -> NoticePlan {
    NoticePlan {
        redials,
        pauses: pauses
            .iter()
            .map(|pause| SignedDuration::from_secs(*pause))
            .collect(),
        tries_a_turn,
        ..NoticePlan::single()
    }
}

fn numbers(count: usize) -> Vec<String> {
    (0..count)
        .map(|place| format!("861380000000{place}"))
        .collect()
}

/// Places in the list, and the seconds at which they were dialled.
type Dialled = &'static [(usize, i64)];

fn candidates(numbers: &[String]) -> Vec<Candidate> {
    let open = |number: &String| Candidate {
        number: number.clone(),
        turn: NumberTurn::Open,
    };
    numbers.iter().map(open).collect()
}

/// Attempts of ten seconds, each dialled as soon as it may be: whom they called, and when.
fn played(plan: &NoticePlan, numbers: &[String], verdicts: &[AttemptVerdict]) -> Vec<(usize, i64)> {
    let mut past = Vec::new();
    let mut dialled = Vec::new();
    let mut now = at(0);
    let mut verdicts = verdicts.iter().cycle();
    let candidates = candidates(numbers);
    while let NextAttempt::Dial { place, not_before } = plan.next(&candidates, &past, now) {
        dialled.push((place, not_before.as_second() - at(0).as_second()));
        now = not_before + SignedDuration::from_secs(10);
        past.push(PastAttempt {
            number: numbers[place].clone(),
            verdict: *verdicts.next().unwrap(),
            ended_at: now,
        });
    }
    dialled
}

#[test]
fn every_attempt_after_the_first_has_its_reason() {
    let busy = AttemptVerdict::Missed(RedialReason::Busy);
    let declined = AttemptVerdict::Missed(RedialReason::Declined);
    let numbers = numbers(2);
    let why = |plan: &NoticePlan, past: &[(usize, AttemptVerdict)], next: usize| {
        let past = past.iter().map(|(place, verdict)| PastAttempt {
            number: numbers[*place].clone(),
            verdict: *verdict,
            ended_at: at(0),
        });
        plan.why(&numbers[next], &past.collect::<Vec<_>>())
    };
    let twice = plan(1, &[60], None);
    let in_turns = plan(2, &[60], Some(1));
    assert_eq!(why(&twice, &[], 0), None);
    for (plan, past, next, expected) in [
        (&twice, &[(0, busy)][..], 0, FollowUp::Redial),
        (&twice, &[(0, busy), (0, busy)], 1, FollowUp::TriesUsed),
        (&twice, &[(0, declined)], 1, FollowUp::NoReason),
        (
            &twice,
            &[(0, AttemptVerdict::Hopeless)],
            1,
            FollowUp::NoReason,
        ),
        (&twice, &[(0, busy)], 1, FollowUp::GaveWay),
        (&in_turns, &[(0, busy)], 1, FollowUp::TurnOver),
        (
            &in_turns,
            &[(0, busy), (1, declined)],
            0,
            FollowUp::NoReason,
        ),
    ] {
        assert_eq!(
            why(plan, past, next),
            Some(expected),
            "{past:?} then {next}"
        );
    }
}

#[test]
fn plans_are_followed_to_the_letter() {
    use AttemptVerdict::{Hopeless, Interrupted, Missed};
    let busy = Missed(RedialReason::Busy);
    let declined = Missed(RedialReason::Declined);
    let cases: &[(&str, NoticePlan, usize, &[AttemptVerdict], Dialled)] = &[
        (
            "one request, one attempt",
            NoticePlan::single(),
            1,
            &[busy],
            &[(0, 0)],
        ),
        (
            "pauses from the end of a try; the last repeats",
            plan(3, &[30, 60], None),
            1,
            &[busy],
            &[(0, 0), (0, 40), (0, 110), (0, 180)],
        ),
        (
            "the next number has its turn without a pause",
            plan(1, &[60], None),
            2,
            &[busy],
            &[(0, 0), (0, 70), (1, 80), (1, 150)],
        ),
        (
            "turns of one try: each waits for its own pause only",
            plan(1, &[60], Some(1)),
            3,
            &[busy],
            &[(0, 0), (1, 10), (2, 20), (0, 70), (1, 80), (2, 90)],
        ),
        (
            "turns of two tries, of three each",
            plan(2, &[10], Some(2)),
            2,
            &[busy],
            &[(0, 0), (0, 20), (1, 30), (1, 50), (0, 60), (1, 70)],
        ),
        (
            "who declines is not called again",
            plan(5, &[60], None),
            2,
            &[declined],
            &[(0, 0), (1, 10)],
        ),
        (
            "what is hopeless is finished, what was interrupted is not",
            plan(1, &[60], None),
            2,
            &[Hopeless, Interrupted],
            &[(0, 0), (1, 10), (1, 80)],
        ),
        (
            "an interruption counts as a try even where nothing is redialled",
            NoticePlan {
                redial_on: vec![],
                ..plan(2, &[60], None)
            },
            1,
            &[Interrupted, busy],
            &[(0, 0), (0, 70)],
        ),
    ];
    for (what, plan, count, verdicts, expected) in cases {
        assert_eq!(
            played(plan, &numbers(*count), verdicts),
            *expected,
            "{what}"
        );
    }
}

/// What it shows, the plan, the places that were dialled, the turns that are not open, and the place that is next.
type PassedOver<'a> = (
    &'a str,
    &'a NoticePlan,
    &'a [usize],
    &'a [(usize, NumberTurn)],
    Option<usize>,
);

/// After busy attempts to these places, who has the next turn.
fn next_of(
    plan: &NoticePlan,
    dialled: &[usize],
    turns: &[(usize, NumberTurn)],
    count: usize,
) -> Option<usize> {
    let numbers = numbers(count);
    let missed = |place: &usize| PastAttempt {
        number: numbers[*place].clone(),
        verdict: AttemptVerdict::Missed(RedialReason::Busy),
        ended_at: at(0),
    };
    let past: Vec<_> = dialled.iter().map(missed).collect();
    let mut candidates = candidates(&numbers);
    for (place, turn) in turns {
        candidates[*place].turn = *turn;
    }
    match plan.next(&candidates, &past, at(0)) {
        NextAttempt::Dial { place, .. } => Some(place),
        NextAttempt::Exhausted => None,
    }
}

#[test]
fn a_number_that_may_not_be_called_gives_its_turn_to_the_one_after_it() {
    use NumberTurn::{Barred, Lost};
    let in_turns = plan(2, &[60], Some(2));
    let one_each = plan(0, &[60], None);
    let cases: [PassedOver<'_>; 11] = [
        ("held back", &in_turns, &[0, 0, 1], &[(1, Lost)], Some(2)),
        ("barred", &in_turns, &[0, 0, 1], &[(1, Barred)], Some(2)),
        (
            "the last one: the first begins again",
            &in_turns,
            &[0, 0, 1, 1, 2],
            &[(2, Lost)],
            Some(0),
        ),
        (
            "before it was tried",
            &in_turns,
            &[0, 0],
            &[(1, Lost)],
            Some(2),
        ),
        (
            "one after the other",
            &in_turns,
            &[0, 0],
            &[(2, Lost)],
            Some(0),
        ),
        (
            "before anybody was tried",
            &in_turns,
            &[],
            &[(0, Lost)],
            Some(1),
        ),
        ("the second as well", &in_turns, &[], &[(1, Lost)], Some(2)),
        (
            "past one that is barred",
            &in_turns,
            &[0, 0, 1],
            &[(1, Lost), (2, Barred)],
            Some(0),
        ),
        (
            "past one that has had its tries",
            &one_each,
            &[0, 1],
            &[(2, Lost)],
            None,
        ),
        (
            "nobody else is left",
            &one_each,
            &[0, 1],
            &[(2, Barred)],
            None,
        ),
        (
            "all are barred",
            &in_turns,
            &[0],
            &[(0, Barred), (1, Barred), (2, Barred)],
            None,
        ),
    ];
    for (what, plan, dialled, turns, expected) in cases {
        assert_eq!(next_of(plan, dialled, turns, 3), expected, "{what}");
    }
}

#[test]
fn a_clock_that_is_set_back_makes_nobody_wait_for_longer_than_the_pause() {
    let plan = plan(1, &[60], None);
    for (ended, now, due) in [(0, 20, 60), (0, 90, 90), (7_200, 20, 80)] {
        let past = [PastAttempt {
            number: numbers(1).remove(0),
            verdict: AttemptVerdict::Missed(RedialReason::Busy),
            ended_at: at(ended),
        }];
        let next = plan.next(&candidates(&numbers(1)), &past, at(now));
        let not_before = at(due);
        assert_eq!(
            next,
            NextAttempt::Dial {
                place: 0,
                not_before
            },
            "{ended} {now}"
        );
    }
}

#[test]
fn a_list_that_changes_counts_from_the_next_attempt() {
    let plan = plan(1, &[60], None);
    let missed = |number: &str| PastAttempt {
        number: number.to_owned(),
        verdict: AttemptVerdict::Missed(RedialReason::Busy),
        ended_at: at(0),
    };
    let numbers = numbers(3);
    let past = [missed(&numbers[1])];
    let next = |numbers: &[String]| plan.next(&candidates(numbers), &past, at(0));
    let now = |place| NextAttempt::Dial {
        place,
        not_before: at(0),
    };
    assert_eq!(
        next(&[numbers[0].clone(), numbers[2].clone()]),
        now(0),
        "it has left"
    );
    let later = NextAttempt::Dial {
        place: 2,
        not_before: at(60),
    };
    assert_eq!(
        next(&[numbers[0].clone(), numbers[2].clone(), numbers[1].clone()]),
        later
    );
    assert_eq!(next(&[]), NextAttempt::Exhausted);
}

fn verdict() -> impl Strategy<Value = AttemptVerdict> {
    prop_oneof![
        6 => prop::sample::select(RedialReason::ALL.to_vec()).prop_map(AttemptVerdict::Missed),
        1 => Just(AttemptVerdict::Interrupted),
        1 => Just(AttemptVerdict::Hopeless),
    ]
}

fn turn() -> impl Strategy<Value = NumberTurn> {
    prop_oneof![4 => Just(NumberTurn::Open), 1 => Just(NumberTurn::Barred), 1 => Just(NumberTurn::Lost)]
}

fn any_plan() -> impl Strategy<Value = NoticePlan> {
    (
        0..=10_u16,
        prop::collection::vec(10..4000_i64, 1..4),
        prop::sample::subsequence(RedialReason::ALL.to_vec(), 0..=6),
        prop::option::of(1..=11_u16),
    )
        .prop_map(|(redials, pauses, redial_on, tries_a_turn)| NoticePlan {
            redial_on,
            ..plan(redials, &pauses, tries_a_turn)
        })
}

proptest! {
    #[test]
    fn no_plan_dials_too_often_stops_early_or_hurries(
        plan in any_plan(),
        count in 1..=21_usize,
        verdicts in prop::collection::vec(verdict(), MAX_ATTEMPTS),
    ) {
        let numbers = numbers(count);
        let dialled = played(&plan, &numbers, &verdicts);
        prop_assert!(dialled.len() <= MAX_ATTEMPTS);
        prop_assert_eq!(dialled.first(), Some(&(0, 0)));
        for place in 0..count {
            let of = |(at, _): &(usize, (usize, i64))| *at;
            let mine: Vec<_> = dialled.iter().copied().enumerate().filter(|(_, (to, _))| *to == place).collect();
            prop_assert!(mine.len() <= usize::from(plan.redials) + 1);
            for (tried, pair) in mine.windows(2).enumerate() {
                let pause = plan.pauses.get(tried).or(plan.pauses.last()).unwrap().as_secs();
                prop_assert!(pair[1].1.1 >= pair[0].1.1 + 10 + pause, "it waits");
                let verdict = verdicts[of(&pair[0])];
                let goes_on = match verdict {
                    AttemptVerdict::Missed(reason) => plan.redial_on.contains(&reason),
                    AttemptVerdict::Interrupted => true,
                    AttemptVerdict::Hopeless => false,
                };
                prop_assert!(goes_on, "{verdict:?} finishes a number");
            }
            // A number that was not finished has had all its tries, or the notice as many as any may have.
            let last = mine.last().map(|last| verdicts[of(last)]);
            let is_closed = match last {
                Some(AttemptVerdict::Missed(reason)) => !plan.redial_on.contains(&reason),
                None | Some(AttemptVerdict::Interrupted) => false,
                Some(AttemptVerdict::Hopeless) => true,
            };
            let is_spent = mine.len() == usize::from(plan.redials) + 1;
            prop_assert!(is_closed || is_spent || dialled.len() == MAX_ATTEMPTS, "it stops early");
        }
    }

    #[test]
    fn whoever_is_held_back_or_barred_is_passed_over_in_turn_and_every_plan_ends(
        plan in any_plan(),
        count in 1..=21_usize,
        verdicts in prop::collection::vec(verdict(), MAX_ATTEMPTS),
        turns in prop::collection::vec(turn(), 200),
    ) {
        let numbers = numbers(count);
        let mut past: Vec<PastAttempt> = Vec::new();
        let mut lost: Option<usize> = None;
        let mut current: Option<usize> = None;
        for (step, turn) in turns.iter().enumerate() {
            let mut candidates = candidates(&numbers);
            // One number is barred for this step, and who was given up has lost this turn.
            candidates[step % count].turn = if *turn == NumberTurn::Barred { NumberTurn::Barred } else { NumberTurn::Open };
            if let Some(place) = lost.take() {
                candidates[place].turn = NumberTurn::Lost;
            }
            let may_be_called = |place: usize| {
                candidates[place].turn == NumberTurn::Open && !plan.is_finished(&numbers[place], &past)
            };
            let NextAttempt::Dial { place, .. } = plan.next(&candidates, &past, at(0)) else {
                let is_full = past.len() == MAX_ATTEMPTS;
                prop_assert!(is_full || !(0..count).any(may_be_called), "it stops early");
                break;
            };
            prop_assert!(may_be_called(place));
            if let Some(current) = current {
                let distance = |to: usize| (to + count - current - 1) % count;
                let is_passed = |other: usize| may_be_called(other) && distance(other) < distance(place);
                prop_assert!(place == current || !(0..count).any(is_passed), "somebody was passed over");
            }
            current = Some(place);
            if *turn == NumberTurn::Lost {
                lost = Some(place);
                continue;
            }
            past.push(PastAttempt {
                number: numbers[place].clone(),
                verdict: verdicts[past.len()],
                ended_at: at(0),
            });
            let tries = past.iter().filter(|attempt| attempt.number == numbers[place]);
            prop_assert!(tries.count() <= usize::from(plan.redials) + 1);
        }
    }
}
