//! Several nodes on one PostgreSQL: how many calls they claim and end a second, and how often they ask while there is nothing to do.

mod cycles;
mod idle;
mod table;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use clarion::clock::Clock;
use jiff::tz::TimeZone;

use self::table::NodesReport;
use crate::machine::Machine;
use crate::options::{DatabaseKind, DatabaseOptions, PlaceOptions};
use crate::server;

#[derive(Debug, Args)]
pub struct NodesOptions {
    /// How many nodes claim from one queue
    #[arg(long, value_delimiter = ',', default_value = "1,2,3")]
    nodes: Vec<usize>,
    /// Calls that they claim and end in each measurement
    #[arg(long, default_value_t = 6000)]
    calls: u64,
    /// How often each number of nodes is measured; the medians count. 0 leaves it out
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Servers that have nothing to do; 0 leaves them out
    #[arg(long, default_value_t = 10)]
    idle_nodes: usize,
    #[arg(long, default_value_t = 20)]
    idle_seconds: u64,
    /// A `clarion` of another version for the servers that have nothing to do
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    #[command(flatten)]
    databases: DatabaseOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

pub async fn run(options: NodesOptions) -> anyhow::Result<()> {
    let folder = options.place.folder("nodes")?;
    let kinds = options.databases.kinds()?;
    let kind = kinds
        .iter()
        .find(|kind| matches!(kind, DatabaseKind::Postgres(_)))
        .context("several nodes need a PostgreSQL: run this under scripts/with-postgres")?;
    ensure!(
        !options.nodes.contains(&0),
        "there is no measuring without a node"
    );
    let machine = Machine::look(&folder)?;
    println!("{machine}");
    let program = match &options.program {
        Some(program) => program.clone(),
        None => server::program()?,
    };
    let report = NodesReport {
        day: Clock::new(TimeZone::system()).wall().date(),
        machine,
        calls: options.calls,
        rounds: options.rounds,
        cycles: cycles::measure(&options, kind, &folder).await?,
        idle: idle::measure(&options, kind, &folder, &program).await?,
    };
    options.place.publish("nodes", &report.to_string())
}
