//! Keys that the callee presses, however they are told: one press counts once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{CallEvent, Events};
use crate::leg_record::KeyPress;

/// Of a key that is told in two ways the second comes so much later at most.
const SAME_PRESS: Duration = Duration::from_secs(1);

/// So many keys of a leg are kept for its record; a peer may press more, but nobody wants to read them.
const MOST_KEPT: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeySource {
    /// Packets of RFC 4733.
    Packets,
    /// SIP INFO.
    Info,
}

/// A press that counted.
#[derive(Debug, Clone, Copy)]
struct Press {
    told: KeyPress,
    source: KeySource,
}

#[derive(Debug, Default)]
struct Presses {
    last: Option<Press>,
    kept: Vec<KeyPress>,
}

/// Tells of every press once.
#[derive(Debug, Clone)]
pub(super) struct PressedKeys {
    events: Events,
    presses: Arc<Mutex<Presses>>,
}

impl PressedKeys {
    pub fn new(events: &Events) -> Self {
        Self {
            events: events.clone(),
            presses: Arc::default(),
        }
    }

    pub fn heard(&self, key: char, source: KeySource, at: Instant) {
        let told = KeyPress { key, at };
        let press = Press { told, source };
        let mut presses = self.lock();
        if presses.last.is_none_or(|last| !last.is_the_same(press)) {
            presses.last = Some(press);
            if presses.kept.len() < MOST_KEPT {
                presses.kept.push(told);
            }
            let _ = self.events.send(CallEvent::Key(key));
        }
    }

    /// Everything that was pressed so far, for the record of the leg.
    pub fn kept(&self) -> Vec<KeyPress> {
        self.lock().kept.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Presses> {
        self.presses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Press {
    fn is_the_same(self, next: Press) -> bool {
        let between = next.told.at.saturating_duration_since(self.told.at);
        self.told.key == next.told.key && self.source != next.source && between < SAME_PRESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_told_in_two_ways_counts_once() {
        let (events, mut told) = tokio::sync::mpsc::unbounded_channel();
        let keys = PressedKeys::new(&events);
        let now = Instant::now();
        let ms = Duration::from_millis;
        for (key, source, at) in [
            ('1', KeySource::Packets, 0),
            ('1', KeySource::Info, 150),
            ('1', KeySource::Packets, 400),
            ('1', KeySource::Info, 500),
            ('2', KeySource::Info, 600),
            ('2', KeySource::Packets, 700),
            ('2', KeySource::Packets, 3000),
        ] {
            keys.heard(key, source, now + ms(at));
        }
        let kept = keys.kept().into_iter().map(|press| press.key);
        assert_eq!(kept.collect::<String>(), "1122");
        drop((keys, events));
        let mut heard = String::new();
        while let Ok(CallEvent::Key(key)) = told.try_recv() {
            heard.push(key);
        }
        // Of the second 2 nobody can know whether it is the packets of the first or a new press; a second later it is a new one.
        assert_eq!(heard, "1122");
    }

    #[test]
    fn a_flood_of_keys_is_told_and_not_kept() {
        let (events, mut told) = tokio::sync::mpsc::unbounded_channel();
        let keys = PressedKeys::new(&events);
        for _ in 0..1000 {
            keys.heard('1', KeySource::Packets, Instant::now());
        }
        assert_eq!(keys.kept().len(), MOST_KEPT);
        let mut count = 0;
        while told.try_recv().is_ok() {
            count += 1;
        }
        assert_eq!(count, 1000);
    }
}
