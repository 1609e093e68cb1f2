//! The raw group-commit rate: the store's own statements on the store's own connection, in batches, and nothing around them.

use std::time::{Duration, Instant};

use clarion::domain::call::NewCall;
use clarion::store::Database;
use clarion::store::postgres;
use clarion::store::sqlite::{self, calls, checkpoint::Checkpointer};
use rusqlite::Connection;

use super::customer::Customer;

/// Accepts in one commit. Larger batches gain little any more, and a server under load has about as many.
pub const BATCH: usize = 64;

#[derive(Debug, Clone, Copy)]
pub struct Raw {
    /// Durable accepts a second.
    pub rate: f64,
    pub worst: Duration,
}

pub async fn measure(
    database: &Database,
    customer: &Customer,
    time: Duration,
) -> anyhow::Result<Raw> {
    let mut commits = Commits::default();
    let end = Instant::now() + time;
    match database {
        Database::Sqlite(path) => {
            let connection = sqlite::connect(path)?;
            // The log is copied back beside the commits, as it is in the server.
            let checkpointer = Checkpointer::start(sqlite::connect(path)?);
            let backlog = checkpointer.backlog();
            while Instant::now() < end {
                let batch = batch(customer);
                let began = Instant::now();
                commit(&connection, &batch)?;
                backlog.relieve(&connection);
                commits.add(began.elapsed());
            }
        }
        Database::Postgres(url) => {
            let client = postgres::pool(url)?.get().await?;
            while Instant::now() < end {
                let batch = batch(customer);
                let began = Instant::now();
                postgres::accept::insert(&client, &batch).await?;
                commits.add(began.elapsed());
            }
        }
    }
    Ok(commits.raw())
}

fn batch(customer: &Customer) -> Vec<NewCall> {
    let mut batch: Vec<_> = (0..BATCH).map(|_| customer.call()).collect();
    batch.sort_by(|a, b| a.sid.cmp(&b.sid));
    batch
}

fn commit(connection: &Connection, batch: &[NewCall]) -> rusqlite::Result<()> {
    let execute = |sql| connection.prepare_cached(sql)?.execute([]).map(drop);
    execute("BEGIN IMMEDIATE")?;
    for call in batch {
        calls::accept(connection, call)?;
    }
    execute("COMMIT")
}

/// Adds up the time of the commits alone: making up the calls between them is not the database's work.
#[derive(Debug, Default)]
struct Commits {
    number: u32,
    together: Duration,
    worst: Duration,
}

impl Commits {
    fn add(&mut self, time: Duration) {
        self.number += 1;
        self.together += time;
        self.worst = self.worst.max(time);
    }

    fn raw(&self) -> Raw {
        let accepts = f64::from(self.number) * BATCH as f64;
        Raw {
            rate: accepts / self.together.as_secs_f64(),
            worst: self.worst,
        }
    }
}
