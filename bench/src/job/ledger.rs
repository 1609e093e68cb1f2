//! What is known of every job, by the number that is called: each number is called once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The moments of one job, as they are seen from outside of the server.
#[derive(Debug, Clone)]
pub struct Job {
    pub asked: Instant,
    /// The answer that says that it is durable.
    pub accepted: Option<Instant>,
    pub invited: Option<Instant>,
    pub hung_up: Option<Instant>,
    /// The message was heard to its end.
    pub heard: bool,
    pub told: Option<Instant>,
    /// Callbacks that said that somebody talked, and others.
    pub good: u32,
    pub bad: u32,
}

impl Job {
    pub fn is_done(&self) -> bool {
        self.heard && self.good == 1 && self.bad == 0 && self.accepted.is_some()
    }

    fn is_over(&self) -> bool {
        self.hung_up.is_some() && self.told.is_some() && self.accepted.is_some()
    }
}

#[derive(Debug, Default)]
pub struct Ledger(Mutex<HashMap<String, Job>>);

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job is asked for, at the moment at which it was due.
    pub fn open(&self, number: &str, asked: Instant) {
        let job = Job {
            asked,
            accepted: None,
            invited: None,
            hung_up: None,
            heard: false,
            told: None,
            good: 0,
            bad: 0,
        };
        self.lock().insert(number.to_owned(), job);
    }

    /// Something has happened to a job; what belongs to no job of this measurement is passed over.
    pub fn record(&self, number: &str, happened: impl FnOnce(&mut Job)) {
        if let Some(job) = self.lock().get_mut(number) {
            happened(job);
        }
    }

    /// Calls that have reached the telephone and are not hung up.
    pub fn under_way(&self) -> usize {
        let jobs = self.lock();
        let calls = jobs.values();
        calls
            .filter(|job| job.invited.is_some() && job.hung_up.is_none())
            .count()
    }

    pub fn all_done(&self) -> bool {
        self.lock().values().all(Job::is_over)
    }

    pub fn take(&self) -> Vec<Job> {
        std::mem::take(&mut *self.lock()).into_values().collect()
    }
}
