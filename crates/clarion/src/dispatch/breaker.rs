//! A trunk that keeps failing is left alone for a while, then tried with one call.
//!
//! A number that is refused says little about the trunk, so only different numbers count, and one call that gets through clears the trunk.
//! Numbers that are refused cost the others no more than a second: such a trunk is there, and one call a second finds out whether it works
//! again. A trunk that says nothing, or that says that it is down, is left alone for longer each time.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::TrunkHealthSettings;

/// A trunk that refuses every number is tried again after this.
const AFTER_REFUSALS: Duration = Duration::from_secs(1);

/// What a call has shown about its trunk.
#[derive(Debug, Clone, Copy)]
pub enum Evidence<'a> {
    /// The callee's side has answered, whatever it said.
    Worked,
    /// The trunk does not carry a call to this number.
    Refused(&'a str),
    /// Nothing came back, or nothing could be sent.
    Silent(&'a str),
    /// By what it said, it carries no calls at all now.
    Down,
}

#[derive(Debug)]
pub struct Breaker {
    settings: TrunkHealthSettings,
    /// Since something worked.
    refused: HashSet<u64>,
    silent: HashSet<u64>,
    pauses: u32,
    paused_until: Option<Instant>,
    /// The last call that was sent to see whether it works again, while that is not known.
    trial: Option<Trial>,
    trials: u64,
}

#[derive(Debug, Clone, Copy)]
struct Trial {
    number: u64,
    began: Instant,
}

/// Whether a call may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendLeave {
    Free,
    /// It is the one that tries, by this number.
    Trial(u64),
    Denied,
}

impl Breaker {
    pub fn new(settings: TrunkHealthSettings) -> Self {
        Self {
            settings,
            refused: HashSet::new(),
            silent: HashSet::new(),
            pauses: 0,
            paused_until: None,
            trial: None,
            trials: 0,
        }
    }

    /// May a call be sent there? After a pause the answer is yes for one call, until its end is known or a further pause is over: a number
    /// that says nothing for long, or is refused late, does not keep others from trying.
    pub fn ask(&mut self, now: Instant) -> SendLeave {
        if !self.would_allow(now) {
            return SendLeave::Denied;
        }
        if self.paused_until.is_none() {
            return SendLeave::Free;
        }
        self.trials += 1;
        let number = self.trials;
        self.trial = Some(Trial { number, began: now });
        SendLeave::Trial(number)
    }

    pub fn would_allow(&self, now: Instant) -> bool {
        let long = match self.pauses {
            0 => AFTER_REFUSALS,
            _ => self.settings.first_pause,
        };
        let is_long = |trial: Trial| now >= trial.began + long;
        let Some(until) = self.paused_until else {
            return true;
        };
        now >= until && self.trial.is_none_or(is_long)
    }

    /// Calls are sent one by one.
    pub fn is_tripped(&self) -> bool {
        self.paused_until.is_some()
    }

    /// The one that tried is over. If nobody has said how, another one tries.
    pub fn trial_over(&mut self, number: u64) {
        self.trial.take_if(|trial| trial.number == number);
    }

    pub fn note(&mut self, evidence: Evidence<'_>, now: Instant) {
        match evidence {
            Evidence::Worked => {
                let trials = self.trials;
                *self = Self::new(self.settings);
                self.trials = trials;
            }
            Evidence::Refused(number) => self.refuse(number, now),
            Evidence::Silent(number) => {
                let is_many = self.settings.silences as usize;
                self.silent.insert(hash(number));
                // One silence says nothing new about a trunk that refuses numbers: it is there.
                if self.pauses > 0 || self.silent.len() >= is_many {
                    self.pause(now);
                }
            }
            Evidence::Down => self.pause(now),
        }
    }

