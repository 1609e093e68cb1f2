//! Judges what became of a notice by its own plan, for the tests that kill nodes and for the simulation: no attempt more, none fewer, each to the number whose
//! turn it was, and an ending that the plan or somebody outside has wanted.

use clarion::domain::attempt::Attempt;
use clarion::domain::notice::call_hours::CallHours;
use clarion::domain::notice::ending::NoticeEnding;
use clarion::domain::notice::plan::NumberTurn;
use clarion::domain::notice::{Notice, Recipient, Sequel};
use clarion::domain::outcome::Outcome;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A notice that is over. Every number of it could be called at any time.
#[derive(Debug, Clone)]
pub struct NoticeStory {
    pub notice: Notice,
    /// Whom it calls, those of its lists among them.
    pub numbers: Vec<Recipient>,
    pub attempts: Vec<Attempt>,
    pub ending: Option<NoticeEnding>,
    pub ended_at: Timestamp,
    pub expires_at: Timestamp,
    pub was_cancelled: bool,
    /// What two clocks say of one moment may differ by so much.
    pub clocks_apart: SignedDuration,
}

impl NoticeStory {
    /// Everything in which it did not follow its plan.
    pub fn violations(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for place in 0..self.attempts.len() {
            wrong.extend(self.strayed(place));
        }
        wrong.extend(self.wrong_ending());
        wrong
    }

    /// Each attempt is the one that the plan names after those before it.
    fn strayed(&self, place: usize) -> Option<String> {
        let (before, attempt) = (&self.attempts[..place], &self.attempts[place]);
        let number = place + 1;
        let now = before.last().map_or(attempt.ended_at, |last| last.ended_at);
        match self.sequel(before, now) {
            Sequel::Over(ending) => Some(format!("went on after {}", ending.as_str())),
            Sequel::Dial { number: next, .. } if next.number != attempt.to => {
                Some(format!("attempt {number} called another number"))
            }
            Sequel::Dial { not_before, .. } => {
                let at = attempt.dialled_at.unwrap_or(attempt.ended_at);
                let is_early = place > 0 && at + self.clocks_apart < not_before;
                is_early.then(|| format!("attempt {number} came at {at}, not before {not_before}"))
            }
        }
    }

    fn wrong_ending(&self) -> Option<String> {
        let Some(ending) = self.ending else {
            return Some("does not say how it ended".to_owned());
        };
        let is_right = match ending {
            NoticeEnding::Cancelled => self.was_cancelled,
            NoticeEnding::Expired => self.ended_at + self.clocks_apart >= self.expires_at,
            // Nobody resolves anything here, and money is no matter.
            NoticeEnding::Resolved | NoticeEnding::Unpaid => false,
            // What cannot be said to one cannot be said to another.
            NoticeEnding::Exhausted if self.ends_with(Outcome::PromptFailed) => true,
            NoticeEnding::Talked
            | NoticeEnding::Confirmed
            | NoticeEnding::Interrupted
            | NoticeEnding::Exhausted => {
                self.sequel(&self.attempts, self.ended_at) == Sequel::Over(ending)
            }
        };
        let outcomes = self.attempts.iter().map(|one| one.outcome.as_str());
        let outcomes: Vec<_> = outcomes.collect();
        (!is_right).then(|| format!("ended as {} after {outcomes:?}", ending.as_str()))
    }

    fn ends_with(&self, outcome: Outcome) -> bool {
        (self.attempts.last()).is_some_and(|last| last.outcome == outcome)
    }

    fn sequel(&self, past: &[Attempt], now: Timestamp) -> Sequel {
        let numbers = self.numbers.iter();
        let numbers: Vec<_> = numbers.map(|to| (to.clone(), NumberTurn::Open)).collect();
        let hours = CallHours {
            windows: &[],
            zone: &TimeZone::UTC,
        };
        self.notice.sequel(&numbers, past, hours, now)
    }
}

