//! Lines of the log about something that may happen ten thousand times a second, and for hours: the first ones are written a second apart, then fewer and fewer, at last two a minute.
//! What was quiet for a minute begins anew.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After so long without any, it is something new.
const QUIET: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Seldom(Mutex<Option<Trouble>>);

/// What happens again and again.
#[derive(Debug)]
struct Trouble {
    /// When it happened last.
    last: Instant,
    /// When the last line was written, and how long there is none after it.
    said: Instant,
    pause: Duration,
    /// How often there was none since then.
    unsaid: u64,
}

impl Seldom {
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Whether a line is due: then how many were not written before it.
    pub fn say(&self) -> Option<u64> {
        self.say_at(Instant::now())
    }

    fn say_at(&self, now: Instant) -> Option<u64> {
        let mut trouble = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = trouble.as_mut();
        let Some(known) = known.filter(|known| now.duration_since(known.last) < QUIET) else {
            let unsaid = trouble.as_ref().map_or(0, |known| known.unsaid);
            *trouble = Some(Trouble::new(now));
            return Some(unsaid);
        };
        known.last = now;
        if now.duration_since(known.said) < known.pause {
            known.unsaid += 1;
            return None;
        }
        known.said = now;
        known.pause = (known.pause * 2).min(LONGEST_PAUSE);
        Some(std::mem::take(&mut known.unsaid))
    }
}

impl Trouble {
    fn new(now: Instant) -> Self {
        Self {
            last: now,
            said: now,
            pause: FIRST_PAUSE,
            unsaid: 0,
        }
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
    fn what_goes_on_for_an_hour_is_said_ever_more_seldom_and_counted() {
        let (seldom, began) = (Seldom::new(), Instant::now());
        assert_eq!(seldom.say_at(began), Some(0));
        let times = 100 * 3600;
        let said: Vec<_> = (1..=times)
            .filter_map(|count| seldom.say_at(began + FIRST_PAUSE / 100 * count))
            .collect();
        assert_eq!(said[..3], [99, 199, 399]);
        assert!(said.len() <= 2 * 60 + 6, "{} lines", said.len());
        let counted = said.iter().map(|unsaid| unsaid + 1).sum::<u64>();
        let unsaid = u64::from(times) - counted;
        assert!(
            unsaid < 100 * LONGEST_PAUSE.as_secs(),
            "{unsaid} are not counted yet"
        );
        // It is over, and something else happens.
        let later = began + Duration::from_secs(3600) + QUIET;
        assert_eq!(seldom.say_at(later), Some(unsaid));
        assert_eq!(seldom.say_at(later + FIRST_PAUSE), Some(0));
    }
}
