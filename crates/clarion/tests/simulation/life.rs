//! Whether the process of a node goes on, stands still, or is gone. A simulated process does nothing to the world but by its store and its
//! trunks, and both ask here before and after everything that they do: a process whose every step waits for ever is a process that was
//! killed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Debug, Clone)]
pub struct Life {
    state: Arc<Mutex<State>>,
    over: Arc<Notify>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Runs,
    StandsStill(Instant),
    /// The next life begins after this time.
    Gone(Duration),
}

/// What befalls a process.
#[derive(Debug, Clone, Copy)]
pub enum Blow {
    /// Like SIGKILL; the next process is started after this time.
    Kill(Duration),
    /// Like SIGSTOP, and SIGCONT after this time.
    Stall(Duration),
}

impl Life {
    pub fn begin() -> Self {
        Self {
            state: Arc::new(Mutex::new(State::Runs)),
            over: Arc::default(),
        }
    }

    pub fn strike(&self, blow: Blow) {
        if !self.is_there() {
            return;
        }
        match blow {
            Blow::Stall(time) => self.set(State::StandsStill(Instant::now() + time)),
            Blow::Kill(pause) => {
                self.set(State::Gone(pause));
                self.over.notify_one();
            }
        }
    }

    pub fn is_there(&self) -> bool {
        !matches!(self.state(), State::Gone(_))
    }

    /// Comes back when the process goes on.
    pub async fn goes_on(&self) {
        loop {
            match self.state() {
                State::Runs => return,
                State::StandsStill(until) if until <= Instant::now() => return,
                State::StandsStill(until) => tokio::time::sleep_until(until).await,
                State::Gone(_) => std::future::pending().await,
            }
        }
    }

    /// Comes back when it is over. For how long nothing runs in its place.
    pub async fn over(&self) -> Duration {
        loop {
            if let State::Gone(pause) = self.state() {
                return pause;
            }
            self.over.notified().await;
        }
    }

    fn state(&self) -> State {
        *self.state.lock().expect("nobody panics with it")
    }

    fn set(&self, state: State) {
        *self.state.lock().expect("nobody panics with it") = state;
    }
}