    fn refuse(&mut self, number: &str, now: Instant) {
        let is_many = self.settings.refusals as usize;
        let is_new = self.refused.insert(hash(number));
        // A number that is known to be refused says nothing new: another one tries at once.
        if is_new && self.refused.len() >= is_many {
            let until = now + AFTER_REFUSALS;
            self.paused_until = Some(self.paused_until.map_or(until, |known| known.max(until)));
        }
        if self.refused.len() > 2 * is_many {
            self.refused = (self.refused.iter().copied()).take(is_many).collect();
        }
    }

    /// Calls that were under way together fail together: that is one failure.
    fn pause(&mut self, now: Instant) {
        let is_paused = self.paused_until.is_some_and(|until| now < until);
        if self.pauses > 0 && is_paused {
            return;
        }
        let pause = self.settings.first_pause * 2u32.saturating_pow(self.pauses.min(8));
        self.paused_until = Some(now + pause.min(self.settings.longest_pause));
        self.pauses += 1;
    }
}

fn hash(number: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    number.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: TrunkHealthSettings = TrunkHealthSettings {
        refusals: 20,
        silences: 5,
        first_pause: Duration::from_secs(10),
        longest_pause: Duration::from_secs(300),
    };

    fn second(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    /// A breaker to which so many different numbers were silent.
    fn silent(numbers: u32, now: Instant) -> Breaker {
        let mut breaker = Breaker::new(SETTINGS);
        for number in 0..numbers {
            breaker.note(Evidence::Silent(&number.to_string()), now);
        }
        breaker
    }

    /// A breaker whose trunk has refused so many different numbers.
    fn refused(numbers: u32, now: Instant) -> Breaker {
        let mut breaker = Breaker::new(SETTINGS);
        for number in 0..numbers {
            breaker.note(Evidence::Refused(&number.to_string()), now);
        }
        breaker
    }

    /// The number of the call that may try.
    fn trial(breaker: &mut Breaker, now: Instant) -> Option<u64> {
        match breaker.ask(now) {
            SendLeave::Trial(number) => Some(number),
            SendLeave::Denied => None,
            SendLeave::Free => panic!("it is not tripped"),
        }
    }

    #[test]
    fn after_silence_in_a_row_one_call_tries_again() {
        let now = Instant::now();
        assert_eq!(silent(4, now).ask(now), SendLeave::Free);
        let mut breaker = silent(5, now);
        assert_eq!(trial(&mut breaker, now + second(9)), None);
        let later = now + second(11);
        let first = trial(&mut breaker, later).expect("one tries");
        assert_eq!(trial(&mut breaker, later), None, "and only one");
        breaker.note(Evidence::Silent("another"), later);
        breaker.trial_over(first);
        assert_eq!(
            trial(&mut breaker, later + second(19)),
            None,
            "twice as long"
        );
        assert!(trial(&mut breaker, later + second(21)).is_some());
        breaker.note(Evidence::Worked, later);
        assert_eq!(breaker.ask(later), SendLeave::Free);
    }

    #[test]
    fn a_trunk_that_says_that_it_is_down_is_believed_at_once_and_many_at_once_are_one() {
        let now = Instant::now();
        let mut breaker = Breaker::new(SETTINGS);
        for _ in 0..50 {
            breaker.note(Evidence::Down, now);
        }
        assert_eq!(trial(&mut breaker, now + second(9)), None);
        assert!(trial(&mut breaker, now + second(10)).is_some());
    }

    #[test]
    fn one_bad_number_never_stops_a_trunk() {
        let now = Instant::now();
        let mut breaker = Breaker::new(SETTINGS);
        for _ in 0..1000 {
            breaker.note(Evidence::Refused("bad"), now);
            breaker.note(Evidence::Silent("dead"), now);
        }
        assert_eq!(breaker.ask(now), SendLeave::Free);
    }

    #[test]
    fn refused_numbers_cost_the_others_a_second_at_most() {
        let now = Instant::now();
        let mut breaker = Breaker::new(SETTINGS);
        let (mut time, mut dialled) = (now, 0);
        for number in 0..1000 {
            let leave = breaker.ask(time);
            if leave != SendLeave::Denied {
                dialled += 1;
                breaker.note(Evidence::Refused(&number.to_string()), time);
            }
            if let SendLeave::Trial(number) = leave {
                breaker.trial_over(number);
            }
            time += Duration::from_millis(100);
            assert!(breaker.would_allow(time + second(1)), "{number}");
        }
        assert!((100..130).contains(&dialled), "one a second: {dialled}");
        let next = time + second(1);
        assert!(trial(&mut breaker, next).is_some());
        breaker.note(Evidence::Worked, next);
        assert_eq!(breaker.ask(next), SendLeave::Free, "cleared");
    }

    #[test]
    fn a_trial_does_not_wait_for_a_number_that_is_known_to_be_bad() {
        let now = Instant::now();
        let mut breaker = refused(20, now);
        let later = now + second(1);
        assert_eq!(trial(&mut breaker, now), None);
        let known = trial(&mut breaker, later).unwrap();
        breaker.note(Evidence::Refused("7"), later);
        breaker.trial_over(known);
        assert!(trial(&mut breaker, later).is_some(), "another one at once");
    }

    #[test]
    fn a_trunk_that_takes_long_to_refuse_is_tried_every_second_too() {
        let now = Instant::now();
        let mut breaker = refused(20, now);
        let later = now + second(1);
        assert!(trial(&mut breaker, later).is_some());
        assert_eq!(trial(&mut breaker, later + second(1) / 2), None);
        assert!(
            trial(&mut breaker, later + second(1)).is_some(),
            "the one before has no answer yet"
        );
    }

    #[test]
    fn one_silence_does_not_stop_a_trunk_that_refuses_numbers() {
        let now = Instant::now();
        let mut breaker = refused(20, now);
        let later = now + second(1);
        let silent = trial(&mut breaker, later).unwrap();
        breaker.note(Evidence::Silent("silent"), later);
        breaker.trial_over(silent);
        assert!(trial(&mut breaker, later).is_some(), "no pause of its own");
        for number in 1..5 {
            breaker.note(Evidence::Silent(&number.to_string()), later);
        }
        let denied = trial(&mut breaker, later + second(9));
        assert_eq!(denied, None, "many are silent");
        let mut breaker = refused(20, now);
        breaker.note(Evidence::Down, now);
        let denied = trial(&mut breaker, now + second(9));
        assert_eq!(denied, None, "it says that it is down");
    }

    #[test]
    fn a_trial_that_says_nothing_for_long_does_not_keep_others_from_trying() {
        let now = Instant::now();
        let mut breaker = silent(5, now);
        let later = now + second(10);
        let slow = trial(&mut breaker, later).unwrap();
        assert_eq!(trial(&mut breaker, later + second(9)), None);
        let other = trial(&mut breaker, later + second(10)).unwrap();
        breaker.trial_over(slow);
        let last = later + second(11);
        assert_eq!(trial(&mut breaker, last), None, "the other one still tries");
        breaker.trial_over(other);
        assert!(trial(&mut breaker, last).is_some());
    }

    #[test]
    fn a_trial_whose_end_nobody_knows_is_followed_by_another() {
        let now = Instant::now();
        let mut breaker = silent(5, now);
        let later = now + second(11);
        let lost = trial(&mut breaker, later).unwrap();
        breaker.trial_over(lost);
        assert!(trial(&mut breaker, later).is_some());
    }

    #[test]
    fn a_success_in_between_starts_the_count_anew() {
        let now = Instant::now();
        let mut breaker = Breaker::new(SETTINGS);
        for number in 0..20 {
            breaker.note(Evidence::Silent(&number.to_string()), now);
            breaker.note(Evidence::Refused(&number.to_string()), now);
            breaker.note(Evidence::Worked, now);
        }
        assert_eq!(breaker.ask(now), SendLeave::Free);
    }
}
