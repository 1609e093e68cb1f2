//! The prompts that wait to be rendered, in turns: a worker that is free takes the next prompt of the requester whose prompts occupy the
//! fewest workers, and among those of the one whose turn was longest ago. A worker that is between two parts of a text takes the prompt of a
//! requester that occupies none. So nobody waits for more than the parts that are under way.
//!
//! A prompt that several requesters want stands in the line of each, and is rendered at the first turn of any of them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Piece;
use crate::cache::Key;

#[derive(Debug)]
pub(super) struct JobQueue {
    state: Mutex<QueueState>,
    added: Condvar,
    /// The most prompts that wait.
    limit: usize,
}

#[derive(Debug, Default)]
struct QueueState {
    jobs: HashMap<Key, Job>,
    lines: HashMap<String, Line>,
    /// Counts turns and arrivals.
    turn: u64,
    /// Workers that have nothing to do.
    idle: usize,
    closed: bool,
}

#[derive(Debug)]
struct Job {
    piece: Piece,
    wanted_by: HashSet<String>,
}

/// What one requester waits for. A key whose job is gone was rendered at another's turn.
#[derive(Debug, Default)]
struct Line {
    keys: VecDeque<Key>,
    /// Workers that render a prompt of it.
    occupied: usize,
    /// 0 before the first.
    last_turn: u64,
    /// Its place among those that have come.
    arrived: u64,
}

/// What became of a prompt that was to wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum QueueEntry {
    Waits,
    /// It waits in the place of this one, whose requester has the longest line.
    Instead(Key),
    Refused,
}

/// A requester occupies a worker until this is dropped.
#[derive(Debug)]
pub(super) struct WorkerTurn<'a> {
    requester: String,
    queue: &'a JobQueue,
}

/// A prompt whose turn it is.
pub(super) type QueuedPrompt<'a> = (Key, Piece, WorkerTurn<'a>);

impl WorkerTurn<'_> {
    pub fn requester(&self) -> &str {
        &self.requester
    }
}

impl JobQueue {
    pub fn new(limit: usize) -> Self {
        Self {
            state: Mutex::default(),
            added: Condvar::new(),
            limit,
        }
    }

    /// Never blocks.
    pub fn add(&self, requester: &str, key: Key, piece: Piece) -> QueueEntry {
        let mut state = self.lock();
        if state.closed {
            return QueueEntry::Refused;
        }
        let mut entry = QueueEntry::Waits;
        if state.jobs.len() >= self.limit + state.idle {
            match state.displaced_by(requester) {
                Some(displaced) => entry = QueueEntry::Instead(displaced),
                None => return QueueEntry::Refused,
            }
        }
        let job = Job {
            piece,
            wanted_by: HashSet::new(),
        };
        state.jobs.insert(key, job);
        state.join(requester, key);
        self.added.notify_one();
        entry
    }

    /// Somebody else wants a prompt that waits, if it still does.
    pub fn join(&self, requester: &str, key: Key) {
        self.lock().join(requester, key);
    }

    /// Waits for a prompt to render. `None` when the queue is closed.
    pub fn take(&self) -> Option<QueuedPrompt<'_>> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(next) = state.next(|_, _| true) {
                return Some(self.turn(next));
            }
            state.idle += 1;
            state = self
                .added
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// A prompt of a requester for whom no worker works, if it may come now. Never blocks.
    pub fn take_of_the_idle(&self, may_come: impl Fn(&str) -> bool) -> Option<QueuedPrompt<'_>> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let next = state.next(|requester, line| line.occupied == 0 && may_come(requester));
        next.map(|next| self.turn(next))
    }

    fn turn(&self, (requester, key, job): (String, Key, Job)) -> QueuedPrompt<'_> {
        let turn = WorkerTurn {
            requester,
            queue: self,
        };
        (key, job.piece, turn)
    }

    pub fn close(&self) {
        self.lock().closed = true;
        self.added.notify_all();
    }

    /// A panic elsewhere leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn join(&mut self, requester: &str, key: Key) {
        let Some(job) = self.jobs.get_mut(&key) else {
            return;
        };
        if !job.wanted_by.contains(requester) {
            job.wanted_by.insert(requester.to_owned());
            self.turn += 1;
            let line = self.lines.entry(requester.to_owned());
            let line = line.or_insert_with(|| Line {
                arrived: self.turn,
                ..Line::default()
            });
            line.keys.push_back(key);
        }
    }

    fn next(&mut self, may_come: impl Fn(&str, &Line) -> bool) -> Option<(String, Key, Job)> {
        loop {
            let lines = self.lines.iter();
            let waiting = lines
                .filter(|(requester, line)| !line.keys.is_empty() && may_come(requester, line));
            let next =
                waiting.min_by_key(|(_, line)| (line.occupied, line.last_turn, line.arrived));
            let requester = next?.0.clone();
            let line = self.lines.get_mut(&requester)?;
            while let Some(key) = line.keys.pop_front() {
                if let Some(job) = self.jobs.remove(&key) {
                    self.turn += 1;
                    line.occupied += 1;
                    line.last_turn = self.turn;
                    return Some((requester, key, job));
                }
            }
            self.forget_if_idle(&requester);
        }
    }

    /// Makes room by giving up the newest prompt of the longest line, if that line is longer than the requester's would become.
    fn displaced_by(&mut self, requester: &str) -> Option<Key> {
        let own = self.lines.get(requester).map_or(0, |line| line.keys.len());
        let longest = self.lines.iter().max_by_key(|(_, line)| line.keys.len());
        let longest = longest?.0.clone();
        let line = self.lines.get_mut(&longest)?;
        while line.keys.len() > own + 1 {
            let key = line.keys.pop_back()?;
            let Some(job) = self.jobs.get_mut(&key) else {
                continue;
            };
            job.wanted_by.remove(&longest);
            if job.wanted_by.is_empty() {
                self.jobs.remove(&key);
                return Some(key);
            }
        }
        None
    }

    fn forget_if_idle(&mut self, requester: &str) {
        let is_idle = |line: &Line| line.keys.is_empty() && line.occupied == 0;
        if self.lines.get(requester).is_some_and(is_idle) {
            self.lines.remove(requester);
        }
    }
}

