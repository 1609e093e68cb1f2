//! Notices when this node cannot make prompts at all: its folder of audio files is gone, or its speech program cannot be started. Then it claims
//! no more calls for a while, and leaves them to other nodes; calls that it has claimed go back to the queue.
//!
//! What a customer's own text or file does to the renderer does not count here: nobody stops a node by sending calls.

use std::sync::Mutex;
use std::time::Duration;

use sound::PromptError;
use sound::speech::SpeechError;
use tokio::time::Instant;

use super::lock;
use crate::claim_holds::{ClaimHolds, HoldKind};

/// Failures in a row, each of another call, before the node stops claiming.
const PATIENCE: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct PromptGuard {
    holds: ClaimHolds,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    pauses: u32,
    held_until: Option<Instant>,
}

impl PromptGuard {
    pub fn new(holds: ClaimHolds) -> Self {
        Self {
            holds,
            state: Mutex::default(),
        }
    }

    pub fn worked(&self) {
        *lock(&self.state) = State::default();
        self.holds.set(HoldKind::Prompts, None);
    }

    pub fn failed(&self, error: &PromptError) {
        if !is_of_the_node(error) {
            return;
        }
        let mut state = lock(&self.state);
        state.failures += 1;
        if state.failures >= PATIENCE && state.held_until.is_none() {
            let pause = FIRST_PAUSE * 2_u32.saturating_pow(state.pauses.min(8));
            state.held_until = Some(Instant::now() + pause.min(LONGEST_PAUSE));
            state.pauses += 1;
            self.holds.set(HoldKind::Prompts, Some(error.to_string()));
        }
    }

    /// After the pause calls are claimed again: if the first fails as before, the next pause is longer.
    pub fn try_again(&self, now: Instant) {
        let mut state = lock(&self.state);
        if state.held_until.is_some_and(|until| now >= until) {
            state.held_until = None;
            state.failures = PATIENCE - 1;
            self.holds.set(HoldKind::Prompts, None);
        }
    }
}

fn is_of_the_node(error: &PromptError) -> bool {
    matches!(
        error,
        PromptError::Missing(_) | PromptError::Speech(SpeechError::NotStarted { .. })
    )
}

/// A prompt that will never be made, however often it is tried.
pub fn is_final(error: &PromptError) -> bool {
    matches!(
        error,
        PromptError::File(_) | PromptError::Speech(SpeechError::TooMuch { .. })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_keeps_failing_claims_nothing_for_a_while() {
        let holds = ClaimHolds::default();
        let guard = PromptGuard::new(holds.clone());
        let missing = PromptError::Missing("no such folder".to_owned());
        for _ in 0..PATIENCE {
            assert!(!holds.is_held());
            guard.failed(&PromptError::Broken);
            guard.failed(&missing);
        }
        assert!(holds.reasons()[&HoldKind::Prompts].contains("no such folder"));
        let now = Instant::now();
        guard.try_again(now);
        assert!(holds.is_held(), "not yet");
        guard.try_again(now + FIRST_PAUSE);
        assert!(!holds.is_held(), "one tries");
        guard.failed(&missing);
        guard.try_again(now + FIRST_PAUSE);
        assert!(holds.is_held(), "twice as long");
        guard.worked();
        assert!(!holds.is_held());
    }
}
