//! How the numbers of a notice are tried. What comes after an attempt is decided here alone, by what the plan says, what has happened so far, and the time.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The most attempts of one notice, whatever its plan says.
pub const MOST_ATTEMPTS: usize = 50;

/// Endings after which a number may be tried again, as `redialOn` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RedialReason {
    Busy,
    NotAnswered,
    Declined,
    /// Somebody answered, and nobody pressed the key.
    Unconfirmed,
    Machine,
    Failed,
}

impl RedialReason {
    pub const ALL: [Self; 6] = [
        Self::Busy,
        Self::NotAnswered,
        Self::Declined,
        Self::Unconfirmed,
        Self::Machine,
        Self::Failed,
    ];

    /// The word in `redialOn`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::NotAnswered => "noanswer",
            Self::Declined => "declined",
            Self::Unconfirmed => "unconfirmed",
            Self::Machine => "machine",
            Self::Failed => "failed",
        }
    }

    /// Who has declined does not want to be called again at once.
    pub fn is_usual(self) -> bool {
        self != Self::Declined
    }
}

/// How the numbers of a notice are tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticePlan {
    /// Further tries of a number after its first.
    pub redials: u16,
    /// From the end of a number's last try to its next one. The last value repeats.
    pub pauses: Vec<SignedDuration>,
    pub redial_on: Vec<RedialReason>,
    /// Tries of a number before the next one has its turn; `None` for all of them. After the last number the first has its turn again.
    pub tries_a_turn: Option<u16>,
}

/// What an attempt has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptVerdict {
    /// Nobody knows yet, and the number may be tried again where the plan says so.
    Missed(RedialReason),
    /// Its process was lost: it counts as tried, and no plan ends because of it.
    Interrupted,
    /// This number is not called again: it does not exist, must not be called, or does not want to be.
    Hopeless,
}

/// An attempt that has ended and did not end the notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastAttempt {
    /// Canonical digits, with the extension where there is one.
    pub number: String,
    pub verdict: AttemptVerdict,
    pub ended_at: Timestamp,
}

/// A number of a notice at its place among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// As in `PastAttempt`.
    pub number: String,
    pub turn: NumberTurn,
}

/// Whether a number may have its turn now. One that may not keeps its place: the next one is that after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberTurn {
    Open,
    /// It must not be called now.
    Barred,
    /// It had its turn, and was given up before anything was sent.
    Lost,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextAttempt {
    /// This number, by its place in the list, and not before this moment.
    Dial { place: usize, not_before: Timestamp },
    /// No number has a try left.
    Exhausted,
}

/// Why an attempt follows another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowUp {
    /// The same number is tried again.
    Redial,
    /// The number has had its tries.
    TriesUsed,
    /// After such an ending a number is not tried again.
    NoReason,
    /// The number has had the tries of its turn.
    TurnOver,
    /// The number could not be called any more.
    GaveWay,
}

impl FollowUp {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Redial => "redial",
            Self::TriesUsed => "tries-used",
            Self::NoReason => "no-reason-to-redial",
            Self::TurnOver => "turn-over",
            Self::GaveWay => "gave-way",
        }
    }

    /// For people, after the outcome of the attempt before.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Redial => "the number is tried again",
            Self::TriesUsed => "the number has had its tries, the next one has its turn",
            Self::NoReason => "no reason to try the number again, the next one has its turn",
            Self::TurnOver => "the number has had the tries of its turn, the next one has its turn",
            Self::GaveWay => {
                "the number is held back or may not be called any more, another one has its turn"
            }
        }
    }
}

impl NoticePlan {
    /// A request that says nothing of this: one attempt.
    pub fn single() -> Self {
        Self {
            redials: 0,
            pauses: vec![SignedDuration::from_secs(60)],
            redial_on: RedialReason::ALL
                .into_iter()
                .filter(|reason| reason.is_usual())
                .collect(),
            tries_a_turn: None,
        }
    }

    /// How long a number that has had so many tries may be held back before it loses its turn: as long as it is paused between two tries.
    pub fn patience(&self, tries: usize) -> SignedDuration {
        let pause = self.pauses.get(tries.saturating_sub(1));
        pause.or(self.pauses.last()).copied().unwrap_or_default()
    }

    /// What comes after these attempts. `candidates` are all the numbers in the order of their turns, each of them once: the list may have changed since the
    /// last attempt.
    pub fn next(
        &self,
        candidates: &[Candidate],
        past: &[PastAttempt],
        now: Timestamp,
    ) -> NextAttempt {
        if past.len() >= MOST_ATTEMPTS {
            return NextAttempt::Exhausted;
        }
        match self.next_place(candidates, past) {
            Some(place) => NextAttempt::Dial {
                place,
                not_before: self
                    .due(&candidates[place].number, past, now)
                    .map_or(now, |due| due.max(now)),
            },
            None => NextAttempt::Exhausted,
        }
    }

