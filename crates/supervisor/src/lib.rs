//! Every long-lived task and thread of a process has a name and belongs to one supervisor.
//!
//! A task that panics or ends unasked is started anew after a pause where that is safe (`restart`, `restart_thread`). Where it is not
//! (`require_thread`, `require`), the supervisor has failed: whoever waits for `failed` stops the process, so that the service manager
//! or another node takes over. Readiness and metrics read `tasks`.
//!
//! A task shows that it is alive by `Watch::beat`. One that has not done so within its patience counts as down although it still exists.
//!
//! It deliberately knows nothing of telephony, of metrics or of HTTP.

mod panics;

use std::future::Future;
#[cfg(debug_assertions)]
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(debug_assertions)]
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
#[cfg(debug_assertions)]
use std::task::Poll;
use std::time::{Duration, Instant};
use std::{io, thread};

#[cfg(debug_assertions)]
use tokio::sync::Notify;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

pub use panics::{contain, panic_message};
use panics::{describe, describe_thread};

/// The pause before the first restart; it doubles with every further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A task that ran for this long is healthy again: its next pause is the first one.
const STEADY: Duration = Duration::from_secs(60);

/// Cloning it makes another handle to the same supervisor.
#[derive(Debug, Clone)]
pub struct Supervisor {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    tasks: Mutex<Vec<Arc<Task>>>,
    /// Places other than the beats of tasks where a test may ask for a panic.
    #[cfg(debug_assertions)]
    panic_points: Mutex<Vec<PanicPoint>>,
    stopping: watch::Sender<bool>,
    /// The first failure that cannot be mended by a restart.
    failure: watch::Sender<Option<TaskFailure>>,
}

/// Why the process cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFailure {
    pub task: String,
    pub reason: String,
}

impl std::fmt::Display for TaskFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the task `{}` {}", self.task, self.reason)
    }
}

#[derive(Debug)]
struct Task {
    name: String,
    up: AtomicBool,
    started: Instant,
    /// Milliseconds after `started`.
    last_beat: AtomicU64,
    patience: Option<Duration>,
    released: AtomicBool,
    panic_point: PanicPoint,
}

impl Task {
    fn new(name: &str, patience: Option<Duration>) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            up: AtomicBool::new(true),
            started: Instant::now(),
            last_beat: AtomicU64::new(0),
            patience,
            released: AtomicBool::new(false),
            panic_point: PanicPoint::new(name),
        })
    }

    fn heartbeat(&self) {
        let age = self.started.elapsed().as_millis();
        let age = u64::try_from(age).unwrap_or(u64::MAX);
        self.last_beat.store(age, Ordering::Relaxed);
    }

    fn silence(&self) -> Duration {
        let last = Duration::from_millis(self.last_beat.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(last)
    }

    fn is_up(&self) -> bool {
        let stalled = self
            .patience
            .is_some_and(|patience| self.silence() > patience);
        self.up.load(Ordering::Relaxed) && !stalled
    }

    fn set_up(&self, up: bool) {
        if up {
            self.heartbeat();
        }
        self.up.store(up, Ordering::Relaxed);
    }

    /// Notes that a task is down, and how long it stays so.
    fn down_for(&self, began: Instant, pause: Duration, reason: &str) -> Duration {
        self.set_up(false);
        let pause = if began.elapsed() >= STEADY {
            FIRST_PAUSE
        } else {
            pause.min(LONGEST_PAUSE)
        };
        tracing::error!(task = self.name, reason, restart_in = ?pause, "a task is down; it is started again");
        pause
    }
}

/// A place where a test may ask for a panic. In a release build it is nothing.
#[derive(Debug, Clone)]
pub struct PanicPoint {
    #[cfg(debug_assertions)]
    request: Arc<PanicRequest>,
}

#[cfg(debug_assertions)]
#[derive(Debug)]
struct PanicRequest {
    name: String,
    is_made: AtomicBool,
    /// It need not wait for the next beat.
    at_once: Notify,
}

