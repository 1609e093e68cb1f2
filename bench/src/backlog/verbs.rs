//! How long each verb of the queue takes, one after the other.

use std::time::{Duration, Instant};

use anyhow::Context;
use clarion::domain::outcome::Outcome;

use crate::accepts::customer::BenchCustomer;
use crate::latency::Latencies;
use crate::latency::{median, millis};
use crate::queue_node::QueueNode;

/// In the order of the figures.
pub const VERBS: [&str; 7] = [
    "accept",
    "look for lanes",
    "claim (with the look)",
    "end",
    "look for overdue calls",
    "heartbeat",
    "count the queue",
];

/// The place of the last.
const COUNTING: usize = VERBS.len() - 1;

/// Medians in milliseconds, in the order of `VERBS`.
#[derive(Debug, Clone, Copy)]
pub struct VerbTimes(pub [f64; VERBS.len()]);

impl VerbTimes {
    pub fn median(rounds: &[Self]) -> Self {
        Self(std::array::from_fn(|verb| {
            median(rounds, |round| round.0[verb])
        }))
    }
}

pub async fn measure(
    node: &QueueNode,
    customer: &BenchCustomer,
    times: usize,
) -> anyhow::Result<VerbTimes> {
    let mut latencies: [Latencies; COUNTING] = Default::default();
    for _ in 0..times {
        for (latencies, time) in latencies.iter_mut().zip(one_of_each(node, customer).await?) {
            latencies.add(time);
        }
    }
    let mut medians = [0.0; VERBS.len()];
    for (median, latencies) in medians.iter_mut().zip(latencies) {
        *median = millis(latencies.spread().p50);
    }
    // Once, and last: on a busy machine, whoever has worked for long has to wait next.
    let began = Instant::now();
    node.store.queue_depth().await?;
    medians[COUNTING] = millis(began.elapsed());
    Ok(VerbTimes(medians))
}

/// Every verb once, but for counting. The queue is as long afterwards as before.
async fn one_of_each(
    node: &QueueNode,
    customer: &BenchCustomer,
) -> anyhow::Result<[Duration; COUNTING]> {
    let mut times = [Duration::ZERO; COUNTING];
    let mut began = Instant::now();
    let mut place = 0;
    let mut record = || {
        times[place] = began.elapsed();
        place += 1;
        began = Instant::now();
    };
    node.store.accept_call(customer.order()).await?;
    record();
    node.store.queued_lanes().await?;
    record();
    let claimed = node.claim(1).await?.pop().context("a call is due")?;
    record();
    node.end(claimed, Outcome::Talked).await?;
    record();
    node.store.claim_overdue(&node.id, 1000).await?;
    record();
    node.heartbeat().await?;
    record();
    Ok(times)
}
