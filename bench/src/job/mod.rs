//! Whole jobs a second, as an application and a callee see them: POST → INVITE → answer → message → BYE → callback. The server is the real program
//! in a process of its own; application, telephone and receiver of callbacks are this one.
//!
//! The rate grows until it is not held any more. A job is done when its message was heard to the end and its callback said so.

pub mod application;
pub mod figures;
pub mod ledger;
pub mod receiver;
pub mod telephone;

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use clarion::clock::Clock;
use clarion::store::Database;
use jiff::tz::TimeZone;
use phone::test_phone::Script;

use self::application::LoadApplication;
use self::figures::{JobRow, table};
use self::ledger::Ledger;
use self::receiver::CallbackReceiver;
use self::telephone::BenchTelephone;
use crate::accepts::customer::BenchCustomer;
use crate::accepts::site::Site;
use crate::calls::engine::raise_file_limit;
use crate::console_browser::{ConsoleWatchers, OPEN_CONSOLE};
use crate::database_work::DatabaseMeter;
use crate::machine::Machine;
use crate::options::{DatabaseOptions, PlaceOptions};
use crate::server::{self, BenchServer};
use crate::usage::Usage;

/// What is not done so long after the last request will not be done.
const DRAIN: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);
/// Jobs before each measurement: the prompt is made, connections are open, statements are prepared.
const WARM_UP: u32 = 5;
pub const TEXT: &str = "您的订单已发货。";
pub const CONNECTIONS: usize = 64;

/// What every rate has in common.
#[derive(Debug, Args)]
pub struct JobLoad {
    /// How long jobs are asked for at each rate
    #[arg(long, default_value_t = 20)]
    pub seconds: u32,
    /// What is spoken
    #[arg(long, default_value = TEXT)]
    pub text: String,
    /// Kept-alive HTTPS connections
    #[arg(long, default_value_t = CONNECTIONS)]
    pub connections: usize,
    /// Servers that share a PostgreSQL; the requests come to all of them in turn
    #[arg(long, default_value_t = 1)]
    pub nodes: u16,
    /// Operators who have the console open meanwhile
    #[arg(long, default_value_t = 0)]
    pub watchers: u16,
}

#[derive(Debug, Args)]
pub struct JobOptions {
    #[command(flatten)]
    load: JobLoad,
    /// Jobs a second, growing; the first that is not held is the last
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "10,25,50,100,150,200,300,400,500,600,800"
    )]
    rates: Vec<u32>,
    #[command(flatten)]
    databases: DatabaseOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

pub async fn run(options: JobOptions) -> anyhow::Result<()> {
    raise_file_limit();
    let folder = options.place.folder("job")?;
    let text = measure_databases(&options, &folder).await?;
    options.place.publish("job", &text)
}

async fn measure_databases(options: &JobOptions, folder: &Path) -> anyhow::Result<String> {
    let machine = Machine::look(folder)?;
    println!("{machine}");
    let mut rows = Vec::new();
    for kind in options.databases.kinds()? {
        let site = Site::new(&kind, folder)?;
        let measured = measure(options, &site, &mut rows).await;
        site.remove().await;
        measured?;
    }
    Ok(table(options.load.seconds, &machine, &rows))
}

/// From the first rate to the first that is not held, on one database.
async fn measure(options: &JobOptions, site: &Site, rows: &mut Vec<JobRow>) -> anyhow::Result<()> {
    let database = site.version().await?;
    println!("{database}");
    let program = server::program()?;
    let customer = BenchCustomer::new(Clock::new(TimeZone::system()));
    site.open(&customer).await?;
    for rate in &options.rates {
        let row = at_rate(&program, &options.load, site, &customer, *rate).await?;
        println!("  {row}");
        let held = row.held(options.load.seconds);
        rows.push(row);
        if !held {
            break;
        }
    }
    Ok(())
}

