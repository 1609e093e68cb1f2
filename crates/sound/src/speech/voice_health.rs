//! When a voice is asked: not while it rests after failures, and not beyond what it may speak in a day.

use std::time::{Duration, Instant};

/// Texts in a row that a voice failed to speak before it rests.
const PATIENCE: u32 = 3;
const FIRST_REST: Duration = Duration::from_secs(2);
const LONGEST_REST: Duration = Duration::from_secs(120);
const HOUR: Duration = Duration::from_secs(3600);
/// Hours of a day.
const HOURS: usize = 24;

/// What a voice may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoiceLimits {
    /// How often it is asked for one text.
    pub tries: u32,
    /// Characters that it may be given in 24 hours. `None`: any number.
    pub characters_per_day: Option<u64>,
}

impl Default for VoiceLimits {
    fn default() -> Self {
        Self {
            tries: 1,
            characters_per_day: None,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct VoiceHealth {
    failures: u32,
    rests: u32,
    resting_until: Option<Instant>,
    day: CharacterDay,
}

impl VoiceHealth {
    /// Whether it may be asked for a text now. After a rest one text finds out whether it works again.
    pub fn may_try(&mut self, now: Instant) -> bool {
        match self.resting_until {
            Some(until) if now < until => false,
            Some(_) => {
                self.resting_until = Some(now + self.rest());
                true
            }
            None => true,
        }
    }

    /// Whether it may be given so many characters more; they are counted then.
    pub fn spend(&mut self, characters: u64, limits: &VoiceLimits, now: Instant) -> bool {
        let limit = limits.characters_per_day.unwrap_or(u64::MAX);
        self.day.spend(characters, limit, now)
    }

    pub fn worked(&mut self) {
        self.failures = 0;
        self.rests = 0;
        self.resting_until = None;
    }

    pub fn failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= PATIENCE {
            self.resting_until = Some(now + self.rest());
            self.rests = self.rests.saturating_add(1);
        }
    }

    fn rest(&self) -> Duration {
        let rest = FIRST_REST * 2_u32.saturating_pow(self.rests.min(8));
        rest.min(LONGEST_REST)
    }
}

/// Characters of the last 24 hours, hour by hour.
#[derive(Debug, Default)]
struct CharacterDay {
    hours: [u64; HOURS],
    /// When the hour began that is counted now.
    hour: Option<Instant>,
    place: usize,
}

impl CharacterDay {
    fn spend(&mut self, characters: u64, limit: u64, now: Instant) -> bool {
        let mut hour = *self.hour.get_or_insert(now);
        let mut passed = 0;
        while now.saturating_duration_since(hour) >= HOUR && passed < HOURS {
            hour += HOUR;
            passed += 1;
            self.place = (self.place + 1) % HOURS;
            self.hours[self.place] = 0;
        }
        if passed == HOURS {
            hour = now;
        }
        self.hour = Some(hour);
        let spent = self
            .hours
            .iter()
            .fold(0, |sum: u64, hour| sum.saturating_add(*hour));
        if spent.saturating_add(characters) > limit {
            return false;
        }
        self.hours[self.place] = self.hours[self.place].saturating_add(characters);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voice_that_keeps_failing_rests_and_is_tried_by_one_text() {
        let mut health = VoiceHealth::default();
        let now = Instant::now();
        for _ in 0..PATIENCE {
            assert!(health.may_try(now));
            health.failed(now);
        }
        assert!(!health.may_try(now));
        let later = now + FIRST_REST;
        assert!(health.may_try(later), "one tries");
        assert!(!health.may_try(later), "and no other");
        health.failed(later);
        assert!(!health.may_try(later + FIRST_REST), "longer");
        assert!(health.may_try(later + 2 * FIRST_REST));
        health.worked();
        assert!(health.may_try(later) && health.may_try(later));
    }

    #[test]
    fn rests_grow_to_a_limit() {
        let mut health = VoiceHealth::default();
        let mut now = Instant::now();
        for _ in 0..40 {
            health.failed(now);
            now += LONGEST_REST;
            assert!(health.may_try(now));
        }
    }

    #[test]
    fn characters_of_the_last_day_count_and_older_ones_do_not() {
        let limits = VoiceLimits {
            characters_per_day: Some(100),
            ..VoiceLimits::default()
        };
        let mut health = VoiceHealth::default();
        let begin = Instant::now();
        let hours = |count: u32| begin + count * HOUR;
        assert!(health.spend(60, &limits, hours(0)));
        assert!(health.spend(40, &limits, hours(5)));
        assert!(!health.spend(1, &limits, hours(23)));
        assert!(health.spend(60, &limits, hours(24)), "the first have gone");
        assert!(!health.spend(1, &limits, hours(24)));
        assert!(health.spend(40, &limits, hours(30)));
        assert!(health.spend(100, &limits, hours(1000)), "all have gone");
        assert!(!health.spend(101, &limits, hours(3000)));
        assert!(health.spend(u64::MAX, &VoiceLimits::default(), hours(9000)));
    }
}
