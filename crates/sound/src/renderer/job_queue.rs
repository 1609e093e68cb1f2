//! The prompts that wait to be rendered, in turns: a worker that is free takes the next prompt of the requester whose prompts occupy the
//! fewest workers, and among those of the one whose turn was longest ago. A worker that is between two parts of a text takes the prompt of a
//! requester that occupies none. So nobody waits for more than the parts that are under way.
//!
//! A requester that has had prompts rendered for a while without a rest gives way to everything else on the machine, too. While anybody else wants
//! prompts, it gets half of the workers, and rests as long as it works between two parts of a text: a priority alone does not help the programs of
//! other sessions and groups, such as the database.
//!
//! A prompt that several requesters want stands in the line of each, and is rendered at the first turn of any of them.
//!
//! A prompt whose voice is another program is slow: its worker waits for that program. There is one worker more than prompts of either kind under
//! way, so that a voice that is slow, or hangs, delays only those who want it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Piece;
use crate::cache::Key;

#[derive(Debug)]
pub(super) struct JobQueue {
    state: Mutex<QueueState>,
    wanted: Mutex<LatelyWanted>,
    added: Condvar,
    /// The most prompts that wait.
    limit: usize,
    /// The most prompts of a kind that are under way.
    at_once: usize,
}

/// Longer than this is a while. A text that is spoken for a single call is ready before.
const A_WHILE: Duration = Duration::from_secs(1);
/// Whoever has wanted a prompt so lately may want another one.
const LATELY: Duration = Duration::from_secs(10);

/// What a worker does for a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Labour {
    Quick,
    /// It waits for a voice that is another program.
    Slow,
}

impl Labour {
    const ALL: [Self; 2] = [Self::Quick, Self::Slow];
}

#[derive(Debug, Default)]
struct QueueState {
    jobs: HashMap<Key, Job>,
    lines: HashMap<String, Line>,
    /// Counts turns and arrivals.
    turn: u64,
    /// Workers that have nothing to do.
    idle: usize,
    /// Prompts under way.
    quick: usize,
    slow: usize,
    closed: bool,
}

/// The two requesters that have wanted a prompt last, whether it was there or not: the last one first.
#[derive(Debug, Default)]
struct LatelyWanted([Option<(String, Instant)>; 2]);

impl LatelyWanted {
    fn note(&mut self, requester: &str, now: Instant) {
        let [last, before] = &mut self.0;
        match last {
            Some((name, at)) if name == requester => *at = now,
            _ => {
                *before = last.take();
                *last = Some((requester.to_owned(), now));
            }
        }
    }

    /// Somebody else than this one has lately.
    fn by_others(&self, requester: &str, now: Instant) -> bool {
        let others = self
            .0
            .iter()
            .flatten()
            .filter(|(name, _)| name != requester);
        others
            .max_by_key(|(_, at)| *at)
            .is_some_and(|(_, at)| now.duration_since(*at) < LATELY)
    }
}

#[derive(Debug)]
struct Job {
    piece: Piece,
    labour: Labour,
    wanted_by: HashSet<String>,
}

/// What one requester waits for, each with its place in the order of arrival. A key whose job is gone was rendered at another's turn.
#[derive(Debug)]
struct Line {
    quick: VecDeque<(u64, Key)>,
    slow: VecDeque<(u64, Key)>,
    /// Workers that render a prompt of it, and those of them that do not wait for another program.
    occupied: usize,
    quick_occupied: usize,
    /// 0 before the first.
    last_turn: u64,
    /// Its place among those that have come.
    arrived: u64,
    /// It has had prompts rendered since then.
    since: Instant,
}

impl Line {
    fn new(arrived: u64) -> Self {
        Self {
            quick: VecDeque::new(),
            slow: VecDeque::new(),
            occupied: 0,
            quick_occupied: 0,
            last_turn: 0,
            arrived,
            since: Instant::now(),
        }
    }

    fn len(&self) -> usize {
        self.quick.len() + self.slow.len()
    }

    fn keys(&mut self, labour: Labour) -> &mut VecDeque<(u64, Key)> {
        match labour {
            Labour::Quick => &mut self.quick,
            Labour::Slow => &mut self.slow,
        }
    }

    /// The kind of its oldest prompt among those that may come.
    fn next(&self, may_come: &[Labour]) -> Option<Labour> {
        let oldest = |labour: &Labour| match labour {
            Labour::Quick => self.quick.front(),
            Labour::Slow => self.slow.front(),
        };
        let waiting = may_come.iter().filter(|labour| oldest(labour).is_some());
        waiting.min_by_key(|labour| oldest(labour)).copied()
    }

    fn pop_newest(&mut self) -> Option<Key> {
        let newest = |keys: &VecDeque<(u64, Key)>| keys.back().map_or(0, |key| key.0);
        let keys = if newest(&self.slow) > newest(&self.quick) {
            &mut self.slow
        } else {
            &mut self.quick
        };
        keys.pop_back().map(|(_, key)| key)
    }
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
    /// The requester has had prompts rendered since then.
    since: Instant,
    labour: Labour,
    queue: &'a JobQueue,
}