impl PanicPoint {
    /// One that nobody can ask to panic, for parts that are tested alone.
    #[cfg_attr(
        not(debug_assertions),
        expect(unused_variables, reason = "the name is for tests")
    )]
    pub fn new(name: &str) -> Self {
        Self {
            #[cfg(debug_assertions)]
            request: Arc::new(PanicRequest {
                name: name.to_owned(),
                is_made: AtomicBool::new(false),
                at_once: Notify::new(),
            }),
        }
    }

    pub fn reach(&self) {
        #[cfg(debug_assertions)]
        assert!(
            !self.request.is_made.swap(false, Ordering::Relaxed),
            "`{}` was asked to panic",
            self.request.name
        );
    }

    /// Runs a task, which a test may ask for a panic wherever it waits.
    async fn around<R>(&self, run: impl Future<Output = R>) -> R {
        #[cfg(debug_assertions)]
        let mut run = pin!(run);
        #[cfg(debug_assertions)]
        let mut asked = pin!(async {
            loop {
                self.request.at_once.notified().await;
                self.reach();
            }
        });
        #[cfg(debug_assertions)]
        let run = poll_fn(|context| {
            let _: Poll<()> = asked.as_mut().poll(context);
            run.as_mut().poll(context)
        });
        run.await
    }
}

/// A task's own handle to its entry.
#[derive(Debug, Clone)]
pub struct Watch {
    task: Arc<Task>,
}

impl Watch {
    /// For code that is used without a supervisor, such as a part that is tested alone.
    pub fn unwatched(name: &str) -> Self {
        Self {
            task: Task::new(name, None),
        }
    }

    /// The task is alive: it has come round its loop once more. In a debug build a test may ask for a panic here.
    pub fn heartbeat(&self) {
        self.task.heartbeat();
        self.task.panic_point.reach();
    }

    /// The end that follows is intended: the owner of a thread has let go of it.
    pub fn release(&self) {
        self.task.released.store(true, Ordering::Relaxed);
    }
}

/// One task as readiness and metrics see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskState {
    pub name: String,
    pub up: bool,
}

/// Ends its task when it is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the task"]
pub struct TaskGuard {
    supervisor: Supervisor,
    task: Arc<Task>,
    running: JoinHandle<()>,
    detached: bool,
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        if self.detached {
            return;
        }
        // First, so that an end in this very moment counts as intended.
        self.task.released.store(true, Ordering::Relaxed);
        self.running.abort();
        self.supervisor.forget(&self.task);
    }
}

impl TaskGuard {
    /// Waits until the task has ended of its own accord. It must have been asked to, and the supervisor must have been told to stop:
    /// otherwise the task is started anew.
    pub async fn ended(mut self) {
        // It was watched while it ran; what it died of has been logged.
        let _ = (&mut self.running).await;
    }

    /// The task ends by itself, after `Watch::release`: it has something to do at its end that must not be cut off.
    pub fn detach(mut self) {
        self.detached = true;
    }
}

impl Default for Supervisor {
    fn default() -> Self {
        Self::new()
    }
}

