//! Durable accepts a second over HTTPS, beside the raw group-commit rate of the same disk in the same run, with an empty database and
//! with a long history.
//!
//! The machine is often shared, so nothing is measured once: rounds alternate between the empty and the full database and between raw
//! and HTTPS, rounds that others have disturbed are measured again, and the medians of the quietest count.

pub mod commits;
pub mod customer;
pub mod figures;
pub mod history;
pub mod load;
pub mod progress;
mod raw;
pub mod site;
mod table;

use std::path::Path;
use std::time::Duration;

use clap::Args;
use clarion::clock::Clock;
use jiff::tz::TimeZone;

use self::commits::{CommitComparison, CommitRounds};
use self::customer::BenchCustomer;
use self::figures::Figures;
use self::load::Load;
use self::site::Site;
use self::table::{AcceptsReport, AcceptsRow};
use crate::machine::Machine;
use crate::options::{DatabaseKind, DatabaseOptions, PlaceOptions};
use crate::others::{self, Ours};
use crate::server::BenchServer;

/// A round that others have disturbed is measured again, up to so many times in all.
const ATTEMPTS: usize = 3;

#[derive(Debug, Args)]
pub struct AcceptsOptions {
    /// Ended calls in the long history
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// Seconds of each single measurement
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// How often everything is measured; the medians count
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of the long measurement that looks for stalls; 0 leaves it out
    #[arg(long, default_value_t = 60)]
    stall_seconds: u64,
    /// How often the commits of a server at half load are compared with those of a plain loop, on SQLite; fewer than six rounds are
    /// inconclusive, 0 leaves it out
    #[arg(long, default_value_t = 9)]
    commit_rounds: usize,
    /// Accepts a second in that comparison [default: half of what was measured; needed with --rounds 0]
    #[arg(long)]
    commit_rate: Option<f64>,
    /// Seconds to wait before a measurement while others use the machine, at most
    #[arg(long, default_value_t = 120)]
    patience: u64,
    /// Kept-alive HTTPS connections, each with one request under way
    #[arg(long, default_value_t = 256)]
    connections: usize,
    #[command(flatten)]
    databases: DatabaseOptions,
    #[command(flatten)]
    place: PlaceOptions,
    /// Leave the databases in place
    #[arg(long)]
    keep: bool,
}

pub async fn run(options: AcceptsOptions) -> anyhow::Result<()> {
    let mut folder = options.place.folder("accepts")?;
    if options.keep {
        folder.keep();
    }
    let report = measure_databases(&options, &folder).await?;
    options.place.publish("accepts", &report.to_string())
}

async fn measure_databases(
    options: &AcceptsOptions,
    folder: &Path,
) -> anyhow::Result<AcceptsReport> {
    let clock = Clock::new(TimeZone::system());
    let mut report = AcceptsReport {
        machine: Machine::look(folder)?,
        day: clock.wall().date(),
        seconds: options.seconds,
        rounds: options.rounds,
        connections: options.connections,
        rows: Vec::new(),
    };
    println!("{}", report.machine);
    let bench = Bench {
        options,
        customer: BenchCustomer::new(clock),
    };
    for kind in options.databases.kinds()? {
        report
            .rows
            .extend(bench.empty_and_full(&kind, folder).await?);
    }
    Ok(report)
}

struct Bench<'a> {
    options: &'a AcceptsOptions,
    customer: BenchCustomer,
}

