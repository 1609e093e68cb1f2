//! A day with millions of lines: closing it, downloading it and asking for it, beside the databases' own exports of the same rows in the
//! same run, and the most memory that each took.

pub mod day;
mod measured;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use clarion::client::Connection;
use clarion::clock::Clock;
use clarion::domain::account::AccountChange;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use supervisor::Supervisor;
use tokio::task::JoinSet;

use self::day::{WatchedRun, peak_memory, watch};
use self::measured::Measured;
use crate::accepts::customer::BenchCustomer;
use crate::accepts::site::Site;
use crate::machine::{self, Machine};
use crate::options::{DatabaseOptions, PlaceOptions};
use crate::server::{self, BenchServer};

/// A line with its index takes about this much in a database, and less in a file.
const LINE_BYTES: u64 = 900;
/// A line of the file has more bytes than this.
const SHORTEST_LINE: u64 = 150;

#[derive(Debug, Args)]
pub struct BillsOptions {
    /// Lines of the day
    #[arg(long, default_value_t = 10_000_000)]
    lines: u64,
    /// Seconds of asking for the bill
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Kept-alive HTTPS connections that ask
    #[arg(long, default_value_t = 32)]
    connections: usize,
    #[command(flatten)]
    databases: DatabaseOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

pub async fn run(options: BillsOptions) -> anyhow::Result<()> {
    let folder = options.place.folder("bills")?;
    let text = measure_all(&options, &folder).await?;
    options.place.publish("bills", &text)
}

async fn measure_all(options: &BillsOptions, folder: &Path) -> anyhow::Result<String> {
    let clock = Clock::new(TimeZone::system());
    let machine = Machine::look(folder)?;
    let mut text = format!(
        "{}, Clarion {}. {machine}. One day of one application with {} lines. The database's own export: the better of a run before closing and \
         one after it; its memory is that of the program, `sqlite3` or `psql`. Memory at the highest point, and how much more that is than without \
         the lines (closing) and before the download (server).\n\n\
         | database | its own export (`sqlite3 -csv`, `COPY`) | its memory | closing the day, synced | lines/s | against the export | memory of closing | download over HTTPS | memory of the server | bills asked for a second |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
        clock.wall().date(),
        env!("CARGO_PKG_VERSION"),
        options.lines,
    );
    let mut bars = "\n| bar | database | measured | |\n|---|---|---:|---|\n".to_owned();
    for kind in options.databases.kinds()? {
        let site = Site::new(&kind, folder)?;
        machine::check_space(folder, options.lines * LINE_BYTES)?;
        let measured = measure(options, &site, &clock).await;
        site.remove().await;
        let measured = measured?;
        writeln!(text, "{}", measured.row(options.lines))?;
        bars.push_str(&measured.bars());
    }
    Ok(text + &bars)
}

async fn measure(options: &BillsOptions, site: &Site, clock: &Clock) -> anyhow::Result<Measured> {
    let version = site.version().await?;
    let customer = BenchCustomer::new(clock.clone());
    site.open(&customer).await?;
    permit(site, &customer).await?;
    let day = clock.wall().date().yesterday()?;
    println!("{version}: {} lines …", options.lines);
    day::fill(&site.database, &customer, day, options.lines).await?;
    let empty = close(site, day.yesterday()?)?;
    let first = export(site, &customer, day)?;
    let closed = close(site, day)?;
    let second = export(site, &customer, day)?;
    let exported = if second.time < first.time {
        second
    } else {
        first
    };

    let mut server = BenchServer::start(&site.folder, &site.address()).await?;
    let before = peak_memory(server.id()?).unwrap_or_default();
    let (time, bytes) = download(&server, &customer, clock).await?;
    let peak = peak_memory(server.id()?).unwrap_or_default();
    ensure!(
        bytes > options.lines * SHORTEST_LINE,
        "the download has {bytes} bytes: too few for {} lines",
        options.lines
    );
    let asked = ask(options, &server, &customer, clock).await?;
    server.metrics().await?;
    server.stop().await?;
    Ok(Measured {
        database: version,
        exported,
        empty,
        closed,
        download: (time, bytes),
        server: (before, peak),
        asked,
    })
}

/// To a file, as closing writes one; it is not synced.
fn export(site: &Site, customer: &BenchCustomer, day: Date) -> anyhow::Result<WatchedRun> {
    let out = site.folder.join("export.csv");
    let exported = day::export(&site.database, customer, day, &out);
    std::fs::remove_file(out)?;
    exported
}

async fn permit(site: &Site, customer: &BenchCustomer) -> anyhow::Result<()> {
    let store = site.database.open(&Supervisor::new()).await?;
    let change = AccountChange {
        bill_download: Some(true),
        ..AccountChange::default()
    };
    store
        .change_account(&customer.credentials.sid, change)
        .await?;
    store.close().await;
    Ok(())
}

/// The program that an operator would run, in a process of its own.
fn close(site: &Site, day: Date) -> anyhow::Result<WatchedRun> {
    let mut command = site.command(&server::program()?)?;
    command.args(["bill", "close", "--day", &day.to_string(), "--json"]);
    watch(&mut command)
}

async fn request(
    connection: &mut Connection,
    customer: &BenchCustomer,
    clock: &Clock,
) -> anyhow::Result<String> {
    let signature = customer.credentials.sign(&clock.wall());
    let body = format!("{{\"appId\":\"{}\",\"date\":\"day\"}}", customer.app);
    let answer = connection
        .operation(
            &customer.credentials,
            &signature,
            "BillRecords",
            "application/json",
            Some(body),
        )
        .await?;
    ensure!(answer.contains("\"000000\""), "no bill: {answer}");
    Ok(answer)
}

async fn download(
    server: &BenchServer,
    customer: &BenchCustomer,
    clock: &Clock,
) -> anyhow::Result<(Duration, u64)> {
    let mut connection = server.client.connect().await?;
    let answer = request(&mut connection, customer, clock).await?;
    let answer: serde_json::Value = serde_json::from_str(&answer)?;
    let text = |name: &str| answer[name].as_str().context("the answer is whole");
    let url = text("downurl")?;
    let path = url.splitn(4, '/').nth(3).context("an address")?;
    let target = format!("/{path}?token={}", text("token")?);
    let began = Instant::now();
    let (status, bytes) = connection.download(&target).await?;
    ensure!(status == 200, "the download answers {status}");
    Ok((began.elapsed(), bytes))
}

/// Bills asked for in a second, with the file ready.
async fn ask(
    options: &BillsOptions,
    server: &BenchServer,
    customer: &BenchCustomer,
    clock: &Clock,
) -> anyhow::Result<f64> {
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut askers = JoinSet::new();
    for _ in 0..options.connections {
        let mut connection = server.client.connect().await?;
        let (clock, customer) = (clock.clone(), customer.as_asker());
        askers.spawn(async move {
            let mut asked = 0u32;
            while Instant::now() < end {
                request(&mut connection, &customer, &clock).await?;
                asked += 1;
            }
            anyhow::Ok(asked)
        });
    }
    let mut asked = 0;
    while let Some(one) = askers.join_next().await {
        asked += one??;
    }
    #[expect(clippy::cast_precision_loss, reason = "for reading")]
    Ok(f64::from(asked) / options.seconds as f64)
}
