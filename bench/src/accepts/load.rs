//! Loads a server over kept-alive HTTPS connections: as fast as it goes, or at a given pace.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clarion::client::{Client, Connection, Signature};
use futures_util::future::{try_join, try_join_all};
use tokio::sync::Semaphore;

use super::customer::BenchCustomer;
use crate::latency::{Seconds, Spread};
use crate::others::{InterferenceMonitor, Ours};
use crate::server::BenchServer;

/// Not measured: connections, caches and statements settle.
const WARM_UP: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_secs(1);
/// How often the pace is kept. Timers of the asynchronous runtime are coarser than that, so a thread of its own does it.
const TICK: Duration = Duration::from_micros(500);

const BATCH_SUM: &str = "clarion_store_batch_size_sum";
const BATCH_COUNT: &str = "clarion_store_batch_size_count";
const WORST_COMMIT: &str = "clarion_store_longest_commit_seconds";
const LOG_BYTES: &str = "clarion_store_wal_bytes";

#[derive(Debug)]
pub struct Load<'a> {
    customer: &'a BenchCustomer,
    ours: &'a Ours,
    connections: usize,
}

#[derive(Debug, Clone, Copy)]
pub struct LoadOutcome {
    /// Durable accepts a second.
    pub rate: f64,
    pub latency: Spread,
    /// Seconds in which nobody disturbed the machine; rate and latency are those of them alone, if there are any.
    pub quiet: usize,
    /// Accepts in one commit, on average.
    pub batch: f64,
    pub worst_commit: Duration,
    /// Bytes of SQLite's write-ahead log at most; 0 for PostgreSQL.
    pub longest_log: f64,
}

impl<'a> Load<'a> {
    pub fn new(customer: &'a BenchCustomer, ours: &'a Ours, connections: usize) -> Self {
        Self {
            customer,
            ours,
            connections,
        }
    }

    /// Every connection asks again as soon as it is answered. Latency counts from sending.
    pub async fn as_fast_as_it_goes(
        &self,
        server: &mut BenchServer,
        seconds: u64,
    ) -> anyhow::Result<LoadOutcome> {
        let askers = self.askers(&server.client).await?;
        let start = Instant::now() + WARM_UP;
        let end = start + Duration::from_secs(seconds);
        let work = askers.into_iter().map(|mut asker| async move {
            let mut answers = Seconds::new(start, seconds);
            loop {
                let sent = Instant::now();
                if sent >= end {
                    return Ok(answers);
                }
                asker.ask().await?;
                answers.add(Instant::now(), sent.elapsed());
            }
        });
        let others = InterferenceMonitor::over(self.ours, start, seconds);
        let answers = Seconds::new(start, seconds);
        observe(server, work, answers, others).await
    }

    /// A request is due every so often, whether or not the ones before it are answered. Latency counts from when it was due, so that
    /// a stall is seen by everyone whom it would have kept waiting.
    pub async fn paced(
        &self,
        server: &mut BenchServer,
        rate: f64,
        seconds: u64,
    ) -> anyhow::Result<LoadOutcome> {
        let askers = self.askers(&server.client).await?;
        let time = Duration::from_secs(seconds);
        let pace = Pace::start(rate, WARM_UP + time, askers.len());
        let start = pace.start + WARM_UP;
        let work = askers.into_iter().map(|mut asker| {
            let pace = &pace;
            async move {
                let mut answers = Seconds::new(start, seconds);
                while let Some(due) = pace.next_due().await {
                    asker.ask().await?;
                    answers.add(due, due.elapsed());
                }
                Ok(answers)
            }
        });
        let others = InterferenceMonitor::over(self.ours, start, seconds);
        let answers = Seconds::new(start, seconds);
        observe(server, work, answers, others).await
    }

    async fn askers(&self, client: &Client) -> anyhow::Result<Vec<Asker<'a>>> {
        let signature = self.customer.credentials.sign(&self.customer.clock.wall());
        let connect = |_| async {
            Ok(Asker {
                connection: client.connect().await?,
                customer: self.customer,
                signature: signature.clone(),
            })
        };
        try_join_all((0..self.connections).map(connect)).await
    }
}

/// One kept-alive connection of the customer.
struct Asker<'a> {
    connection: Connection,
    customer: &'a BenchCustomer,
    signature: Signature,
}

impl Asker<'_> {
    async fn ask(&mut self) -> anyhow::Result<()> {
        let body = Some(self.customer.body());
        let answer = self
            .connection
            .operation(
                &self.customer.credentials,
                &self.signature,
                "Calls/LandingCalls",
                "application/json",
                body,
            )
            .await?;
        ensure!(answer.contains("\"000000\""), "not accepted: {answer}");
        Ok(())
    }
}

/// Lets one request go for each moment at which one is due.
struct Pace {
    start: Instant,
    rate: f64,
    requests: u64,
    due: Arc<Semaphore>,
    taken: AtomicU64,
}

impl Pace {
    fn start(rate: f64, time: Duration, askers: usize) -> Self {
        let (start, due) = (Instant::now(), Arc::new(Semaphore::new(0)));
        let requests = count(rate, time);
        let release = Arc::clone(&due);
        thread::spawn(move || {
            let mut released = 0;
            while released < requests {
                let now = count(rate, start.elapsed()).min(requests);
                release.add_permits(usize::try_from(now - released).unwrap_or_default());
                released = now;
                thread::sleep(TICK);
            }
            // Everybody comes once more to hear that there is nothing left.
            release.add_permits(askers);
        });
        Self {
            start,
            rate,
            requests,
            due,
            taken: AtomicU64::new(0),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "exact far beyond any run")]
    async fn next_due(&self) -> Option<Instant> {
        self.due.acquire().await.ok()?.forget();
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        (number < self.requests)
            .then(|| self.start + Duration::from_secs_f64(number as f64 / self.rate))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate and a time are positive and small"
)]
pub fn count(rate: f64, time: Duration) -> u64 {
    (rate * time.as_secs_f64()) as u64
}

/// Does the work, and watches the server's own figures meanwhile.
#[expect(clippy::cast_precision_loss, reason = "exact far beyond any run")]
async fn observe(
    server: &mut BenchServer,
    work: impl Iterator<Item = impl Future<Output = anyhow::Result<Seconds>>>,
    mut answers: Seconds,
    others: InterferenceMonitor,
) -> anyhow::Result<LoadOutcome> {
    let working = Cell::new(true);
    let load = async {
        let done = try_join_all(work).await;
        working.set(false);
        done
    };
    let watch = async {
        let (mut worst_commit, mut longest_log) = (0_f64, 0_f64);
        while working.get() {
            tokio::time::sleep(LOOK).await;
            let metrics = server.metrics().await?;
            worst_commit = worst_commit.max(metrics.value(WORST_COMMIT));
            longest_log = longest_log.max(metrics.value(LOG_BYTES));
        }
        let metrics = server.metrics().await?;
        let batch = metrics.value(BATCH_SUM) / metrics.value(BATCH_COUNT);
        Ok((batch, worst_commit, longest_log))
    };
    let (parts, (batch, worst_commit, longest_log)) = try_join(load, watch).await?;
    for part in parts {
        answers.append(part);
    }
    let answers = answers.judge(others);
    Ok(LoadOutcome {
        rate: answers.latencies.len() as f64 / answers.seconds as f64,
        latency: answers.latencies.spread(),
        quiet: answers.quiet,
        batch,
        worst_commit: Duration::from_secs_f64(worst_commit),
        longest_log,
    })
}
