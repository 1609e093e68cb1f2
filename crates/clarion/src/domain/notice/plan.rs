//! How the numbers of a notice are tried. What comes after an attempt is decided here alone, by what the plan says, what has happened so far, and the time.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The most attempts of one notice, whatever its plan says.
pub const MAX_ATTEMPTS: usize = 50;

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
        if past.len() >= MAX_ATTEMPTS {
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
mod tests;
