//! A trunk that keeps failing is left alone for a while, then tried with one call.
//!
//! A number that is refused says little about the trunk, so only different numbers count, and one call that gets through clears the trunk.
//! Many refused numbers of one account say more about the account: its calls are sent one by one, a second apart (`refusal_pause_seconds`), and nobody else's. Only if
//! several accounts fare like that, the trunk is tried call by call for all. A trunk that says nothing, or that says that it is down, is left
//! alone for longer each time.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::TrunkHealthSettings;
use crate::domain::account::AccountSid;

/// As many accounts whose numbers are all refused say that it is the trunk.
const MANY_ACCOUNTS: usize = 3;

/// What a call has shown about its trunk.
#[derive(Debug, Clone, Copy)]
pub enum Evidence<'a> {
    /// The callee's side has answered, whatever it said.
    Worked,
    /// The trunk is there, and does not get a call of this account through to this number.
    Refused(&'a AccountSid, &'a str),
    /// Nothing came back, and nothing else says that the trunk is there.
    Silent(&'a str),
    /// By what it said, it carries no calls at all now.
    Down,
}

#[derive(Debug)]
pub struct Breaker {
    settings: TrunkHealthSettings,
    /// Numbers that it refused, of whom, since something worked.
    refused: HashMap<AccountSid, RefusedAccount>,
    silent: HashSet<u64>,
    pauses: u32,
    /// All calls.
    all: OneByOne,
    trials: u64,
}

#[derive(Debug, Default)]
struct RefusedAccount {
    numbers: HashSet<u64>,
    calls: OneByOne,
}

/// Calls that are sent one by one, since there was reason to.
#[derive(Debug, Default)]
struct OneByOne {
    paused_until: Option<Instant>,
    /// The last call that was sent to see whether it works again, while that is not known.
    trial: Option<Trial>,
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

impl OneByOne {
    /// A trial that takes longer than this does not keep another from trying.
    fn would_allow(&self, now: Instant, long: Duration) -> bool {
        let is_long = |trial: Trial| now >= trial.began + long;
        let Some(until) = self.paused_until else {
            return true;
        };
        now >= until && self.trial.is_none_or(is_long)
    }

    fn is_on(&self) -> bool {
        self.paused_until.is_some()
    }

    fn pause_for(&mut self, time: Duration, now: Instant) {
        let until = now + time;
        self.paused_until = Some(self.paused_until.map_or(until, |known| known.max(until)));
    }
}

impl Breaker {
    pub fn new(settings: TrunkHealthSettings) -> Self {
        Self {
            settings,
            refused: HashMap::new(),
            silent: HashSet::new(),
            pauses: 0,
            all: OneByOne::default(),
            trials: 0,
        }
    }

    /// May a call of this account be sent there? After a pause the answer is yes for one call, until its end is known or a further pause is
    /// over: a number that says nothing for long, or is refused late, does not keep others from trying.
    pub fn ask(&mut self, account: &AccountSid, now: Instant) -> SendLeave {
        if !self.would_allow(account, now) {
            return SendLeave::Denied;
        }
        let own = self.refused.get_mut(account).map(|own| &mut own.calls);
        let (number, mut is_trial) = (self.trials + 1, false);
        for calls in [Some(&mut self.all), own].into_iter().flatten() {
            if calls.is_on() {
                calls.trial = Some(Trial { number, began: now });
                is_trial = true;
            }
        }
        if !is_trial {
            return SendLeave::Free;
        }
        self.trials = number;
        SendLeave::Trial(number)
    }

    pub fn would_allow(&self, account: &AccountSid, now: Instant) -> bool {
        let own = self.refused.get(account);
        self.would_allow_some(now)
            && own.is_none_or(|own| own.calls.would_allow(now, self.settings.refusal_pause))
    }

