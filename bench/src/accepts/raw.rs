//! The raw group-commit rate: the store's own statements on the store's own connection, in batches, and nothing around them.

use std::time::{Duration, Instant};

use clarion::store::Database;
use clarion::store::postgres;
use clarion::store::sqlite::{self, checkpoint::Checkpointer};
use supervisor::Supervisor;

use super::commits::{batch, commit};
use super::customer::BenchCustomer;
use crate::latency::{Judged, Seconds};
use crate::others::{InterferenceMonitor, Ours};

/// Accepts in one commit. Larger batches gain little any more, and a server under load has about as many.
pub const BATCH: u64 = 64;

#[derive(Debug, Clone, Copy)]
pub struct Raw {
    /// Durable accepts a second.
    pub rate: f64,
    pub worst: Duration,
    pub quiet: usize,
}

impl Raw {
    /// The time of the commits alone counts: making up the calls between them is not the database's work.
    #[expect(clippy::cast_precision_loss, reason = "exact far beyond any run")]
    fn new(commits: Judged) -> Self {
        let accepts = (commits.latencies.len() as u64 * BATCH) as f64;
        Self {
            rate: accepts / commits.latencies.sum().as_secs_f64(),
            quiet: commits.quiet,
            worst: commits.latencies.spread().max,
        }
    }
}

pub async fn measure(
    database: &Database,
    customer: &BenchCustomer,
    ours: &Ours,
    seconds: u64,
) -> anyhow::Result<Raw> {
    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    let watch = InterferenceMonitor::over(ours, start, seconds);
    let mut commits = Seconds::new(start, seconds);
    match database {
        Database::Sqlite(path) => {
            let mut connection = sqlite::connect(path)?;
            // The log is copied back beside the commits, as it is in the server.
            let checkpointer =
                Checkpointer::start(sqlite::connect(path)?, path, &Supervisor::new())?;
            let backlog = checkpointer.backlog();
            backlog.watch(&mut connection)?;
            while Instant::now() < end {
                let batch = batch(customer, BATCH);
                let began = Instant::now();
                commit(&connection, &batch)?;
                backlog.relieve(&connection);
                commits.add(began, began.elapsed());
            }
        }
        Database::Postgres(config) => {
            let client = postgres::connect(config).await?;
            while Instant::now() < end {
                let batch = batch(customer, BATCH);
                let began = Instant::now();
                postgres::accept::insert(&client, &batch).await?;
                commits.add(began, began.elapsed());
            }
        }
    }
    Ok(Raw::new(commits.judge(watch)))
}
