//! Keys that the callee presses, however they are told: one press counts once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{CallEvent, Events};

/// Of a key that is told in two ways the second comes so much later at most.
const SAME_PRESS: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeySource {
    /// Packets of RFC 4733.
    Packets,
    /// SIP INFO.
    Info,
}

/// The last press that counted.
#[derive(Debug, Clone, Copy)]
struct Press {
    key: char,
    source: KeySource,
    at: Instant,
}

/// Tells of every press once.
#[derive(Debug, Clone)]
pub(super) struct PressedKeys {
    events: Events,
    last: Arc<Mutex<Option<Press>>>,
}

impl PressedKeys {
    pub fn new(events: &Events) -> Self {
        Self {
            events: events.clone(),
            last: Arc::default(),
        }
    }

    pub fn heard(&self, key: char, source: KeySource, at: Instant) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let press = Press { key, source, at };
        if last.is_none_or(|last| !last.is_the_same(press)) {
            *last = Some(press);
            let _ = self.events.send(CallEvent::Key(key));
        }
    }
}

impl Press {
    fn is_the_same(self, next: Press) -> bool {
        self.key == next.key
            && self.source != next.source
            && next.at.saturating_duration_since(self.at) < SAME_PRESS
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
        drop((keys, events));
        let mut heard = String::new();
        while let Ok(CallEvent::Key(key)) = told.try_recv() {
            heard.push(key);
        }
        // Of the second 2 nobody can know whether it is the packets of the first or a new press; a second later it is a new one.
        assert_eq!(heard, "1122");
    }
}