/// A prompt whose turn it is.
pub(super) type QueuedPrompt<'a> = (Key, Piece, WorkerTurn<'a>);

/// The next prompt, taken out of the queue.
#[derive(Debug)]
struct NextJob {
    requester: String,
    since: Instant,
    key: Key,
    job: Job,
}

impl WorkerTurn<'_> {
    pub fn requester(&self) -> &str {
        &self.requester
    }

    /// The requester has had prompts rendered for a while without a rest.
    pub fn is_long(&self) -> bool {
        self.since.elapsed() > A_WHILE
    }

    /// Others want prompts, too.
    pub fn others_want(&self) -> bool {
        self.queue.others_want(&self.requester, Instant::now())
    }
}

impl JobQueue {
    /// For one worker more than `at_once`.
    pub fn new(limit: usize, at_once: usize) -> Self {
        Self {
            state: Mutex::default(),
            wanted: Mutex::default(),
            added: Condvar::new(),
            limit,
            at_once,
        }
    }

    /// This one wants a prompt, which may be there.
    pub fn note_wanted(&self, requester: &str) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.note(requester, Instant::now());
    }

    /// Whether a requester may have one more prompt of this kind rendered now.
    fn may_occupy_more(&self, requester: &str, line: &Line, labour: Labour, now: Instant) -> bool {
        let is_long = now.duration_since(line.since) > A_WHILE;
        // A worker that waits for another program takes nobody's processor.
        let is_bound = labour == Labour::Quick && line.quick_occupied >= self.at_once.div_ceil(2);
        !(is_long && is_bound && self.others_want(requester, now))
    }

    /// Somebody else has wanted a prompt lately.
    fn others_want(&self, requester: &str, now: Instant) -> bool {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.by_others(requester, now)
    }

    /// Never blocks.
    pub fn add(&self, requester: &str, key: Key, piece: Piece, labour: Labour) -> QueueEntry {
        let mut state = self.lock();
        if state.closed {
            return QueueEntry::Refused;
        }
        let mut entry = QueueEntry::Waits;
        let busy = state.quick.max(state.slow);
        let free = self.at_once.saturating_sub(busy).min(state.idle);
        if state.jobs.len() >= self.limit + free {
            match state.displaced_by(requester) {
                Some(displaced) => entry = QueueEntry::Instead(displaced),
                None => return QueueEntry::Refused,
            }
        }
        let job = Job {
            piece,
            labour,
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
            let has_room = |labour: &Labour| *state.under_way(*labour) < self.at_once;
            let kinds: Vec<_> = Labour::ALL.into_iter().filter(has_room).collect();
            let now = Instant::now();
            let next = state.next(&kinds, |requester, line, labour| {
                self.may_occupy_more(requester, line, labour, now)
            });
            if let Some(next) = next {
                return Some(self.turn(next));
            }
            state.idle += 1;
            // What waits because others want prompts may come when they have not for a while, and nobody says so.
            let look_again = if state.jobs.is_empty() {
                Duration::MAX
            } else {
                A_WHILE
            };
            let waited = self.added.wait_timeout(state, look_again);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
        }
    }

    /// A quick prompt of a requester for whom no worker works, if it may come now. Never blocks.
    pub fn take_of_the_idle(&self, may_come: impl Fn(&str) -> bool) -> Option<QueuedPrompt<'_>> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let next = state.next(&[Labour::Quick], |requester, line, _| {
            line.occupied == 0 && may_come(requester)
        });
        next.map(|next| self.turn(next))
    }

    fn turn(&self, next: NextJob) -> QueuedPrompt<'_> {
        let turn = WorkerTurn {
            requester: next.requester,
            since: next.since,
            labour: next.job.labour,
            queue: self,
        };
        (next.key, next.job.piece, turn)
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
    fn under_way(&mut self, labour: Labour) -> &mut usize {
        match labour {
            Labour::Quick => &mut self.quick,
            Labour::Slow => &mut self.slow,
        }
    }

    fn join(&mut self, requester: &str, key: Key) {
        let Some(job) = self.jobs.get_mut(&key) else {
            return;
        };
        if !job.wanted_by.contains(requester) {
            job.wanted_by.insert(requester.to_owned());
            self.turn += 1;
            let line = self.lines.entry(requester.to_owned());
            let line = line.or_insert_with(|| Line::new(self.turn));
            line.keys(job.labour).push_back((self.turn, key));
        }
    }

    fn next(
        &mut self,
        kinds: &[Labour],
        may_come: impl Fn(&str, &Line, Labour) -> bool,
    ) -> Option<NextJob> {
        loop {
            let may_come = |requester: &str, line: &Line| -> Vec<Labour> {
                let kinds = kinds.iter().copied();
                kinds
                    .filter(|labour| may_come(requester, line, *labour))
                    .collect()
            };
            let lines = self.lines.iter();
            let waiting =
                lines.filter(|(requester, line)| line.next(&may_come(requester, line)).is_some());
            let next =
                waiting.min_by_key(|(_, line)| (line.occupied, line.last_turn, line.arrived));
            let (requester, line) = next?;
            let (requester, kinds) = (requester.clone(), may_come(requester, line));
            let line = self.lines.get_mut(&requester)?;
            while let Some(labour) = line.next(&kinds) {
                let Some((_, key)) = line.keys(labour).pop_front() else {
                    break;
                };
                if let Some(job) = self.jobs.remove(&key) {
                    self.turn += 1;
                    if line.last_turn == 0 {
                        line.since = Instant::now();
                    }
                    line.occupied += 1;
                    line.quick_occupied += usize::from(labour == Labour::Quick);
                    line.last_turn = self.turn;
                    let since = line.since;
                    *self.under_way(labour) += 1;
                    return Some(NextJob {
                        requester,
                        since,
                        key,
                        job,
                    });
                }
            }
            self.forget_if_idle(&requester);
        }
    }

    /// Makes room by giving up the newest prompt of the longest line, if that line is longer than the requester's would become.
    fn displaced_by(&mut self, requester: &str) -> Option<Key> {
        let own = self.lines.get(requester).map_or(0, Line::len);
        let longest = self.lines.iter().max_by_key(|(_, line)| line.len());
        let longest = longest?.0.clone();
        let line = self.lines.get_mut(&longest)?;
        while line.len() > own + 1 {
            let key = line.pop_newest()?;
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
        let is_idle = |line: &Line| line.len() == 0 && line.occupied == 0;
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
            line.quick_occupied -= usize::from(self.labour == Labour::Quick);
        }
        state.forget_if_idle(&self.requester);
        *state.under_way(self.labour) -= 1;
        // Another worker may wait for this.
        self.queue.added.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Key {
        Key::of(&[&number.to_le_bytes()])
    }

    fn add(queue: &JobQueue, requester: &str, number: u32) -> QueueEntry {
        queue.add(requester, key(number), Piece::TestTune, Labour::Quick)
    }

    fn filled(limit: usize, numbers: std::ops::Range<u32>) -> JobQueue {
        let queue = JobQueue::new(limit, 100);
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

    #[test]
    fn slow_prompts_leave_a_worker_to_the_quick_ones() {
        let queue = JobQueue::new(100, 2);
        for number in [0, 1, 9] {
            queue.add("patient", key(number), Piece::TestTune, Labour::Slow);
        }
        let slow: Vec<_> = (0..2).map(|_| queue.take().unwrap()).collect();
        let keys: Vec<_> = slow.iter().map(|(key, ..)| *key).collect();
        assert_eq!(keys, [key(0), key(1)]);
        // There is a third worker, and it does not take the third slow prompt.
        assert!(
            queue
                .lock()
                .next(&[Labour::Quick], |_, _, _| true)
                .is_none()
        );
        add(&queue, "patient", 20);
        assert_eq!(queue.take().unwrap().0, key(20));
        drop(slow);
        assert_eq!(queue.take().unwrap().0, key(9));
        let state = queue.lock();
        assert_eq!((state.quick, state.slow), (0, 0));
    }

    #[test]
    fn whoever_is_at_it_for_long_leaves_half_of_the_workers_while_others_want_prompts() {
        let queue = JobQueue::new(100, 2);
        for number in 0..4 {
            add(&queue, "greedy", number);
        }
        let may = |labour, now| {
            let state = queue.lock();
            queue.may_occupy_more("greedy", &state.lines["greedy"], labour, now)
        };
        let one = queue.take().unwrap();
        let begun = queue.lock().lines["greedy"].since;
        let (soon, later) = (begun + A_WHILE, begun + A_WHILE * 2);
        let note = |requester, now| queue.wanted.lock().unwrap().note(requester, now);
        note("modest", begun);
        note("greedy", begun);
        assert!(may(Labour::Quick, soon), "it has only begun");
        assert!(!may(Labour::Quick, later), "another has wanted one before");
        assert!(may(Labour::Slow, later), "that takes nobody's processor");
        assert!(may(Labour::Quick, begun + LATELY), "it is alone");
        note("modest", later);
        assert!(!may(Labour::Quick, begun + LATELY));
        drop(one);
        assert!(may(Labour::Quick, later), "half of them is one");
    }

    #[test]
    fn a_requester_is_at_it_for_long_only_without_a_rest() {
        let queue = filled(100, 0..3);
        // What it waits before its first turn does not count.
        let long_ago = Instant::now().checked_sub(2 * A_WHILE);
        let long_ago = long_ago.expect("the machine has run for longer");
        let began = |at| queue.lock().lines.get_mut("greedy").unwrap().since = at;
        began(long_ago);
        let (_, _, zeroth) = queue.take().unwrap();
        assert!(queue.lock().lines["greedy"].since > long_ago);
        began(long_ago);
        let (_, _, first) = queue.take().unwrap();
        assert!(first.is_long());
        drop(zeroth);
        add(&queue, "modest", 20);
        let (key_of_modest, _, modest) = queue.take().unwrap();
        assert!(key_of_modest == key(20) && !modest.is_long());
        drop(first);
        drop(queue.take().unwrap());
        // It had nothing to do for a moment.
        add(&queue, "greedy", 9);
        assert!(!queue.take().unwrap().2.is_long());
    }
}