impl Drop for WorkerTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        if let Some(line) = state.lines.get_mut(&self.requester) {
            line.occupied -= 1;
        }
        state.forget_if_idle(&self.requester);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Key {
        Key::of(&[&number.to_le_bytes()])
    }

    fn add(queue: &JobQueue, requester: &str, number: u32) -> QueueEntry {
        queue.add(requester, key(number), Piece::TestTune)
    }

    fn filled(limit: usize, numbers: std::ops::Range<u32>) -> JobQueue {
        let queue = JobQueue::new(limit);
        for number in numbers {
            assert_eq!(add(&queue, "greedy", number), QueueEntry::Waits);
        }
        queue
    }

    #[test]
    fn a_free_worker_goes_to_whoever_occupies_the_fewest() {
        let queue = filled(100, 0..8);
        let under_way: Vec<_> = (0..3).map(|_| queue.take().unwrap()).collect();
        assert_eq!(under_way[2].0, key(2), "nobody else waits");
        add(&queue, "modest", 20);
        add(&queue, "modest", 21);
        add(&queue, "third", 30);
        // With one worker of three free again, all turns of the others come before the fourth of the greedy one.
        let turns: Vec<_> = (0..4).map(|_| queue.take().unwrap()).collect();
        let keys: Vec<_> = turns.iter().map(|(key, ..)| *key).collect();
        assert_eq!(keys[..2], [key(20), key(30)]);
        assert_eq!(keys[2..], [key(21), key(3)]);
    }

    #[test]
    fn with_a_single_worker_requesters_take_turns() {
        let queue = filled(100, 0..3);
        drop(queue.take());
        add(&queue, "modest", 20);
        add(&queue, "modest", 21);
        let keys: Vec<_> = (0..4).map(|_| queue.take().unwrap().0).collect();
        assert_eq!(keys, [key(20), key(1), key(21), key(2)]);
        assert!(queue.lock().lines.is_empty(), "nothing is left of them");
    }

    #[test]
    fn a_prompt_that_another_wants_too_is_rendered_once_at_the_first_turn_of_either() {
        let queue = filled(100, 0..8);
        let _turn = queue.take().unwrap();
        queue.join("modest", key(7));
        queue.join("modest", key(7));
        assert_eq!(queue.take().unwrap().0, key(7));
        let rest: Vec<_> = (0..6).map(|_| queue.take().unwrap().0).collect();
        assert_eq!(rest, [1, 2, 3, 4, 5, 6].map(key));
        queue.close();
        assert!(queue.take().is_none());
    }

    #[test]
    fn a_full_queue_makes_room_at_the_end_of_the_longest_line() {
        let queue = filled(4, 0..4);
        assert_eq!(add(&queue, "greedy", 9), QueueEntry::Refused);
        // What another wants too is kept.
        queue.join("third", key(3));
        assert_eq!(add(&queue, "modest", 20), QueueEntry::Instead(key(2)));
        assert_eq!(add(&queue, "modest", 21), QueueEntry::Refused);
        assert_eq!(queue.lock().jobs.len(), 4);
    }
}
