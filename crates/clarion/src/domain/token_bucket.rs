//! The one token bucket: it gains a number of tokens per second, and saves at most one second's worth. The time is an argument.

use std::time::Instant;

#[derive(Debug, Clone, Copy)]
pub struct TokenBucket {
    tokens: f64,
    refilled: Instant,
}

impl TokenBucket {
    /// Returns a full bucket.
    pub fn new(per_second: u32, now: Instant) -> Self {
        Self {
            tokens: f64::from(per_second),
            refilled: now,
        }
    }

    /// Returns how many tokens may be taken now. The rate is an argument, because it may change at any time.
    pub fn available(&mut self, per_second: u32, now: Instant) -> u32 {
        let passed = now.saturating_duration_since(self.refilled).as_secs_f64();
        let rate = f64::from(per_second);
        self.tokens = (self.tokens + passed * rate).min(rate);
        self.refilled = now;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "never negative, and never more than a second's worth"
        )]
        let whole = self.tokens as u32;
        whole
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, per_second: u32, now: Instant) -> bool {
        let is_there = self.available(per_second, now) > 0;
        if is_there {
            self.tokens -= 1.0;
        }
        is_there
    }

    /// Takes a token although there may be none, for something that was let through a moment ago.
    pub fn take_anyway(&mut self, per_second: u32, now: Instant) {
        self.available(per_second, now);
        self.tokens = (self.tokens - 1.0).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_second_brings_as_many_as_the_rate_says_and_no_more_are_saved_up() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut bucket = TokenBucket::new(2, start);
        assert!(bucket.take(2, start) && bucket.take(2, start));
        assert!(!bucket.take(2, at(499)));
        assert!(bucket.take(2, at(500)));
        assert_eq!(bucket.available(2, at(60_000)), 2);
        assert_eq!(
            bucket.available(1, at(60_000)),
            1,
            "a lower rate holds at once"
        );
        bucket.take_anyway(1, at(60_000));
        bucket.take_anyway(1, at(60_000));
        assert_eq!(bucket.available(1, at(60_999)), 0);
        assert_eq!(bucket.available(0, at(90_000)), 0, "none at all");
    }
}
