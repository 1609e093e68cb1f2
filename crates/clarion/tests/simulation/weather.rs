//! How the store answers: at once, slowly, not at all, or so that nobody knows whether it has done what was asked.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::chance::Chance;

#[derive(Debug, Default)]
pub struct Weather {
    down_until: Option<Instant>,
    shaky_until: Option<Instant>,
    slow_until: Option<Instant>,
    trunks_down: BTreeMap<String, Instant>,
}

/// What becomes of one request.
#[derive(Debug, Clone, Copy)]
pub enum Fate {
    /// It is done after the first time and answered after the second.
    Done(Duration, Duration),
    /// It is not done, which is said after a time.
    Failed(Duration),
    /// Nobody knows, which is said after the first time. It is done after the second, or never.
    Unknown(Duration, Option<Duration>),
}

impl Weather {
    pub fn down_for(&mut self, time: Duration) {
        self.down_until = Some(Instant::now() + time);
    }

    pub fn shaky_for(&mut self, time: Duration) {
        self.shaky_until = Some(Instant::now() + time);
    }

    pub fn slow_for(&mut self, time: Duration) {
        self.slow_until = Some(Instant::now() + time);
    }

    pub fn trunk_down_for(&mut self, trunk: &str, time: Duration) {
        let until = Instant::now() + time;
        self.trunks_down.insert(trunk.to_owned(), until);
    }

    pub fn is_trunk_down(&self, trunk: &str) -> bool {
        let until = self.trunks_down.get(trunk);
        until.is_some_and(|until| Instant::now() < *until)
    }

    pub fn fate(&self, chance: &mut Chance, only_reads: bool, is_of_call: bool) -> Fate {
        let now = Instant::now();
        let is_now = |until: Option<Instant>| until.is_some_and(|until| now < until);
        let (there, back) = if is_now(self.slow_until) {
            (chance.millis(20..1500), chance.millis(0..500))
        } else {
            usual(chance, is_of_call)
        };
        let unanswered = is_now(self.down_until) && chance.one_in(4);
        if unanswered || is_now(self.shaky_until) && chance.one_in(3) {
            if only_reads || chance.one_in(3) {
                return Fate::Failed(there);
            }
            let done = chance.one_in(2).then(|| chance.millis(0..3000));
            return Fate::Unknown(chance.millis(1..2000), done);
        }
        if is_now(self.down_until) {
            return Fate::Failed(there);
        }
        Fate::Done(there, back)
    }
}

/// Of the requests that are not about one call, most take no time: a history has thousands of them.
fn usual(chance: &mut Chance, is_of_call: bool) -> (Duration, Duration) {
    match chance.below(8) {
        _ if is_of_call => (chance.millis(0..8), chance.millis(0..4)),
        0 => (chance.millis(1..8), chance.millis(1..4)),
        1 => (Duration::ZERO, chance.millis(1..8)),
        _ => (Duration::ZERO, Duration::ZERO),
    }
}