    fn next_place(&self, candidates: &[Candidate], past: &[PastAttempt]) -> Option<usize> {
        let is_open = |place: &usize| {
            let candidate = &candidates[*place];
            candidate.turn == NumberTurn::Open && !self.is_finished(&candidate.number, past)
        };
        // One that has left the list gives its turn to the first.
        let Some(current) = current_place(candidates, past) else {
            return (0..candidates.len()).find(is_open);
        };
        if is_open(&current) && !self.turn_is_over(past) {
            return Some(current);
        }
        let others = (current + 1..candidates.len()).chain(0..=current);
        others.into_iter().find(is_open)
    }

    /// Why this number is dialled after these attempts.
    pub fn why(&self, number: &str, past: &[PastAttempt]) -> Option<FollowUp> {
        let last = past.last()?;
        let tries = past.iter().filter(|attempt| attempt.number == last.number);
        Some(if last.number == number {
            FollowUp::Redial
        } else if self.is_closed_by(last.verdict) {
            FollowUp::NoReason
        } else if tries.count() > usize::from(self.redials) {
            FollowUp::TriesUsed
        } else if self.turn_is_over(past) {
            FollowUp::TurnOver
        } else {
            FollowUp::GaveWay
        })
    }

    fn is_finished(&self, number: &str, past: &[PastAttempt]) -> bool {
        let mut tries = 0;
        let mut is_closed = false;
        for attempt in past.iter().filter(|attempt| attempt.number == number) {
            tries += 1;
            is_closed = self.is_closed_by(attempt.verdict);
        }
        is_closed || tries > usize::from(self.redials)
    }

    /// Whether a number is not tried again after such an attempt.
    fn is_closed_by(&self, verdict: AttemptVerdict) -> bool {
        match verdict {
            AttemptVerdict::Missed(reason) => !self.redial_on.contains(&reason),
            AttemptVerdict::Interrupted => false,
            AttemptVerdict::Hopeless => true,
        }
    }

    /// The last number has had the tries of its turn.
    fn turn_is_over(&self, past: &[PastAttempt]) -> bool {
        let (Some(tries_a_turn), Some(last)) = (self.tries_a_turn, past.last()) else {
            return false;
        };
        let in_a_row = past
            .iter()
            .rev()
            .take_while(|attempt| attempt.number == last.number);
        in_a_row.count() % usize::from(tries_a_turn.max(1)) == 0
    }

    /// The end of the pause after a number's last try; `None` if it has not been tried. No try has ended in the future: if one seems to, the clock has been
    /// set back since, and nobody waits until it shows that time again.
    fn due(&self, number: &str, past: &[PastAttempt], now: Timestamp) -> Option<Timestamp> {
        let tries = past.iter().filter(|attempt| attempt.number == number);
        let (mut count, mut ended_at) = (0_usize, None);
        for attempt in tries {
            count += 1;
            ended_at = Some(attempt.ended_at.min(now));
        }
        let pause = self.patience(count);
        ended_at.map(|at: Timestamp| at.saturating_add(pause).unwrap_or(Timestamp::MAX))
    }
}

/// Whose turn it was: that of the number that has lost it, or else of the last one that was tried.
fn current_place(candidates: &[Candidate], past: &[PastAttempt]) -> Option<usize> {
    let mut places = candidates.iter();
    let lost = places.position(|candidate| candidate.turn == NumberTurn::Lost);
    lost.or_else(|| {
        let last = past.last()?;
        let mut places = candidates.iter();
        places.position(|candidate| candidate.number == last.number)
    })
}

#[cfg(test)]
mod tests {
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
    fn played(
        plan: &NoticePlan,
        numbers: &[String],
        verdicts: &[AttemptVerdict],
    ) -> Vec<(usize, i64)> {
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
            verdicts in prop::collection::vec(verdict(), MOST_ATTEMPTS),
        ) {
            let numbers = numbers(count);
            let dialled = played(&plan, &numbers, &verdicts);
            prop_assert!(dialled.len() <= MOST_ATTEMPTS);
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
                prop_assert!(is_closed || is_spent || dialled.len() == MOST_ATTEMPTS, "it stops early");
            }
        }

        #[test]
        fn whoever_is_held_back_or_barred_is_passed_over_in_turn_and_every_plan_ends(
            plan in any_plan(),
            count in 1..=21_usize,
            verdicts in prop::collection::vec(verdict(), MOST_ATTEMPTS),
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
                    let is_full = past.len() == MOST_ATTEMPTS;
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
}
