//! The prompts that are cached, the prompts that are being rendered, and who waits for them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{PromptError, RenderedPiece};
use crate::cache::Key;
use crate::cache::lru::Lru;

type Answer = Result<RenderedPiece, PromptError>;

/// Temporary entries are few; when there are this many, expired ones are removed.
const TEMPORARY_LIMIT: usize = 200;

#[derive(Debug)]
pub(super) struct PromptCache {
    state: Mutex<State>,
    failure_ttl: Duration,
}

#[derive(Debug)]
struct State {
    cached: Lru<RenderedPiece>,
    /// Failures and fallback prompts, until they expire.
    temporary: HashMap<Key, (Instant, Answer)>,
    /// Who waits for a prompt that is being rendered.
    waiting: HashMap<Key, Vec<oneshot::Sender<Answer>>>,
    counts: Counts,
}

/// How often each thing happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub from_memory: u64,
    pub from_disk: u64,
    /// Waited for a prompt that was already being rendered.
    pub joined: u64,
    pub made: u64,
    pub failed: u64,
    /// Bytes in memory.
    pub bytes: u64,
}

pub(super) enum Lookup {
    Cached(Answer),
    /// It is being rendered.
    Pending(oneshot::Receiver<Answer>),
    /// Nobody renders it yet: the caller has to see to that.
    Missing(oneshot::Receiver<Answer>),
}

pub(super) enum Rendered {
    New(RenderedPiece),
    FromDisk(RenderedPiece),
    /// Spoken by another voice than the first.
    Fallback(RenderedPiece),
    Failed(PromptError),
}

impl PromptCache {
    pub fn new(bytes: u64, failure_ttl: Duration) -> Self {
        let state = State {
            cached: Lru::new(bytes),
            temporary: HashMap::new(),
            waiting: HashMap::new(),
            counts: Counts::default(),
        };
        Self {
            state: Mutex::new(state),
            failure_ttl,
        }
    }

    pub fn look_up(&self, key: Key) -> Lookup {
        let mut state = self.lock();
        if let Some(piece) = state.cached.get(&key).cloned() {
            state.counts.from_memory += 1;
            return Lookup::Cached(Ok(piece));
        }
        if let Some((until, answer)) = state.temporary.get(&key) {
            if Instant::now() < *until {
                return Lookup::Cached(answer.clone());
            }
            state.temporary.remove(&key);
        }
        let (sender, receiver) = oneshot::channel();
        if let Some(waiting) = state.waiting.get_mut(&key) {
            waiting.push(sender);
            state.counts.joined += 1;
            return Lookup::Pending(receiver);
        }
        state.waiting.insert(key, vec![sender]);
        Lookup::Missing(receiver)
    }

    pub fn put(&self, key: Key, rendered: Rendered) {
        let mut state = self.lock();
        let answer = match rendered {
            Rendered::New(piece) => {
                state.counts.made += 1;
                state.keep(key, &piece);
                Ok(piece)
            }
            Rendered::FromDisk(piece) => {
                state.counts.from_disk += 1;
                state.keep(key, &piece);
                Ok(piece)
            }
            Rendered::Fallback(piece) => {
                state.counts.made += 1;
                state.keep_temporarily(key, Ok(piece.clone()), self.failure_ttl);
                Ok(piece)
            }
            Rendered::Failed(reason) => {
                state.counts.failed += 1;
                state.keep_temporarily(key, Err(reason.clone()), self.failure_ttl);
                Err(reason)
            }
        };
        let waiting = state.waiting.remove(&key).unwrap_or_default();
        drop(state);
        notify(waiting, &answer);
    }

    /// The prompt is not rendered after all; that is not cached.
    pub fn give_up(&self, key: Key, reason: PromptError) {
        let waiting = self.lock().waiting.remove(&key).unwrap_or_default();
        notify(waiting, &Err(reason));
    }

    pub fn counts(&self) -> Counts {
        let state = self.lock();
        Counts {
            bytes: state.cached.held(),
            ..state.counts
        }
    }

    /// A panic elsewhere leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, key: Key, piece: &RenderedPiece) {
        let size = piece.sound.size() as u64;
        self.cached.insert(key, piece.clone(), size);
    }

    fn keep_temporarily(&mut self, key: Key, answer: Answer, time: Duration) {
        let now = Instant::now();
        if self.temporary.len() >= TEMPORARY_LIMIT {
            self.temporary.retain(|_, (until, _)| *until > now);
        }
        if self.temporary.len() < TEMPORARY_LIMIT {
            self.temporary.insert(key, (now + time, answer));
        }
    }
}

/// A caller that has stopped waiting needs no answer.
fn notify(waiting: Vec<oneshot::Sender<Answer>>, answer: &Answer) {
    for sender in waiting {
        let _ = sender.send(answer.clone());
    }
}
