//! What is there, what is being made, and who waits for it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::PromptError;
use crate::cache::Key;
use crate::cache::lru::Lru;
use g711::EncodedAudio;

type Answer = Result<EncodedAudio, PromptError>;

/// Brief memories are few; when there are more, all that have passed go.
const MANY_BRIEF: usize = 200;

#[derive(Debug)]
pub(super) struct PromptCache {
    state: Mutex<State>,
    brief: Duration,
}

#[derive(Debug)]
struct State {
    kept: Lru<EncodedAudio>,
    brief: HashMap<Key, (Instant, Answer)>,
    coming: HashMap<Key, Vec<oneshot::Sender<Answer>>>,
    counts: Counts,
}

/// How often what happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub from_memory: u64,
    pub from_disk: u64,
    /// Waited for what was already being made.
    pub joined: u64,
    pub made: u64,
    pub failed: u64,
    /// Bytes in memory.
    pub bytes: u64,
}

pub(super) enum Asked {
    There(Answer),
    PendingChannel(oneshot::Receiver<Answer>),
    /// Nobody makes it yet: whoever asked sees to it.
    Nobody(oneshot::Receiver<Answer>),
}

pub(super) enum Made {
    New(EncodedAudio),
    Remembered(EncodedAudio),
    /// By the engine that stood in for the wanted one.
    Fallback(EncodedAudio),
    Failed(PromptError),
}

impl PromptCache {
    pub fn new(bytes: u64, brief: Duration) -> Self {
        let state = State {
            kept: Lru::new(bytes),
            brief: HashMap::new(),
            coming: HashMap::new(),
            counts: Counts::default(),
        };
        Self {
            state: Mutex::new(state),
            brief,
        }
    }

    pub fn ask(&self, key: Key) -> Asked {
        let mut state = self.lock();
        if let Some(sound) = state.kept.get(&key).cloned() {
            state.counts.from_memory += 1;
            return Asked::There(Ok(sound));
        }
        if let Some((until, answer)) = state.brief.get(&key) {
            if Instant::now() < *until {
                return Asked::There(answer.clone());
            }
            state.brief.remove(&key);
        }
        let (sender, receiver) = oneshot::channel();
        if let Some(waiting) = state.coming.get_mut(&key) {
            waiting.push(sender);
            state.counts.joined += 1;
            return Asked::PendingChannel(receiver);
        }
        state.coming.insert(key, vec![sender]);
        Asked::Nobody(receiver)
    }

    pub fn put(&self, key: Key, made: Made) {
        let mut state = self.lock();
        let answer = match made {
            Made::New(sound) => {
                state.counts.made += 1;
                state.keep(key, &sound);
                Ok(sound)
            }
            Made::Remembered(sound) => {
                state.counts.from_disk += 1;
                state.keep(key, &sound);
                Ok(sound)
            }
            Made::Fallback(sound) => {
                state.counts.made += 1;
                state.keep_briefly(key, Ok(sound.clone()), self.brief);
                Ok(sound)
            }
            Made::Failed(reason) => {
                state.counts.failed += 1;
                state.keep_briefly(key, Err(reason.clone()), self.brief);
                Err(reason)
            }
        };
        let waiting = state.coming.remove(&key).unwrap_or_default();
        drop(state);
        notify(waiting, &answer);
    }

    /// Nobody will make it after all; that is not remembered.
    pub fn give_up(&self, key: Key, reason: PromptError) {
        let waiting = self.lock().coming.remove(&key).unwrap_or_default();
        notify(waiting, &Err(reason));
    }

    pub fn counts(&self) -> Counts {
        let state = self.lock();
        Counts {
            bytes: state.kept.held(),
            ..state.counts
        }
    }

    /// A panic elsewhere leaves nothing half done in here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, key: Key, sound: &EncodedAudio) {
        self.kept.insert(key, sound.clone(), sound.size() as u64);
    }

    fn keep_briefly(&mut self, key: Key, answer: Answer, time: Duration) {
        let now = Instant::now();
        if self.brief.len() >= MANY_BRIEF {
            self.brief.retain(|_, (until, _)| *until > now);
        }
        if self.brief.len() < MANY_BRIEF {
            self.brief.insert(key, (now + time, answer));
        }
    }
}

/// Who has stopped waiting needs no answer.
fn notify(waiting: Vec<oneshot::Sender<Answer>>, answer: &Answer) {
    for sender in waiting {
        let _ = sender.send(answer.clone());
    }
}
