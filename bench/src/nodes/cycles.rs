//! Claims and ends: each node claims calls of many customers and takes each through its steps, without telephones.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clarion::clock::Clock;
use clarion::store::Database;
use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use jiff::tz::TimeZone;

use super::NodesOptions;
use crate::accepts::customer::BenchCustomer;
use crate::accepts::site::Site;
use crate::backlog::filling;
use crate::database_work::DatabaseMeter;
use crate::latency::median;
use crate::options::DatabaseKind;
use crate::queue_node::QueueNode;
use crate::usage::Usage;

const CUSTOMERS: u64 = 12;
/// Calls of one lane in one claim, and calls that a node works at at once.
const OF_A_LANE: u32 = 4;
const AT_ONCE: usize = 16;
const PAUSE: Duration = Duration::from_millis(1);

/// What one number of nodes has done.
#[derive(Debug, Clone, Copy)]
pub struct CycleFigures {
    pub nodes: usize,
    pub calls_a_second: f64,
    /// Milliseconds a call, of the nodes and of the database.
    pub node_cpu: f64,
    pub database_cpu: f64,
    pub commits: f64,
    pub statements: Option<f64>,
}

impl CycleFigures {
    fn median(nodes: usize, rounds: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| median(rounds, figure);
        let has_statements = rounds.iter().all(|round| round.statements.is_some());
        Self {
            nodes,
            calls_a_second: of(|round| round.calls_a_second),
            node_cpu: of(|round| round.node_cpu),
            database_cpu: of(|round| round.database_cpu),
            commits: of(|round| round.commits),
            statements: has_statements.then(|| of(|round| round.statements.unwrap_or_default())),
        }
    }
}

pub async fn measure(
    options: &NodesOptions,
    kind: &DatabaseKind,
    folder: &Path,
) -> anyhow::Result<Vec<CycleFigures>> {
    let mut rounds = vec![Vec::new(); options.nodes.len()];
    for round in 0..options.rounds {
        for (nodes, figures) in options.nodes.iter().zip(&mut rounds) {
            let site = Site::new(kind, &folder.join(format!("cycles-{round}-{nodes}")))?;
            let measured = once(&site, *nodes, options.calls).await;
            site.remove().await;
            let measured = measured?;
            println!("  {measured:?}");
            figures.push(measured);
        }
    }
    let medians = options.nodes.iter().zip(&rounds);
    let measured = medians.filter(|(_, rounds)| !rounds.is_empty());
    Ok(measured
        .map(|(nodes, rounds)| CycleFigures::median(*nodes, rounds))
        .collect())
}

#[expect(clippy::cast_precision_loss, reason = "exact far beyond any run")]
async fn once(site: &Site, nodes: usize, calls: u64) -> anyhow::Result<CycleFigures> {
    let calls = calls / CUSTOMERS * CUSTOMERS;
    let clock = Clock::new(TimeZone::system());
    fill(site, &clock, calls).await?;
    let mut working = Vec::new();
    for _ in 0..nodes {
        working.push(QueueNode::start(&site.database, &clock).await?);
    }
    let meter = DatabaseMeter::of(site).await?;
    let meter = meter.context("several nodes need a PostgreSQL")?;
    let (work, usage) = (meter.so_far().await?, Usage::of_this_process()?);
    let (began, left) = (Instant::now(), Arc::new(AtomicU64::new(calls)));
    try_join_all(working.into_iter().map(|node| {
        let left = Arc::clone(&left);
        async move { tokio::spawn(drain(node, left)).await? }
    }))
    .await?;
    let time = began.elapsed();
    let node_cpu = Usage::of_this_process()?.cpu - usage.cpu;
    let work = meter.so_far().await?.since(work);
    let of_a_call = |number: f64| number / calls as f64;
    Ok(CycleFigures {
        nodes,
        calls_a_second: calls as f64 / time.as_secs_f64(),
        node_cpu: of_a_call(node_cpu * 1e3),
        database_cpu: of_a_call(work.cpu * 1e3),
        commits: of_a_call(work.commits),
        statements: work.statements.map(of_a_call),
    })
}

/// Each customer has an account and a part of the calls.
async fn fill(site: &Site, clock: &Clock, calls: u64) -> anyhow::Result<()> {
    let first = BenchCustomer::new(clock.clone());
    site.open(&first).await?;
    let mut customers = vec![first];
    let store = Database::open(&site.database, &supervisor::Supervisor::new()).await?;
    for _ in 1..CUSTOMERS {
        let customer = BenchCustomer::new(clock.clone());
        store.add_account(customer.account()).await?;
        store.add_application(customer.application()).await?;
        customers.push(customer);
    }
    store.close().await;
    for (place, customer) in (0..).zip(&customers) {
        // Every number is called once.
        customer.skip_orders(place * calls);
        filling::fill(site, customer, calls / CUSTOMERS, &filling::usual()).await?;
    }
    Ok(())
}

/// Until no call is left anywhere.
async fn drain(node: QueueNode, left: Arc<AtomicU64>) -> anyhow::Result<()> {
    while left.load(Ordering::Relaxed) > 0 {
        let claimed = node.claim(OF_A_LANE).await?;
        if claimed.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
        let ended = claimed.len() as u64;
        let calls = claimed.into_iter().map(|call| node.carry_out(call));
        let calls = stream::iter(calls).buffer_unordered(AT_ONCE);
        calls.try_collect::<()>().await?;
        left.fetch_sub(ended, Ordering::Relaxed);
    }
    node.store.close().await;
    Ok(())
}
