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
    refused: HashSet<u64>,
    silent: HashSet<u64>,
    pauses: u32,
    paused_until: Option<Instant>,
    /// One call is under way to see whether it works again.
    trying: bool,
}

impl Breaker {
    pub fn new(settings: TrunkHealthSettings) -> Self {
        Self {
            settings,
            refused: HashSet::new(),
            silent: HashSet::new(),
            pauses: 0,
            paused_until: None,
            trying: false,
        }
    }

    /// May a call be sent there? After a pause the answer is yes for one call, until its end is known.
    pub fn allows(&mut self, now: Instant) -> bool {
        match self.paused_until {
            None => true,
            Some(until) if now < until || self.trying => false,
            Some(_) => {
                self.trying = true;
                true
            }
        }
    }

    pub fn would_allow(&self, now: Instant) -> bool {
        self.paused_until
            .is_none_or(|until| now >= until && !self.trying)
    }

    /// The call that is allowed now is the one that tries.
    pub fn is_trial(&self) -> bool {
        self.trying
    }

    /// The one that tried is over. If nobody has said how, another one tries.
    pub fn trial_over(&mut self) {
        self.trying = false;
    }

    pub fn note(&mut self, evidence: Evidence<'_>, now: Instant) {
        match evidence {
            Evidence::Worked => *self = Self::new(self.settings),
            Evidence::Refused(number) => {
                let is_new = self.refused.insert(hash(number));
                let many = is_many(&self.refused, self.settings.refusals);
                // A number that is known to be refused says nothing new; another one tries.
                if (self.trying && is_new) || (many && self.paused_until.is_none()) {
                    self.paused_until = Some(now + AFTER_REFUSALS);
                }
                self.trying = false;
                if self.refused.len() > 2 * self.settings.refusals as usize {
                    self.refused.clear();
                    self.refused.insert(hash(number));
                }
            }
            Evidence::Silent(number) => {
                self.silent.insert(hash(number));
                if self.trying || is_many(&self.silent, self.settings.silences) {
                    self.pause(now);
                }
            }
            Evidence::Down => self.pause(now),
        }
    }

    fn pause(&mut self, now: Instant) {
        let pause = self.settings.first_pause * 2u32.saturating_pow(self.pauses.min(8));
        self.paused_until = Some(now + pause.min(self.settings.longest_pause));
        self.pauses += 1;
        self.trying = false;
    }
}

fn is_many(numbers: &HashSet<u64>, limit: u32) -> bool {
    numbers.len() >= limit as usize
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

    #[test]
    fn after_silence_in_a_row_one_call_tries_again() {
        let now = Instant::now();
        assert!(silent(4, now).allows(now));
        let mut breaker = silent(5, now);
        assert!(!breaker.allows(now + second(9)));
        let later = now + second(11);
        assert!(breaker.allows(later), "one tries");
        assert!(!breaker.allows(later), "and only one");
        breaker.note(Evidence::Silent("another"), later);
        assert!(!breaker.allows(later + second(19)), "twice as long");
        assert!(breaker.allows(later + second(21)));
        breaker.note(Evidence::Worked, later);
        assert!(breaker.allows(later) && breaker.allows(later));
    }

    #[test]
    fn a_trunk_that_says_that_it_is_down_is_believed_at_once() {
        let now = Instant::now();
        let mut breaker = Breaker::new(SETTINGS);
        breaker.note(Evidence::Down, now);
        assert!(!breaker.allows(now + second(9)) && breaker.allows(now + second(10)));
    }

    #[test]
    fn one_bad_number_never_stops_a_trunk() {
        let now = Instant::now();
        let mut breaker = Breaker::new(SETTINGS);
        for _ in 0..1000 {
            breaker.note(Evidence::Refused("bad"), now);
            breaker.note(Evidence::Silent("dead"), now);
        }
        assert!(breaker.allows(now) && !breaker.is_trial());
    }

    #[test]
    fn refused_numbers_cost_the_others_a_second_at_most() {
        let now = Instant::now();
        let mut breaker = Breaker::new(SETTINGS);
        let mut time = now;
        for number in 0..1000 {
            if breaker.allows(time) {
                breaker.note(Evidence::Refused(&number.to_string()), time);
            }
            time += Duration::from_millis(100);
            assert!(breaker.would_allow(time + second(1)), "{number}");
        }
        let next = time + second(1);
        assert!(breaker.allows(next));
        breaker.note(Evidence::Worked, next);
        assert!(breaker.allows(next) && !breaker.is_trial(), "cleared");
    }

    #[test]
    fn a_trial_does_not_wait_for_a_number_that_is_known_to_be_bad() {
        let now = Instant::now();
        let mut breaker = Breaker::new(SETTINGS);
        for number in 0..20 {
            breaker.note(Evidence::Refused(&number.to_string()), now);
        }
        let later = now + second(1);
        assert!(!breaker.allows(now) && breaker.allows(later));
        breaker.note(Evidence::Refused("7"), later);
        assert!(breaker.allows(later), "another one tries at once");
    }

    #[test]
    fn a_trial_whose_end_nobody_knows_is_followed_by_another() {
        let now = Instant::now();
        let mut breaker = silent(5, now);
        let later = now + second(11);
        assert!(breaker.allows(later) && breaker.is_trial());
        assert!(!breaker.allows(later));
        breaker.trial_over();
        assert!(breaker.would_allow(later) && breaker.allows(later));
        breaker.trial_over();
        breaker.note(Evidence::Silent("late"), later);
        assert!(!breaker.allows(later), "told late, but told");
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
        assert!(breaker.allows(now));
    }
}