#[cfg(test)]
pub mod tests {
    use clarion::domain::attempt::AttemptNumber;
    use clarion::domain::notice::plan::NoticePlan;
    use clarion::domain::phone_number::PhoneNumber;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn recipient(number: u16) -> Recipient {
        let digits = number.to_string();
        Recipient {
            called: digits.clone(),
            callee: digits.clone(),
            number: PhoneNumber::from_stored(digits, None),
            caller: None,
        }
    }

    /// A notice to the numbers 1, 2 and 3, each of them twice, which was over an hour before its time.
    pub fn story(attempts: &[(u16, Outcome)], ending: NoticeEnding) -> NoticeStory {
        let attempts = attempts.iter().zip(1_u16..).map(|((to, outcome), number)| {
            let began = at(i64::from(number) * 100);
            Attempt {
                number: AttemptNumber::new(number).unwrap(),
                to: recipient(*to).number,
                outcome: *outcome,
                dialled_at: Some(began),
                answered_at: (*outcome == Outcome::Talked).then_some(began),
                ended_at: began,
                choice: None,
                answered_by: None,
                voice: None,
            }
        });
        NoticeStory {
            attempts: attempts.collect(),
            numbers: [1, 2, 3].map(recipient).to_vec(),
            notice: Notice {
                plan: NoticePlan {
                    redials: 1,
                    tries_a_turn: Some(1),
                    ..NoticePlan::single()
                },
                ..Notice::single()
            },
            ending: Some(ending),
            ended_at: at(5000),
            expires_at: at(8600),
            was_cancelled: false,
            clocks_apart: SignedDuration::ZERO,
        }
    }

    #[test]
    fn a_plan_that_was_followed_passes_and_every_other_one_fails() {
        use NoticeEnding::{Cancelled, Confirmed, Exhausted, Expired, Interrupted, Talked};
        use Outcome::{Busy, Declined, NotAnswered};
        let wrong = |story: &NoticeStory| story.violations().join("; ");
        let whole = [
            (1, Busy),
            (2, Declined),
            (3, Outcome::Interrupted),
            (1, NotAnswered),
            (3, Busy),
        ];
        let good = |attempts, ending| assert_eq!(wrong(&story(attempts, ending)), "");
        good(&whole, Exhausted);
        good(&[(1, Busy), (2, Outcome::Talked)], Talked);
        good(&[(1, Busy), (2, Outcome::PromptFailed)], Exhausted);
        let bad = |attempts, ending, expected: &str| {
            let wrong = wrong(&story(attempts, ending));
            assert!(wrong.contains(expected), "{wrong}");
        };
        bad(
            &whole[..1],
            Exhausted,
            "ended as exhausted after [\"busy\"]",
        );
        bad(&whole[..3], Exhausted, "ended as exhausted");
        bad(&whole[..4], Interrupted, "ended as interrupted");
        bad(&whole[..4], Cancelled, "ended as cancelled");
        bad(&whole[..4], Expired, "ended as expired");
        bad(&whole, Confirmed, "ended as confirmed");
        bad(
            &[(1, Busy), (3, Busy)],
            Exhausted,
            "attempt 2 called another",
        );
        bad(
            &[(1, Busy), (1, Busy)],
            Exhausted,
            "attempt 2 called another",
        );
        bad(
            &[(1, Outcome::Talked), (2, Busy)],
            Exhausted,
            "went on after talked",
        );
        let more = [&whole[..], &[(3, Busy)]].concat();
        bad(&more, Exhausted, "went on after exhausted");
        let unsaid = NoticeStory {
            ending: None,
            ..story(&whole, Exhausted)
        };
        assert_eq!(wrong(&unsaid), "does not say how it ended");
        let mut hurried = story(&whole, Exhausted);
        hurried.attempts[3].dialled_at = Some(at(110));
        assert!(wrong(&hurried).contains("attempt 4 came at"));
        let wanted = NoticeStory {
            was_cancelled: true,
            ..story(&whole[..1], Cancelled)
        };
        assert_eq!(wrong(&wanted), "");
        let late = NoticeStory {
            ended_at: at(8600),
            ..story(&whole[..1], Expired)
        };
        assert_eq!(wrong(&late), "");
    }
}