impl Supervisor {
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                tasks: Mutex::default(),
                #[cfg(debug_assertions)]
                panic_points: Mutex::default(),
                stopping: watch::Sender::new(false),
                failure: watch::Sender::new(None),
            }),
        }
    }

    /// A task that may be started anew: whatever it held is recovered by those who own it. `patience` is how long it may go without a
    /// beat.
    pub fn restart<F, R>(
        &self,
        name: &str,
        patience: Option<Duration>,
        mut start: impl FnMut(Watch) -> F + Send + 'static,
    ) -> TaskGuard
    where
        F: Future<Output = R> + Send + 'static,
        R: Send + 'static,
    {
        let task = self.enter(name, patience);
        let (supervisor, watched) = (self.clone(), Arc::clone(&task));
        let looping = tokio::spawn(async move {
            let mut pause = FIRST_PAUSE;
            loop {
                let began = Instant::now();
                watched.set_up(true);
                let run = start(Watch {
                    task: Arc::clone(&watched),
                });
                let running = Arc::clone(&watched);
                let run = async move { running.panic_point.around(run).await };
                let run = AbortOnDrop(tokio::spawn(run));
                let ended = run.join().await;
                if supervisor.is_expected(&watched) {
                    supervisor.forget(&watched);
                    return;
                }
                pause = watched.down_for(began, pause, &describe(ended));
                if supervisor.is_stopped_within(pause).await {
                    supervisor.forget(&watched);
                    return;
                }
                pause *= 2;
            }
        });
        TaskGuard {
            supervisor: self.clone(),
            task,
            running: looping,
            detached: false,
        }
    }

    /// A task without which the process cannot go on.
    pub fn require<F, R>(
        &self,
        name: &str,
        patience: Option<Duration>,
        run: impl FnOnce(Watch) -> F + Send + 'static,
    ) -> TaskGuard
    where
        F: Future<Output = R> + Send + 'static,
        R: Send + 'static,
    {
        let task = self.enter(name, patience);
        let (supervisor, watched) = (self.clone(), Arc::clone(&task));
        let watching = tokio::spawn(async move {
            let run = run(Watch {
                task: Arc::clone(&watched),
            });
            let running = Arc::clone(&watched);
            let run = async move { running.panic_point.around(run).await };
            let run = AbortOnDrop(tokio::spawn(run));
            let ended = run.join().await;
            supervisor.ended_for_good(&watched, &describe(ended));
        });
        TaskGuard {
            supervisor: self.clone(),
            task,
            running: watching,
            detached: false,
        }
    }

    /// A thread without which the process cannot go on. It ends in good order only after `Watch::release`, or when everything stops.
    pub fn require_thread(
        &self,
        name: &str,
        patience: Option<Duration>,
        run: impl FnOnce(Watch) + Send + 'static,
    ) -> io::Result<thread::JoinHandle<()>> {
        let task = self.enter(name, patience);
        let supervisor = self.clone();
        let entered = Arc::clone(&task);
        let started = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let watch = Watch {
                task: Arc::clone(&task),
            };
            let ended = catch_unwind(AssertUnwindSafe(|| run(watch)));
            supervisor.ended_for_good(&task, &describe_thread(ended));
        });
        if started.is_err() {
            self.forget(&entered);
        }
        started
    }

    /// A thread that may be started anew.
    pub fn restart_thread(
        &self,
        name: &str,
        patience: Option<Duration>,
        mut run: impl FnMut(Watch) + Send + 'static,
    ) -> io::Result<thread::JoinHandle<()>> {
        let task = self.enter(name, patience);
        let supervisor = self.clone();
        let entered = Arc::clone(&task);
        let started = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut pause = FIRST_PAUSE;
            loop {
                let began = Instant::now();
                task.set_up(true);
                let watch = Watch {
                    task: Arc::clone(&task),
                };
                let ended = catch_unwind(AssertUnwindSafe(|| run(watch)));
                if supervisor.is_expected(&task) {
                    supervisor.forget(&task);
                    return;
                }
                pause = task.down_for(began, pause, &describe_thread(ended));
                thread::sleep(pause);
                pause *= 2;
            }
        });
        if started.is_err() {
            self.forget(&entered);
        }
        started
    }

    /// From now on tasks end because they are asked to.
    pub fn stop(&self) {
        self.shared.stopping.send_replace(true);
    }

    /// All tasks, in the order of their names; several of one name are one, up if all of them are.
    pub fn tasks(&self) -> Vec<TaskState> {
        let mut states: Vec<TaskState> = Vec::new();
        for task in self.lock().iter() {
            match states.iter_mut().find(|state| state.name == task.name) {
                Some(state) => state.up &= task.is_up(),
                None => states.push(TaskState {
                    name: task.name.clone(),
                    up: task.is_up(),
                }),
            }
        }
        states.sort_by(|a, b| a.name.cmp(&b.name));
        states
    }

    /// The names of tasks that are down.
    pub fn down(&self) -> Vec<String> {
        let down = self.tasks().into_iter().filter(|state| !state.up);
        down.map(|state| state.name).collect()
    }

    /// Comes back when a task has ended without which the process cannot go on.
    pub async fn failed(&self) -> TaskFailure {
        let mut failure = self.shared.failure.subscribe();
        let failed = failure.wait_for(Option::is_some).await;
        match failed.as_deref() {
            Ok(Some(failure)) => failure.clone(),
            // The sender lives as long as `self`.
            _ => std::future::pending().await,
        }
    }

    /// A place within a task where a test may ask for a panic.
    pub fn panic_point(&self, name: &str) -> PanicPoint {
        let point = PanicPoint::new(name);
        #[cfg(debug_assertions)]
        lock(&self.shared.panic_points).push(point.clone());
        point
    }

    /// Makes a task panic at its next beat, or whoever comes next to a panic point of that name. False if there is none.
    #[cfg(debug_assertions)]
    pub fn request_panic(&self, name: &str) -> bool {
        self.request(name, |_| {})
    }

    /// Makes a task panic where it waits at this moment; a thread, at its next beat. False if there is none.
    #[cfg(debug_assertions)]
    pub fn request_panic_at_once(&self, name: &str) -> bool {
        self.request(name, |request| request.at_once.notify_one())
    }

    #[cfg(debug_assertions)]
    fn request(&self, name: &str, hurry: impl Fn(&PanicRequest)) -> bool {
        let of_tasks = self
            .lock()
            .iter()
            .map(|task| task.panic_point.clone())
            .collect::<Vec<_>>();
        let others = lock(&self.shared.panic_points).clone();
        let mut found = false;
        for point in of_tasks.iter().chain(&others) {
            if point.request.name == name {
                point.request.is_made.store(true, Ordering::Relaxed);
                hurry(&point.request);
                found = true;
            }
        }
        found
    }

    fn enter(&self, name: &str, patience: Option<Duration>) -> Arc<Task> {
        let task = Task::new(name, patience);
        self.lock().push(Arc::clone(&task));
        task
    }

    fn forget(&self, task: &Arc<Task>) {
        self.lock().retain(|known| !Arc::ptr_eq(known, task));
    }

    fn is_expected(&self, task: &Task) -> bool {
        task.released.load(Ordering::Relaxed) || *self.shared.stopping.borrow()
    }

    /// Whoever stops waits for no pause.
    async fn is_stopped_within(&self, pause: Duration) -> bool {
        let mut stopping = self.shared.stopping.subscribe();
        let stopped = stopping.wait_for(|stopping| *stopping);
        tokio::time::timeout(pause, stopped).await.is_ok()
    }

    fn ended_for_good(&self, task: &Arc<Task>, reason: &str) {
        if self.is_expected(task) {
            self.forget(task);
            return;
        }
        task.set_up(false);
        tracing::error!(
            task = task.name,
            reason,
            "a task is down without which this process cannot go on"
        );
        let failure = TaskFailure {
            task: task.name.clone(),
            reason: reason.to_owned(),
        };
        self.shared.failure.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(failure);
            is_first
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Task>>> {
        lock(&self.shared.tasks)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A spawned task that ends with whoever waits for it.
struct AbortOnDrop<R>(JoinHandle<R>);

impl<R> AbortOnDrop<R> {
    async fn join(mut self) -> Result<R, JoinError> {
        (&mut self.0).await
    }
}

impl<R> Drop for AbortOnDrop<R> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
