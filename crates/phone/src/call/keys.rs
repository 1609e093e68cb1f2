//! Keys that the callee presses, however they are told: one press counts once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::key_menu::{ChoiceRecorded, KeyChoice};
use super::{CallEvent, Events};
use crate::leg_record::KeyPress;

/// Of a key that is told in two ways the second comes so much later at most.
const SAME_PRESS: Duration = Duration::from_secs(1);
/// More presses are not made in that time.
const REMEMBERED: usize = 16;

/// So many keys of a leg are kept for its record; a peer may press more, but nobody wants to read them.
const MAX_KEPT: usize = 100;

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
    told: KeyPress,
    /// Who has told of it.
    told_by: [bool; 3],
}

#[derive(Debug, Default)]
struct Presses {
    recent: VecDeque<Press>,
    kept: Vec<KeyPress>,
    /// Not looked at yet, the latest ones.
    unread: VecDeque<char>,
}

/// Tells of every press once.
#[derive(Debug, Clone)]
pub(super) struct PressedKeys {
    events: Events,
    presses: Arc<Mutex<Presses>>,
    pressed: Arc<Notify>,
}

impl PressedKeys {
    pub fn new(events: &Events) -> Self {
        Self {
            events: events.clone(),
            presses: Arc::default(),
            pressed: Arc::default(),
        }
    }

    /// A source tells of each press once: what it tells is the first recent press of the key that it has not told of, or else a new one.
    pub fn heard(&self, key: char, source: KeySource, at: Instant) {
        let mut presses = self.lock();
        let recent = &mut presses.recent;
        recent.retain(|press| at.saturating_duration_since(press.told.at) < SAME_PRESS);
        let told_before = (recent.iter_mut())
            .find(|press| press.told.key == key && !press.told_by[source as usize]);
        if let Some(press) = told_before {
            press.told_by[source as usize] = true;
            return;
        }
        let mut told_by = [false; 3];
        told_by[source as usize] = true;
        if recent.len() == REMEMBERED {
            recent.pop_front();
        }
        let told = KeyPress { key, at };
        recent.push_back(Press { told, told_by });
        if presses.kept.len() < MAX_KEPT {
            presses.kept.push(told);
        }
        if presses.unread.len() == MAX_KEPT {
            presses.unread.pop_front();
        }
        presses.unread.push_back(key);
        let _ = self.events.send(CallEvent::Key(key));
        self.pressed.notify_one();
    }

    /// What the keys came to.
    pub fn chosen(&self, choice: KeyChoice, recorded: ChoiceRecorded) {
        let _ = self.events.send(CallEvent::Chosen(choice, recorded));
    }

    /// The next key that nobody has looked at, when it is pressed.
    pub async fn next(&self) -> char {
        loop {
            let unread = self.lock().unread.pop_front();
            match unread {
                Some(key) => return key,
                None => self.pressed.notified().await,
            }
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
        let kept = keys.kept().into_iter().map(|press| press.key);
        let kept: String = kept.collect();
        drop((keys, events));
        let mut heard = String::new();
        while let Ok(CallEvent::Key(key)) = counted.try_recv() {
            heard.push(key);
        }
        assert!(heard.starts_with(&kept));
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

    #[test]
    fn a_flood_of_keys_is_told_and_not_kept() {
        let (events, mut told) = tokio::sync::mpsc::unbounded_channel();
        let keys = PressedKeys::new(&events);
        for _ in 0..1000 {
            keys.heard('1', KeySource::Packets, Instant::now());
        }
        assert_eq!(keys.kept().len(), MAX_KEPT);
        assert_eq!(keys.lock().unread.len(), MAX_KEPT);
        let mut count = 0;
        while told.try_recv().is_ok() {
            count += 1;
        }
        assert_eq!(count, 1000);
    }
}
