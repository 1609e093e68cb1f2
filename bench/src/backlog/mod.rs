//! What a long queue costs: every verb of the queue with and without a backlog, side by side on one database.
//!
//! Four queues are measured: an empty one, one with many calls that are due, one with many calls to a callee that is being called, and one with
//! many notices that are due tomorrow. The verbs are measured in rounds over all four databases, so that others disturb all alike; the medians of all rounds count.

pub mod filling;
mod table;
mod verbs;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use clarion::clock::Clock;
use clarion::domain::outcome::Outcome;
use jiff::SignedDuration;
use jiff::tz::TimeZone;

use self::table::{BacklogReport, BacklogRow};
use self::verbs::VerbTimes;
use crate::accepts::customer::BenchCustomer;
use crate::accepts::site::Site;
use crate::machine::Machine;
use crate::options::{DatabaseKind, DatabaseOptions, PlaceOptions};
use crate::queue_node::QueueNode;

#[derive(Debug, Args)]
pub struct BacklogOptions {
    /// Calls that are due in the long queue, and calls that expire together
    #[arg(long, default_value_t = 200_000)]
    calls: u64,
    /// Calls to one callee
    #[arg(long, default_value_t = 100_000)]
    to_one_callee: u64,
    /// How often every verb is measured on every queue in a round
    #[arg(long, default_value_t = 30)]
    times: usize,
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    #[command(flatten)]
    databases: DatabaseOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

pub async fn run(options: BacklogOptions) -> anyhow::Result<()> {
    let folder = options.place.folder("backlog")?;
    let mut report = BacklogReport {
        machine: Machine::look(&folder)?,
        day: Clock::new(TimeZone::system()).wall().date(),
        calls: options.calls,
        to_one_callee: options.to_one_callee,
        rounds: options.rounds,
        times: options.times,
        rows: Vec::new(),
    };
    println!("{}", report.machine);
    for kind in options.databases.kinds()? {
        report.rows.push(measure(&options, &kind, &folder).await?);
    }
    options.place.publish("backlog", &report.to_string())
}

async fn measure(
    options: &BacklogOptions,
    kind: &DatabaseKind,
    folder: &Path,
) -> anyhow::Result<BacklogRow> {
    let mut queues = Vec::new();
    for name in ["empty", "long", "callee", "tomorrow"] {
        queues.push(Queue::open(Site::new(kind, &folder.join(name))?).await?);
    }
    let measured = measure_queues(options, &queues).await;
    for queue in &queues {
        queue.node.store.close().await;
        queue.site.remove().await;
    }
    measured
}

async fn measure_queues(options: &BacklogOptions, queues: &[Queue]) -> anyhow::Result<BacklogRow> {
    let [_, long, callee, tomorrow] = queues else {
        anyhow::bail!("there are four queues");
    };
    let database = long.site.version().await?;
    println!("{database}");
    filling::fill(&long.site, &long.customer, options.calls, &filling::usual()).await?;
    let later = filling::tomorrow();
    filling::fill(&tomorrow.site, &tomorrow.customer, options.calls, &later).await?;
    let behind = callee.put_behind_one_callee(options.to_one_callee).await?;
    let mut times = vec![Vec::new(); queues.len()];
    for _ in 0..options.rounds {
        for (queue, times) in queues.iter().zip(&mut times) {
            times.push(verbs::measure(&queue.node, &queue.customer, options.times).await?);
        }
    }
    let times = times.iter().map(|rounds| VerbTimes::median(rounds));
    let times: Vec<_> = times.collect();
    let expiry = long.expire(options.calls).await?;
    Ok(BacklogRow {
        database,
        times,
        behind,
        expiry,
    })
}

struct Queue {
    site: Site,
    customer: BenchCustomer,
    node: QueueNode,
}

impl Queue {
    async fn open(site: Site) -> anyhow::Result<Self> {
        let clock = Clock::new(TimeZone::system());
        let customer = BenchCustomer::new(clock.clone());
        site.open(&customer).await?;
        let node = QueueNode::start(&site.database, &clock).await?;
        Ok(Self {
            site,
            customer,
            node,
        })
    }

    /// One callee is being called, many calls to it wait, and one call to somebody else was accepted last. How long it takes to claim that one:
    /// every call before it is looked at once.
    async fn put_behind_one_callee(&self, calls: u64) -> anyhow::Result<Duration> {
        let one = filling::to_one_callee();
        filling::fill(&self.site, &self.customer, calls, &one).await?;
        ensure!(self.node.claim(1).await?.len() == 1, "a call is due");
        let last = self.customer.order();
        let (sid, began) = (last.call.sid.clone(), Instant::now());
        self.node.store.accept_call(last).await?;
        loop {
            for claimed in self.node.claim(1).await? {
                if claimed.call.sid == sid {
                    self.node.end(claimed, Outcome::Talked).await?;
                    return Ok(began.elapsed());
                }
            }
        }
    }

    /// So many calls expire together: how long it takes to end them all.
    async fn expire(&self, calls: u64) -> anyhow::Result<Duration> {
        let over = filling::Filling {
            valid_for: SignedDuration::ZERO,
            ..filling::usual()
        };
        filling::fill(&self.site, &self.customer, calls, &over).await?;
        let began = Instant::now();
        let ended = self.node.end_overdue().await?;
        let time = began.elapsed();
        (ended == calls)
            .then_some(time)
            .with_context(|| format!("{ended} of {calls} calls expired"))
    }
}
