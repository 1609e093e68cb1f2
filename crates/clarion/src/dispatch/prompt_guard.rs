//! Notices when this node cannot make prompts at all: its folder of audio files is gone or holds those of another, or its speech program cannot be
//! started. Then it claims no more calls for a while, and leaves them to other nodes; calls that it has claimed go back to the queue.
//!
//! What a customer's own text or file does to the renderer does not count here, nor does a file that is lost: nobody stops a node by sending calls.

use std::sync::Mutex;
use std::time::Duration;

use sound::PromptError;
use sound::speech::SpeechError;
use tokio::time::Instant;

use super::lock;
use crate::claim_holds::{ClaimHolds, HoldKind};

/// Failures in a row before the node stops claiming; those of one file are one.
const PATIENCE: usize = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct PromptGuard {
    holds: ClaimHolds,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What each of them said.
    failures: Vec<String>,
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
        let said = error.to_string();
        let mut state = lock(&self.state);
        if !is_of_the_node(error) || is_of_one_file(error) && state.failures.contains(&said) {
            return;
        }
        if state.failures.len() < PATIENCE {
            state.failures.push(said);
        }
        if state.failures.len() >= PATIENCE && state.held_until.is_none() {
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
            state.failures.truncate(PATIENCE - 1);
            self.holds.set(HoldKind::Prompts, None);
        }
    }
}

fn is_of_the_node(error: &PromptError) -> bool {
    matches!(
        error,
        PromptError::Missing(_)
            | PromptError::NoFiles(_)
            | PromptError::Speech(SpeechError::NotStarted { .. })
    )
}

/// It says nothing about others.
fn is_of_one_file(error: &PromptError) -> bool {
    matches!(error, PromptError::Missing(_))
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
        let missing = PromptError::NoFiles("no such folder".to_owned());
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

    #[test]
    fn a_file_that_is_lost_stops_nobody_and_many_of_them_stop_the_node() {
        let holds = ClaimHolds::default();
        let guard = PromptGuard::new(holds.clone());
        let lost = |name: &str| PromptError::Missing(name.to_owned());
        for _ in 0..100 {
            guard.failed(&lost("one"));
        }
        guard.failed(&lost("another"));
        assert!(!holds.is_held());
        guard.failed(&lost("a third"));
        assert!(holds.is_held());
    }
}
