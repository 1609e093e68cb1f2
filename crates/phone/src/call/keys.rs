//! Keys that the callee presses, however they are told: one press counts once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{CallEvent, Events};

/// Of a key that is told in two ways the second comes so much later at most.
const SAME_PRESS: Duration = Duration::from_secs(1);
/// More presses are not made in that time.
const REMEMBERED: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeySource {
    /// Packets of RFC 4733.
    Packets,
    /// SIP INFO.
    Info,
    /// Tones in the sound.
    Tones,
}

/// A press that counted.
#[derive(Debug)]
struct Press {
    key: char,
    at: Instant,
    /// Who has told of it.
    told_by: [bool; 3],
}

/// Tells of every press once.
#[derive(Debug, Clone)]
pub(super) struct PressedKeys {
    events: Events,
    recent: Arc<Mutex<VecDeque<Press>>>,
}

impl PressedKeys {
    pub fn new(events: &Events) -> Self {
        Self {
            events: events.clone(),
            recent: Arc::default(),
        }
    }

    /// A source tells of each press once: what it tells is the first recent press of the key that it has not told of, or else a new one.
    pub fn heard(&self, key: char, source: KeySource, at: Instant) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|press| at.saturating_duration_since(press.at) < SAME_PRESS);
        let told_before =
            (recent.iter_mut()).find(|press| press.key == key && !press.told_by[source as usize]);
        if let Some(press) = told_before {
            press.told_by[source as usize] = true;
            return;
        }
        let mut told_by = [false; 3];
        told_by[source as usize] = true;
        if recent.len() == REMEMBERED {
            recent.pop_front();
        }
        recent.push_back(Press { key, at, told_by });
        let _ = self.events.send(CallEvent::Key(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that count of those that are told: key, source and millisecond.
    fn counted(told: &[(char, KeySource, u64)]) -> String {
        let (events, mut counted) = tokio::sync::mpsc::unbounded_channel();
        let keys = PressedKeys::new(&events);
        let now = Instant::now();
        for (key, source, at) in told {
            keys.heard(*key, *source, now + Duration::from_millis(*at));
        }
        drop((keys, events));
        let mut heard = String::new();
        while let Ok(CallEvent::Key(key)) = counted.try_recv() {
            heard.push(key);
        }
        heard
    }

    #[test]
    fn a_key_that_is_told_in_several_ways_counts_once() {
        use KeySource::{Info, Packets, Tones};
        for (told, expected) in [
            (
                &[
                    ('1', Packets, 0),
                    ('1', Info, 150),
                    ('1', Packets, 400),
                    ('1', Info, 500),
                    ('2', Info, 600),
                    ('2', Packets, 700),
                    ('2', Packets, 3000),
                ][..],
                "1122",
            ),
            // The second way may lag by more than one press.
            (
                &[
                    ('1', Tones, 0),
                    ('2', Tones, 150),
                    ('1', Info, 200),
                    ('1', Tones, 300),
                    ('2', Info, 350),
                    ('1', Info, 500),
                ],
                "121",
            ),
            (&[('5', Tones, 0), ('5', Info, 10), ('5', Packets, 20)], "5"),
            (
                &[('5', Tones, 0), ('5', Tones, 100), ('5', Tones, 200)],
                "555",
            ),
            (&[('5', Tones, 0), ('5', Info, 1500)], "55"),
        ] {
            assert_eq!(counted(told), expected, "{told:?}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let flood: Vec<_> = (0..500).map(|at| ('7', KeySource::Info, at)).collect();
        assert_eq!(counted(&flood).len(), 500);
    }
}