/// One rate, on servers of its own: `program` is the `clarion` that is measured.
pub async fn at_rate(
    program: &Path,
    load: &JobLoad,
    site: &Site,
    customer: &BenchCustomer,
    rate: u32,
) -> anyhow::Result<JobRow> {
    let ledger = Arc::new(Ledger::default());
    let telephone = BenchTelephone::start(&ledger, |_| Script::answer()).await?;
    let receiver = CallbackReceiver::start(&ledger).await?;
    let meter = DatabaseMeter::of(site).await?;
    let work = match &meter {
        Some(meter) => Some(meter.so_far().await?),
        None => None,
    };
    let mut servers = start(program, site, &telephone, load).await?;
    let application = LoadApplication::connect(
        &servers,
        customer,
        &ledger,
        &load.text,
        &receiver.url(),
        load.connections,
    )
    .await?;

    for _ in 0..WARM_UP {
        application.ask().await?;
    }
    until_done(&ledger).await;
    ensure!(
        ledger.all_done(),
        "a single job does not come to its end: {:?}",
        ledger.take()
    );
    ledger.take();
    let watchers = ConsoleWatchers::open(&mut servers[0], site, load.watchers).await?;
    let processes = servers.iter().map(BenchServer::id);
    let processes: Vec<u32> = processes.collect::<Result<_, _>>()?;
    let before = Totals::of(&processes, &mut servers).await?;

    let (watching, placing) = tokio::join!(
        watch(&processes, &ledger, &application),
        application.ask_at(rate, load.seconds),
    );
    let (placed, limit) = (placing?, watching?);
    until_done(&ledger).await;
    let after = Totals::of(&processes, &mut servers).await?;
    watchers.close().await?;
    for server in servers {
        server.stop().await?;
    }
    let database_work = match meter.zip(work) {
        Some((meter, before)) => Some(meter.so_far().await?.since(before)),
        None => None,
    };
    Ok(JobRow {
        database: site.version().await?,
        rate,
        placing: placed,
        jobs: ledger.take(),
        cpu: after.cpu - before.cpu,
        database_work,
        idle_bytes: before.bytes,
        byte_limit: limit.0,
        peak_concurrency: limit.1,
        packets: after.packets - before.packets,
        late: after.late - before.late,
    })
}

/// Each in a folder of its own.
async fn start(
    program: &Path,
    site: &Site,
    telephone: &BenchTelephone,
    load: &JobLoad,
) -> anyhow::Result<Vec<BenchServer>> {
    let nodes = load.nodes;
    ensure!(
        nodes == 1 || matches!(site.database, Database::Postgres(_)),
        "several servers need PostgreSQL"
    );
    let ports = 10_000 / nodes.max(1);
    let mut servers = Vec::new();
    for node in 0..nodes.max(1) {
        let folder = match node {
            0 => site.folder.clone(),
            _ => site.folder.join(format!("node-{node}")),
        };
        std::fs::create_dir_all(&folder)?;
        let first = 10_000 + node * ports;
        let mut settings = settings(telephone, first..=first + ports - 1);
        if load.watchers > 0 {
            settings.push_str(OPEN_CONSOLE);
        }
        servers.push(BenchServer::start_with(program, &folder, &site.address(), &settings).await?);
    }
    Ok(servers)
}

/// What all servers have used and done so far.
struct Totals {
    cpu: f64,
    bytes: u64,
    packets: f64,
    late: f64,
}

impl Totals {
    async fn of(processes: &[u32], servers: &mut [BenchServer]) -> anyhow::Result<Self> {
        let mut totals = Self {
            cpu: 0.0,
            bytes: 0,
            packets: 0.0,
            late: 0.0,
        };
        for (process, server) in processes.iter().zip(servers) {
            let (used, metrics) = (Usage::of(*process)?, server.metrics().await?);
            totals.cpu += used.cpu;
            totals.bytes += used.bytes;
            totals.packets += metrics.value("clarion_media_packets_total");
            totals.late += metrics.value("clarion_media_packets_late_total");
        }
        Ok(totals)
    }
}

/// Nothing but the machine is to be the limit.
fn settings(telephone: &BenchTelephone, ports: RangeInclusive<u16>) -> String {
    let (first, last) = (ports.start(), ports.end());
    format!(
        "[callbacks]\nallowed_networks = ['127.0.0.0/8']\n[dispatch]\ncalls_at_once = 1000000\ncalls_per_second = 1000000\n\
         [media]\nbind = '127.0.0.1'\nports = '{first}-{last}'\n\
         [[trunk]]\nname = 'telephone'\nhost = '{}'\nbind = '127.0.0.1:0'\noptions_seconds = 0\nchannels = 1000000\ncalls_per_second = 1000000\nprefixes = ['']\n",
        telephone.address()
    )
}

/// The most memory that the servers held, and the most calls that were under way, while jobs are asked for.
async fn watch(
    servers: &[u32],
    ledger: &Ledger,
    application: &LoadApplication,
) -> anyhow::Result<(u64, usize)> {
    let (mut bytes, mut calls) = (0, 0);
    while !application.has_asked() {
        tokio::time::sleep(LOOK).await;
        let mut now = 0;
        for server in servers {
            now += Usage::of(*server)?.bytes;
        }
        bytes = bytes.max(now);
        calls = calls.max(ledger.under_way());
    }
    Ok((bytes, calls))
}

pub async fn until_done(ledger: &Ledger) {
    let end = Instant::now() + DRAIN;
    while !ledger.all_done() && Instant::now() < end {
        tokio::time::sleep(LOOK).await;
    }
}
