//! Lines of the log about something that may happen ten thousand times a second: one a second is written.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_secs(1);

/// When the last line was written, and how often there was none since then.
#[derive(Debug)]
pub struct Seldom(Mutex<(Option<Instant>, u64)>);

impl Seldom {
    pub const fn new() -> Self {
        Self(Mutex::new((None, 0)))
    }

    /// Whether a line is due: then how many were not written before it.
    pub fn say(&self) -> Option<u64> {
        self.say_at(Instant::now())
    }

    fn say_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, unsaid) = &mut *state;
        if last.is_some_and(|last| now.duration_since(last) < PAUSE) {
            *unsaid += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(unsaid))
    }
}

impl Default for Seldom {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_says_how_many_were_left_out() {
        let (seldom, now) = (Seldom::new(), Instant::now());
        assert_eq!(seldom.say_at(now), Some(0));
        for _ in 0..1000 {
            assert_eq!(seldom.say_at(now + PAUSE / 2), None);
        }
        assert_eq!(seldom.say_at(now + PAUSE), Some(1000));
    }
}
