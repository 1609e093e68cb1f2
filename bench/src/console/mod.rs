//! What the console costs: each of its pages with a long past behind it, and the processor of a job while operators look on.

mod filling;
mod pages;
mod table;

use std::path::Path;

use clap::Args;
use clarion::clock::Clock;
use jiff::tz::TimeZone;

use self::pages::PageTimes;
use self::table::{ConsoleReport, WatchedJobs};
use crate::accepts::customer::BenchCustomer;
use crate::accepts::history;
use crate::accepts::site::Site;
use crate::at_once;
use crate::calls::engine::raise_file_limit;
use crate::console_browser::{ConsoleBrowser, OPEN_CONSOLE};
use crate::job::{self, JobLoad};
use crate::machine::Machine;
use crate::options::{DatabaseKind, DatabaseOptions, PlaceOptions};
use crate::ratio::FigurePair;
use crate::server::{self, BenchServer, WAITING_TRUNK};

#[derive(Debug, Args)]
pub struct ConsoleOptions {
    /// Ended calls behind the pages; 0 leaves the pages out
    #[arg(long, default_value_t = 10_000_000)]
    calls: u64,
    /// Accounts beside the one that placed them
    #[arg(long, default_value_t = 1_000)]
    accounts: u32,
    /// How often each page is asked for
    #[arg(long, default_value_t = 20)]
    times: u32,
    /// Operators who look on while jobs are done
    #[arg(long, default_value_t = 5)]
    watchers: u16,
    /// Jobs a second
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// How long in each round
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Rounds, each with and without operators who look on; 0 leaves them out
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Do jobs with and without operators at the same time, on a server each
    #[arg(long)]
    together: bool,
    #[command(flatten)]
    databases: DatabaseOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

pub async fn run(options: ConsoleOptions) -> anyhow::Result<()> {
    raise_file_limit();
    let folder = options.place.folder("console")?;
    let mut report = ConsoleReport {
        machine: Machine::look(&folder)?,
        day: Clock::new(TimeZone::system()).wall().date(),
        calls: options.calls,
        accounts: options.accounts,
        times: options.times,
        watchers: options.watchers,
        rate: options.rate,
        seconds: options.seconds,
        pages: Vec::new(),
        together: options.together,
        jobs: Vec::new(),
    };
    println!("{}", report.machine);
    for kind in options.databases.kinds()? {
        let database = Site::new(&kind, &folder)?.version().await?;
        println!("{database}");
        if options.rounds > 0 {
            let pairs = watched_jobs(&options, &kind, &folder).await?;
            report.jobs.push(WatchedJobs {
                database: database.clone(),
                pairs,
            });
        }
        if options.calls > 0 {
            let pages = with_a_past(&options, &kind, &folder).await?;
            report.pages.push((database, pages));
        }
    }
    options.place.publish("console", &report.to_string())
}

/// Every page, on a database with a long past.
async fn with_a_past(
    options: &ConsoleOptions,
    kind: &DatabaseKind,
    folder: &Path,
) -> anyhow::Result<Vec<PageTimes>> {
    let site = Site::new(kind, folder)?;
    let measured = measure_pages(options, &site).await;
    site.remove().await;
    measured
}

async fn measure_pages(options: &ConsoleOptions, site: &Site) -> anyhow::Result<Vec<PageTimes>> {
    let customer = BenchCustomer::new(Clock::new(TimeZone::system()));
    site.open(&customer).await?;
    site.check_space(options.calls * history::BYTES_PER_CALL)
        .await?;
    let past = filling::fill(site, &customer, options.calls, options.accounts).await?;
    ConsoleBrowser::add_operator(site)?;
    let settings = format!("{OPEN_CONSOLE}{WAITING_TRUNK}");
    let (program, address) = (server::program()?, site.address());
    let mut server = BenchServer::start_with(&program, &site.folder, &address, &settings).await?;
    let console = server.console().await?;
    let mut browser = ConsoleBrowser::sign_in(&console).await?;
    let measured = pages::measure(&mut browser, &customer, &past, options.times).await;
    server.kill().await?;
    for page in measured.iter().flatten() {
        println!("  {}: {} ms", page.name, page.times);
    }
    measured
}

/// The processor of a job without and with operators who look on, in milliseconds.
async fn watched_jobs(
    options: &ConsoleOptions,
    kind: &DatabaseKind,
    folder: &Path,
) -> anyhow::Result<Vec<FigurePair>> {
    let mut pairs = Vec::new();
    for round in 0..options.rounds as usize {
        let [base, new] = if options.together {
            at_once::both(|turn| job_cpu(options, kind, folder, turn))?
        } else {
            let mut cpu = [0.0; 2];
            for turn in [round % 2, (round + 1) % 2] {
                cpu[turn] = job_cpu(options, kind, folder, turn).await?;
            }
            cpu
        };
        pairs.push(FigurePair { base, new });
    }
    Ok(pairs)
}

/// Nobody looks on in turn 0.
async fn job_cpu(
    options: &ConsoleOptions,
    kind: &DatabaseKind,
    folder: &Path,
    turn: usize,
) -> anyhow::Result<f64> {
    let load = JobLoad {
        seconds: options.seconds,
        text: job::TEXT.to_owned(),
        connections: job::CONNECTIONS,
        nodes: 1,
        watchers: if turn == 0 { 0 } else { options.watchers },
    };
    let folder = folder.join(turn.to_string());
    std::fs::create_dir_all(&folder)?;
    let site = Site::new(kind, &folder)?;
    let customer = BenchCustomer::new(Clock::new(TimeZone::system()));
    site.open(&customer).await?;
    let row = job::at_rate(&server::program()?, &load, &site, &customer, options.rate).await;
    site.remove().await;
    let row = row?;
    println!("  {} watchers: {row}", load.watchers);
    Ok(row.cpu_millis())
}
