//! Servers that share a database and have nothing to do: how often they ask it, and what that costs.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::NodesOptions;
use crate::accepts::site::Site;
use crate::database_work::DatabaseMeter;
use crate::options::DatabaseKind;
use crate::server::{BenchServer, WAITING_TRUNK};
use crate::usage::Usage;

/// Until all know each other, and what they did to start has been told.
const SETTLE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub struct IdleFigures {
    pub nodes: usize,
    /// Of all nodes together.
    pub commits_a_second: f64,
    pub statements_a_second: Option<f64>,
    /// Milliseconds of processor a second.
    pub node_cpu: f64,
    pub database_cpu: f64,
}

pub async fn measure(
    options: &NodesOptions,
    kind: &DatabaseKind,
    folder: &Path,
    program: &Path,
) -> anyhow::Result<Option<IdleFigures>> {
    if options.idle_nodes == 0 {
        return Ok(None);
    }
    let site = Site::new(kind, &folder.join("idle"))?;
    let measured = once(options, &site, program).await;
    site.remove().await;
    measured.map(Some)
}

#[expect(clippy::cast_precision_loss, reason = "exact far beyond any run")]
async fn once(options: &NodesOptions, site: &Site, program: &Path) -> anyhow::Result<IdleFigures> {
    site.make().await?;
    let mut servers = Vec::new();
    for number in 0..options.idle_nodes {
        let folder = site.folder.join(format!("node-{number}"));
        std::fs::create_dir_all(&folder)?;
        let address = site.address();
        servers.push(BenchServer::start_with(program, &folder, &address, WAITING_TRUNK).await?);
    }
    tokio::time::sleep(SETTLE).await;
    let meter = DatabaseMeter::of(site).await?;
    let meter = meter.context("several nodes need a PostgreSQL")?;
    let (work, cpu) = (meter.so_far().await?, processor(&servers)?);
    tokio::time::sleep(Duration::from_secs(options.idle_seconds)).await;
    let work = meter.so_far().await?.since(work);
    let cpu = processor(&servers)? - cpu;
    for server in servers {
        server.stop().await?;
    }
    let a_second = |number: f64| number / options.idle_seconds as f64;
    Ok(IdleFigures {
        nodes: options.idle_nodes,
        commits_a_second: a_second(work.commits),
        statements_a_second: work.statements.map(a_second),
        node_cpu: a_second(cpu * 1e3),
        database_cpu: a_second(work.cpu * 1e3),
    })
}

/// Seconds of all servers so far.
fn processor(servers: &[BenchServer]) -> anyhow::Result<f64> {
    let mut seconds = 0.0;
    for server in servers {
        seconds += Usage::of(server.id()?)?.cpu;
    }
    Ok(seconds)
}
