//! A plain loop: one thread that commits what is due with the store's own statements, then waits for more, and nothing around it.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use clarion::domain::request_key::AcceptedCall;
use clarion::store::sqlite::{self, calls, checkpoint::Checkpointer};
use rusqlite::Connection;
use supervisor::Supervisor;

use super::super::customer::BenchCustomer;
use crate::latency::Latencies;

/// As in the store's writer: from the beginning of a commit to that of the next.
const BREATH: Duration = Duration::from_millis(1);
/// And as many calls at most in one of them.
const LARGEST_BATCH: u64 = 256;
/// Frames in the log at which SQLite itself moves it into the file, where nobody says otherwise.
const SQLITES_OWN: i32 = 1000;

/// Who moves the log into the database file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogCare {
    /// The store, as in a server.
    Stores,
    /// SQLite: whoever commits and finds the log long enough.
    Sqlites,
}

#[derive(Debug)]
pub struct PlainLoop {
    connection: Connection,
    checkpointer: Option<Checkpointer>,
}

impl PlainLoop {
    pub fn start(path: &Path, care: LogCare) -> anyhow::Result<Self> {
        let mut connection = sqlite::connect(path)?;
        let checkpointer = match care {
            LogCare::Stores => {
                let reading = sqlite::connect(path)?;
                let checkpointer = Checkpointer::start(reading, path, &Supervisor::new())?;
                checkpointer.backlog().watch(&mut connection)?;
                Some(checkpointer)
            }
            LogCare::Sqlites => {
                connection.pragma_update(None, "wal_autocheckpoint", SQLITES_OWN)?;
                None
            }
        };
        Ok(Self {
            connection,
            checkpointer,
        })
    }

    /// Commits at that many calls a second for a while.
    pub fn commit(
        &self,
        customer: &BenchCustomer,
        rate: f64,
        time: Duration,
    ) -> anyhow::Result<Latencies> {
        let backlog = self.checkpointer.as_ref().map(Checkpointer::backlog);
        let (start, mut done, mut latencies) = (Instant::now(), 0, Latencies::default());
        while start.elapsed() < time {
            let due = super::super::load::count(rate, start.elapsed()) - done;
            let batch = batch(customer, due.min(LARGEST_BATCH));
            let began = Instant::now();
            if !batch.is_empty() {
                commit(&self.connection, &batch)?;
                if let Some(backlog) = &backlog {
                    backlog.relieve(&self.connection);
                }
                latencies.add(began.elapsed());
                done += batch.len() as u64;
            }
            thread::sleep(BREATH.saturating_sub(began.elapsed()));
        }
        Ok(latencies)
    }
}

/// Calls in the order of their callSids, as a server makes them.
pub fn batch(customer: &BenchCustomer, calls: u64) -> Vec<AcceptedCall> {
    let mut batch: Vec<_> = (0..calls).map(|_| customer.order()).collect();
    batch.sort_by(|a, b| a.call.sid.cmp(&b.call.sid));
    batch
}

pub fn commit(connection: &Connection, batch: &[AcceptedCall]) -> anyhow::Result<()> {
    let execute = |sql| -> anyhow::Result<()> {
        connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    };
    execute("BEGIN IMMEDIATE")?;
    for order in batch {
        let now = order.call.accepted_at.as_millisecond();
        calls::accept(connection, order, now)?;
    }
    execute("COMMIT")
}