    /// Whether it would allow a call of an account that has shown nothing.
    pub fn would_allow_some(&self, now: Instant) -> bool {
        let long = match self.pauses {
            0 => self.settings.refusal_pause,
            _ => self.settings.first_pause,
        };
        self.all.would_allow(now, long)
    }

    /// Calls are sent one by one, whosever they are.
    pub fn is_tripped(&self) -> bool {
        self.all.is_on()
    }

    /// Accounts whose calls are sent one by one, and whether one may be sent now.
    pub fn slowed(&self, now: Instant) -> impl Iterator<Item = (&AccountSid, bool)> {
        let slowed = self.refused.iter().filter(|(_, own)| own.calls.is_on());
        slowed.map(move |(account, own)| {
            (
                account,
                own.calls.would_allow(now, self.settings.refusal_pause),
            )
        })
    }

    /// The one that tried is over. If nobody has said how, another one tries.
    pub fn trial_over(&mut self, number: u64) {
        let own = self.refused.values_mut().map(|own| &mut own.calls);
        for calls in own.chain([&mut self.all]) {
            calls.trial.take_if(|trial| trial.number == number);
        }
    }

    pub fn note(&mut self, evidence: Evidence<'_>, now: Instant) {
        match evidence {
            Evidence::Worked => {
                let trials = self.trials;
                *self = Self::new(self.settings);
                self.trials = trials;
            }
            Evidence::Refused(account, number) => self.refuse(account, number, now),
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

    /// What an account adds to what is known of the trunk is bounded, and so is what is kept in mind.
    fn refuse(&mut self, account: &AccountSid, number: &str, now: Instant) {
        let (is_many, pause) = (self.settings.refusals as usize, self.settings.refusal_pause);
        if !self.refused.contains_key(account) && self.refused.len() >= MANY_ACCOUNTS * is_many {
            return self.all.pause_for(pause, now);
        }
        let own = self.refused.entry(account.clone()).or_default();
        // A number that is known to be refused says nothing new: another one tries at once.
        if !own.numbers.insert(hash(number)) {
            return;
        }
        if own.numbers.len() >= is_many {
            own.calls.pause_for(pause, now);
        }
        if own.numbers.len() > 2 * is_many {
            own.numbers = (own.numbers.iter().copied()).take(is_many).collect();
        }
        let counted = self
            .refused
            .values()
            .map(|own| own.numbers.len().min(is_many));
        if counted.sum::<usize>() >= MANY_ACCOUNTS * is_many {
            self.all.pause_for(pause, now);
        }
    }

    /// Calls that were under way together fail together: that is one failure.
    fn pause(&mut self, now: Instant) {
        let is_paused = self.all.paused_until.is_some_and(|until| now < until);
        if self.pauses > 0 && is_paused {
            return;
        }
        let pause = self.settings.first_pause * 2u32.saturating_pow(self.pauses.min(8));
        self.all.paused_until = Some(now + pause.min(self.settings.longest_pause));
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
        refusal_pause: Duration::from_secs(1),
        silences: 5,
        first_pause: Duration::from_secs(10),
        longest_pause: Duration::from_secs(300),
    };

    fn account(number: u32) -> AccountSid {
        format!("{number:032}").parse().unwrap()
    }

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
            breaker.note(Evidence::Refused(&account(0), &number.to_string()), now);
        }
        breaker
    }

    /// The number of the call that may try.
    fn trial(breaker: &mut Breaker, now: Instant) -> Option<u64> {
        match breaker.ask(&account(0), now) {
            SendLeave::Trial(number) => Some(number),
            SendLeave::Denied => None,
            SendLeave::Free => panic!("it is not tripped"),
        }
    }

    #[test]
    fn after_silence_in_a_row_one_call_tries_again() {
        let now = Instant::now();
        assert_eq!(silent(4, now).ask(&account(0), now), SendLeave::Free);
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
        assert_eq!(breaker.ask(&account(0), later), SendLeave::Free);
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
            breaker.note(Evidence::Refused(&account(0), "bad"), now);
            breaker.note(Evidence::Silent("dead"), now);
        }
        assert_eq!(breaker.ask(&account(0), now), SendLeave::Free);
    }

