//! A trunk that keeps failing is left alone for a while, then tried with one call.
//!
//! A number that is refused says little about the trunk, so only different numbers count, and one call that gets through clears the trunk, and its
//! account. Many refused numbers of one account say more about the account: its calls are sent one by one, a second apart (`refusal_pause_seconds`), and
//! nobody else's, until one of its own gets through. Only if several accounts fare like that, and nothing gets through, the trunk is tried call by
//! call for all. A trunk that says nothing, or that says that it is down, is left alone for longer each time.

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
    /// It has rung, or the callee's side has answered, in a call of this account.
    Worked(&'a AccountSid),
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
    /// Accounts of whom it refused numbers, until something of their own works, or for as long as they call.
    refused: HashMap<AccountSid, RefusedAccount>,
    silent: HashSet<u64>,
    pauses: u32,
    /// All calls.
    all: OneByOne,
    trials: u64,
}

#[derive(Debug)]
struct RefusedAccount {
    /// Since something of its own worked.
    numbers: HashSet<u64>,
    /// So many of them were new since anything worked, up to as many as are needed for a judgement.
    news: usize,
    refused_at: Instant,
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

    pub fn record(&mut self, evidence: Evidence<'_>, now: Instant) {
        match evidence {
            Evidence::Worked(account) => self.work(account, now),
            Evidence::Refused(account, number) => self.refuse(account, number, now),
            Evidence::Silent(number) => {
                let is_many = self.settings.timeouts as usize;
                self.silent.insert(hash(number));
                // One silence says nothing new about a trunk that refuses numbers: it is there.
                if self.pauses > 0 || self.silent.len() >= is_many {
                    self.pause(now);
                }
            }
            Evidence::Down => self.pause(now),
        }
    }

    /// The trunk is there. Of an account whose own numbers it refuses that says nothing.
    fn work(&mut self, account: &AccountSid, now: Instant) {
        self.silent.clear();
        self.pauses = 0;
        self.all = OneByOne::default();
        let is_recent = |at: Instant| now < at + self.settings.longest_pause;
        self.refused
            .retain(|of, own| of != account && is_recent(own.refused_at));
        for own in self.refused.values_mut() {
            own.news = 0;
        }
    }

    /// What an account adds to what is known of the trunk is bounded, and so is what is kept in mind.
    fn refuse(&mut self, account: &AccountSid, number: &str, now: Instant) {
        let (is_many, pause) = (self.settings.refusals as usize, self.settings.refusal_pause);
        if !self.refused.contains_key(account) && self.refused.len() >= MANY_ACCOUNTS * is_many {
            let without_news = self.refused.iter().filter(|(_, own)| own.news == 0);
            let oldest = without_news.min_by_key(|(_, own)| own.refused_at);
            let Some(of) = oldest.map(|(of, _)| of.clone()) else {
                return self.all.pause_for(pause, now);
            };
            self.refused.remove(&of);
        }
        let first = RefusedAccount {
            numbers: HashSet::new(),
            news: 0,
            refused_at: now,
            calls: OneByOne::default(),
        };
        let own = self.refused.entry(account.clone()).or_insert(first);
        own.refused_at = now;
        // A number that is known to be refused says nothing new: another one tries at once.
        if !own.numbers.insert(hash(number)) {
            return;
        }
        own.news = is_many.min(own.news + 1);
        if own.numbers.len() >= is_many {
            own.calls.pause_for(pause, now);
        }
        if own.numbers.len() > 2 * is_many {
            own.numbers = (own.numbers.iter().copied()).take(is_many).collect();
        }
        let news = self.refused.values().map(|own| own.news);
        if news.sum::<usize>() >= MANY_ACCOUNTS * is_many {
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
mod tests;