impl Bench<'_> {
    /// Both sites of one kind of database, measured in turn.
    async fn empty_and_full(
        &self,
        kind: &DatabaseKind,
        folder: &Path,
    ) -> anyhow::Result<Vec<AcceptsRow>> {
        let empty = Site::new(kind, &folder.join("empty"))?;
        let full = Site::new(kind, &folder.join("full"))?;
        let result = self.measure(&empty, &full).await;
        if !self.options.keep {
            empty.remove().await;
            full.remove().await;
        }
        result
    }

    async fn measure(&self, empty: &Site, full: &Site) -> anyhow::Result<Vec<AcceptsRow>> {
        println!("\n{}", empty.version().await?);
        empty.open(&self.customer).await?;
        full.open(&self.customer).await?;
        full.check_space(history::BYTES_PER_CALL * self.options.rows)
            .await?;
        history::fill(full, &self.customer, self.options.rows).await?;
        let ours = empty.ours().await?;
        let sites = [(empty, 0), (full, self.options.rows)];
        let mut rows = Vec::new();
        for (site, history) in sites {
            rows.push(AcceptsRow {
                database: site.version().await?,
                history,
                rounds: Vec::new(),
                long: None,
                commits: None,
            });
        }
        // Without patience nothing is measured again either.
        let attempts = if self.options.patience == 0 {
            1
        } else {
            ATTEMPTS
        };
        for _ in 0..self.options.rounds * attempts {
            for ((site, history), row) in sites.iter().zip(&mut rows) {
                let figures = self.round(site, &ours).await?;
                println!("  {history} ended calls: {figures}");
                row.rounds.push(figures);
            }
            if rows
                .iter()
                .all(|row| row.quiet_rounds(self.options.seconds) >= self.options.rounds)
            {
                break;
            }
        }
        for row in &mut rows {
            row.keep_quietest(self.options.rounds);
        }
        if self.options.stall_seconds > 0 {
            let (site, row) = (full, &mut rows[1]);
            row.long = Some(self.long_load(site, &ours).await?);
        }
        let rate = self.options.commit_rate.unwrap_or(rows[0].rate() / 2.0);
        rows[0].commits = self.commits(empty, rate, &ours).await?;
        Ok(rows)
    }

    async fn commits(
        &self,
        site: &Site,
        rate: f64,
        ours: &Ours,
    ) -> anyhow::Result<Option<CommitComparison>> {
        if site.sqlite_file().is_err() || self.options.commit_rounds == 0 {
            return Ok(None);
        }
        let rounds = CommitRounds {
            site,
            customer: &self.customer,
            ours,
            connections: self.options.connections,
            rate,
            seconds: self.options.seconds,
        };
        Ok(Some(rounds.measure(self.options.commit_rounds).await?))
    }

    async fn round(&self, site: &Site, ours: &Ours) -> anyhow::Result<Figures> {
        let seconds = self.options.seconds;
        site.reset().await?;
        others::wait_until_quiet(ours, Duration::from_secs(self.options.patience)).await;
        let raw = raw::measure(&site.database, &self.customer, ours, seconds).await?;

        site.reset().await?;
        let mut server = BenchServer::start(&site.folder, &site.address()).await?;
        let load = Load::new(&self.customer, ours, self.options.connections);
        let at_full_load = load.as_fast_as_it_goes(&mut server, seconds).await?;
        server.stop().await?;

        site.reset().await?;
        let mut server = BenchServer::start(&site.folder, &site.address()).await?;
        let load = Load::new(&self.customer, ours, self.options.connections);
        let at_half_load = load
            .paced(&mut server, at_full_load.rate / 2.0, seconds)
            .await?;
        server.stop().await?;
        Ok(Figures {
            raw,
            at_full_load,
            at_half_load,
        })
    }

    /// Long enough to meet checkpoints of every kind.
    async fn long_load(&self, site: &Site, ours: &Ours) -> anyhow::Result<load::LoadOutcome> {
        site.reset().await?;
        let mut server = BenchServer::start(&site.folder, &site.address()).await?;
        let load = Load::new(&self.customer, ours, self.options.connections);
        let seconds = self.options.stall_seconds;
        let outcome = load.as_fast_as_it_goes(&mut server, seconds).await?;
        server.stop().await?;
        println!("  {seconds} s of full load: {outcome}");
        Ok(outcome)
    }
}
