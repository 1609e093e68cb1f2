//! Whether the process of a node goes on, stands still, or is gone. A simulated process does nothing to the world but by its store and its
//! trunks, and both ask here before and after everything that they do: a process whose every step waits for ever is a process that was
//! killed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug, Clone)]
pub struct Life(Arc<Mutex<State>>);

#[derive(Debug, Clone, Copy)]
enum State {
    Runs,
    StandsStill(Instant),
    Gone,
}

impl Life {
    pub fn begin() -> Self {
        Self(Arc::new(Mutex::new(State::Runs)))
    }

    pub fn kill(&self) {
        self.set(State::Gone);
    }

    /// Like SIGSTOP, and SIGCONT after this time.
    pub fn stand_still(&self, time: Duration) {
        if self.is_there() {
            self.set(State::StandsStill(Instant::now() + time));
        }
    }

    pub fn is_there(&self) -> bool {
        !matches!(self.state(), State::Gone)
    }

    /// Comes back when the process goes on.
    pub async fn goes_on(&self) {
        loop {
            match self.state() {
                State::Runs => return,
                State::StandsStill(until) if until <= Instant::now() => return,
                State::StandsStill(until) => tokio::time::sleep_until(until).await,
                State::Gone => std::future::pending().await,
            }
        }
    }

    fn state(&self) -> State {
        *self.0.lock().expect("nobody panics with it")
    }

    fn set(&self, state: State) {
        *self.0.lock().expect("nobody panics with it") = state;
    }
}
