//! A trunk that keeps failing is left alone for a while, then tried with one call.

use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row before a trunk is left alone.
const PATIENCE: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

#[derive(Debug, Default)]
pub struct Breaker {
    failures: u32,
    pauses: u32,
    paused_until: Option<Instant>,
    /// One call is under way to see whether it works again.
    trying: bool,
}

impl Breaker {
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

    pub fn worked(&mut self) {
        *self = Self::default();
    }

    pub fn failed(&mut self, now: Instant) {
        self.failures += 1;
        if self.trying || self.failures >= PATIENCE {
            let pause = FIRST_PAUSE * 2u32.saturating_pow(self.pauses.min(8));
            self.paused_until = Some(now + pause.min(LONGEST_PAUSE));
            self.pauses += 1;
            self.trying = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_failures_in_a_row_one_call_tries_again() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 0..PATIENCE {
            assert!(breaker.allows(now));
            breaker.failed(now);
        }
        assert!(!breaker.allows(now + Duration::from_secs(9)));
        let later = now + Duration::from_secs(11);
        assert!(breaker.allows(later), "one tries");
        assert!(!breaker.allows(later), "and only one");
        breaker.failed(later);
        assert!(
            !breaker.allows(later + Duration::from_secs(19)),
            "twice as long"
        );
        assert!(breaker.allows(later + Duration::from_secs(21)));
        breaker.worked();
        assert!(breaker.allows(later) && breaker.allows(later));
    }

    #[test]
    fn a_trial_whose_end_nobody_knows_is_followed_by_another() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        (0..PATIENCE).for_each(|_| breaker.failed(now));
        let later = now + Duration::from_secs(11);
        assert!(breaker.allows(later) && breaker.is_trial());
        assert!(!breaker.allows(later));
        breaker.trial_over();
        assert!(breaker.would_allow(later) && breaker.allows(later));
        breaker.trial_over();
        breaker.failed(later);
        assert!(!breaker.allows(later), "told late, but told");
    }

    #[test]
    fn a_success_in_between_starts_the_count_anew() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 0..20 {
            breaker.failed(now);
            breaker.worked();
        }
        assert!(breaker.allows(now));
    }
}
