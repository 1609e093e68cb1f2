//! What the keys of a callee do, from the first sample of the message on: confirm it, play it again, ask for no more calls.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::media::stream::PlaybackItem;

/// After the last packet the call stays up for a moment, so that nothing is clipped by a peer that plays from a buffer.
pub(super) const AFTER_THE_LAST_PACKET: Duration = Duration::from_millis(300);
/// A message is played again so often at most.
pub const MAX_REPLAYS: u8 = 5;
/// While a choice is being recorded the callee hears nothing, for so many frames at most: half a minute.
const LONGEST_RECORDING: u32 = 1500;
const FRAME: Duration = Duration::from_millis(g711::FRAME_MILLIS as u64);

/// What is asked of the callee. Keys of different meanings differ.
#[derive(Debug, Clone)]
pub struct KeyMenu {
    /// Asks for a key, after the message.
    pub question: Vec<PlaybackItem>,
    /// How long a key is waited for, after the question.
    pub wait: Duration,
    pub confirm: Vec<char>,
    pub replay: Option<char>,
    /// Pressed twice in a row.
    pub stop: Option<char>,
    /// What the callee hears when a confirmation is recorded.
    pub thanks: Vec<PlaybackItem>,
}

/// What the callee wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyChoice {
    /// The message was understood; with which key.
    Confirmed(char),
    /// No more calls.
    Stopped,
}

/// A choice waits to be recorded: nobody is told that it was understood before it is. Dropping this says that it could not be.
#[derive(Debug)]
pub struct ChoiceRecorded(oneshot::Sender<()>);

impl ChoiceRecorded {
    /// Whoever plays waits at the other end.
    pub fn new() -> (Self, oneshot::Receiver<()>) {
        let (recorded, done) = oneshot::channel();
        (Self(recorded), done)
    }

    pub fn done(self) {
        // The callee may have hung up meanwhile.
        let _ = self.0.send(());
    }
}

/// What follows a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MenuStep {
    Nothing,
    PlayAgain,
    Chosen(KeyChoice),
}

/// The keys that a callee has pressed so far, and what they came to.
#[derive(Debug)]
pub(super) struct MenuState<'a> {
    menu: &'a KeyMenu,
    replays: u8,
    last: Option<char>,
    is_chosen: bool,
}

impl<'a> MenuState<'a> {
    pub fn new(menu: &'a KeyMenu) -> Self {
        Self {
            menu,
            replays: 0,
            last: None,
            is_chosen: false,
        }
    }

    /// The first choice counts.
    pub fn pressed(&mut self, key: char) -> MenuStep {
        let before = self.last.replace(key);
        if self.is_chosen {
            return MenuStep::Nothing;
        }
        if self.menu.confirm.contains(&key) {
            self.is_chosen = true;
            return MenuStep::Chosen(KeyChoice::Confirmed(key));
        }
        if self.menu.stop == Some(key) && before == Some(key) {
            self.is_chosen = true;
            return MenuStep::Chosen(KeyChoice::Stopped);
        }
        if self.menu.replay == Some(key) && self.replays < MAX_REPLAYS {
            self.replays += 1;
            return MenuStep::PlayAgain;
        }
        MenuStep::Nothing
    }
}

impl KeyMenu {
    /// The message and everything after it, where no key is pressed.
    pub(super) fn whole(&self, message: &[PlaybackItem]) -> Vec<PlaybackItem> {
        let mut whole = message.to_vec();
        whole.extend(self.question.iter().cloned());
        whole.push(silence(self.wait));
        whole.push(silence(AFTER_THE_LAST_PACKET));
        whole
    }

    /// What the callee hears who has chosen: nothing where that could not be recorded.
    pub(super) fn thanked(&self, is_recorded: bool) -> Vec<PlaybackItem> {
        let thanks = is_recorded.then(|| self.thanks.clone());
        let mut items = thanks.unwrap_or_default();
        items.push(silence(AFTER_THE_LAST_PACKET));
        items
    }

    /// While a choice is being recorded.
    pub(super) fn recording() -> Vec<PlaybackItem> {
        vec![PlaybackItem::Silence {
            frames: LONGEST_RECORDING,
        }]
    }
}

pub(super) fn silence(time: Duration) -> PlaybackItem {
    let frames = time.as_millis().div_ceil(FRAME.as_millis());
    PlaybackItem::Silence {
        frames: u32::try_from(frames).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_what_the_menu_says() {
        use MenuStep::{Chosen, Nothing, PlayAgain};
        let menu = KeyMenu {
            question: Vec::new(),
            wait: Duration::from_secs(10),
            confirm: vec!['1', '2'],
            replay: Some('*'),
            stop: Some('9'),
            thanks: Vec::new(),
        };
        let steps = |keys: &str| {
            let mut state = MenuState::new(&menu);
            keys.chars()
                .map(|key| state.pressed(key))
                .collect::<Vec<_>>()
        };
        let confirmed = |key| Chosen(KeyChoice::Confirmed(key));
        assert_eq!(steps("12"), [confirmed('1'), Nothing], "the first counts");
        assert_eq!(steps("5*2"), [Nothing, PlayAgain, confirmed('2')]);
        assert_eq!(steps("9*9"), [Nothing, PlayAgain, Nothing], "not in a row");
        assert_eq!(steps("991"), [Nothing, Chosen(KeyChoice::Stopped), Nothing]);
        let often = steps("*******");
        let replays = often.iter().filter(|step| **step == PlayAgain);
        assert_eq!(replays.count(), usize::from(MAX_REPLAYS));
    }
}
