//! What a call plays, and when: all at once, or the message only when it is known who has answered.

use std::time::Duration;

use super::CallRequest;
use super::answer_check::{LONGEST_CHECK, LONGEST_GREETING, MachineAction};
use super::key_menu::{AFTER_THE_LAST_PACKET, silence};
use crate::media::ears::Answerer;
use crate::media::stream::PlaybackItem;

/// From the beep to the message.
const AFTER_THE_BEEP: Duration = Duration::from_millis(400);

/// The silence outlasts the waiting.
const MARGIN: Duration = Duration::from_secs(1);

impl CallRequest {
    /// From the answer on, where nothing happens meanwhile.
    pub(super) fn first_playback(&self) -> Vec<PlaybackItem> {
        let mut items = self.opening.clone();
        if self.waits_for_answerer() {
            // Silence, and not nothing: what lies between us and the callee shall know that we are there.
            items.push(silence(LONGEST_CHECK + LONGEST_GREETING + MARGIN));
        } else {
            items.extend(self.message());
        }
        items
    }

    /// The message, and what is asked of the callee after it.
    pub(super) fn message(&self) -> Vec<PlaybackItem> {
        match &self.menu {
            Some(menu) => menu.whole(&self.plan),
            None => self.plan.clone(),
        }
    }

    /// A machine that records is asked for no key.
    pub(super) fn message_for(&self, answerer: Answerer) -> Vec<PlaybackItem> {
        if answerer != Answerer::Machine {
            return self.message();
        }
        let mut items = vec![silence(AFTER_THE_BEEP)];
        items.extend(self.plan.iter().cloned());
        items.push(silence(AFTER_THE_LAST_PACKET));
        items
    }

    /// Whether the message waits until it is known who has answered.
    fn waits_for_answerer(&self) -> bool {
        let action = self.machine;
        action.is_some_and(|action| action != MachineAction::Report)
    }
}