    #[test]
    fn refused_numbers_cost_the_others_a_second_at_most() {
        let now = Instant::now();
        let mut breaker = Breaker::new(SETTINGS);
        let (mut time, mut dialled) = (now, 0);
        for number in 0..1000 {
            let leave = breaker.ask(&account(0), time);
            if leave != SendLeave::Denied {
                dialled += 1;
                breaker.note(Evidence::Refused(&account(0), &number.to_string()), time);
            }
            if let SendLeave::Trial(number) = leave {
                breaker.trial_over(number);
            }
            time += Duration::from_millis(100);
            assert!(
                breaker.would_allow(&account(0), time + second(1)),
                "{number}"
            );
        }
        assert!((100..130).contains(&dialled), "one a second: {dialled}");
        let next = time + second(1);
        assert!(trial(&mut breaker, next).is_some());
        breaker.note(Evidence::Worked, next);
        assert_eq!(breaker.ask(&account(0), next), SendLeave::Free, "cleared");
    }

    #[test]
    fn a_trial_does_not_wait_for_a_number_that_is_known_to_be_bad() {
        let now = Instant::now();
        let mut breaker = refused(20, now);
        let later = now + second(1);
        assert_eq!(trial(&mut breaker, now), None);
        let known = trial(&mut breaker, later).unwrap();
        breaker.note(Evidence::Refused(&account(0), "7"), later);
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
            breaker.note(Evidence::Refused(&account(0), &number.to_string()), now);
            breaker.note(Evidence::Worked, now);
        }
        assert_eq!(breaker.ask(&account(0), now), SendLeave::Free);
    }

    #[test]
    fn numbers_of_one_account_that_are_refused_hold_no_other_account_back() {
        let now = Instant::now();
        let mut breaker = refused(1000, now);
        assert_eq!(breaker.ask(&account(0), now), SendLeave::Denied);
        assert!(breaker.would_allow_some(now));
        for number in 0..30 {
            assert_eq!(breaker.ask(&account(1), now), SendLeave::Free, "{number}");
        }
        let slowed: Vec<_> = breaker.slowed(now).collect();
        assert_eq!(slowed, [(&account(0), false)]);
        assert!(!breaker.is_tripped());
        // A trial of the one changes nothing for the other.
        let later = now + second(1);
        assert!(trial(&mut breaker, later).is_some());
        assert_eq!(breaker.ask(&account(1), later), SendLeave::Free);
    }

    #[test]
    fn a_trunk_that_refuses_the_numbers_of_several_accounts_is_tried_call_by_call() {
        let now = Instant::now();
        for accounts in [3, 60, 1000] {
            let mut breaker = Breaker::new(SETTINGS);
            for number in 0..60 {
                let from = account(number % accounts);
                assert_eq!(breaker.ask(&from, now), SendLeave::Free, "{number}");
                breaker.note(Evidence::Refused(&from, &number.to_string()), now);
            }
            assert_eq!(breaker.ask(&account(5000), now), SendLeave::Denied);
            let later = now + second(1);
            let SendLeave::Trial(first) = breaker.ask(&account(5000), later) else {
                panic!("one tries");
            };
            let next = breaker.ask(&account(5001), later);
            assert_eq!(next, SendLeave::Denied, "and only one");
            breaker.trial_over(first);
            for number in 60..2000 {
                let number = account(number);
                breaker.note(Evidence::Refused(&number, number.as_str()), later);
            }
            assert!(breaker.refused.len() <= 60, "{}", breaker.refused.len());
            breaker.note(Evidence::Worked, later);
            assert_eq!(breaker.ask(&account(5001), later), SendLeave::Free);
        }
    }
}
