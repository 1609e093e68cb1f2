//! Noisy neighbours: an account does its worst while another places calls at a steady pace. Beside it, the same calls while a program that has nothing to do with
//! Clarion uses as much processor as the noise did. So what is left is what the accounts have in common: queues, places, locks, the disk.

pub mod burner;
pub mod nuisance;
mod table;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use clarion::clock::Clock;
use clarion::domain::account::{Account, AccountLimits};
use jiff::tz::TimeZone;
use phone::test_phone::Script;

use self::burner::Burn;
use self::nuisance::{NoiseKind, Nuisance};
use self::table::{NeighboursRow, Times, table};
use crate::accepts::customer::BenchCustomer;
use crate::accepts::site::Site;
use crate::calls::engine::raise_file_limit;
use crate::job::application::LoadApplication;
use crate::job::ledger::Ledger;
use crate::job::receiver::CallbackReceiver;
use crate::job::telephone::BenchTelephone;
use crate::job::{CONNECTIONS, until_done};
use crate::machine::Machine;
use crate::options::{DatabaseKind, DatabaseOptions, PlaceOptions};
use crate::others::InterferenceShare;
use crate::server::{self, BenchServer};

/// The noise is heard for so long before the calls begin.
const LEAD: Duration = Duration::from_secs(3);
/// A new text with every tenth call.
const TEXT: &str = "您的第{n}号订单已发货。";

#[derive(Debug, Args)]
pub struct NeighboursOptions {
    /// Calls of the quiet account in each measurement
    #[arg(long, default_value_t = 600)]
    calls: u32,
    /// How many of them a second
    #[arg(long, default_value_t = 20)]
    rate: u32,
    /// Measurements with noise, and as many without
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Only this noise, to find out what it is that disturbs [default: all of it]
    #[arg(long, value_delimiter = ',')]
    noise: Vec<NoiseKind>,
    #[command(flatten)]
    databases: DatabaseOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

/// What goes on beside the calls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    /// The other account.
    Noise,
    /// A program that uses so many cores.
    Burner(f64),
}

/// One measurement.
#[derive(Debug)]
struct Measured {
    times: Times,
    /// Cores that everything has used together.
    cores: f64,
    /// Share of the cores that others took.
    others: f64,
}

pub async fn run(options: NeighboursOptions) -> anyhow::Result<()> {
    ensure!(
        options.rate > 0 && options.calls > 0,
        "some calls are needed"
    );
    raise_file_limit();
    let folder = options.place.folder("neighbours")?;
    let machine = Machine::look(&folder)?;
    println!("{machine}");
    let mut rows = Vec::new();
    for kind in options.databases.kinds()? {
        rows.push(rounds(&options, &kind, &folder).await?);
    }
    let text = table(&options, &machine, &rows);
    options.place.publish("neighbours", &text)
}

async fn rounds(
    options: &NeighboursOptions,
    kind: &DatabaseKind,
    folder: &Path,
) -> anyhow::Result<NeighboursRow> {
    let database = Site::new(kind, folder)?.version().await?;
    println!("{database}");
    let measure = async |beside| {
        let measured = one(options, kind, folder, beside).await?;
        println!(
            "  {beside:?}: {} ({:.2} cores; others {:.0} %)",
            measured.times,
            measured.cores,
            measured.others * 100.0
        );
        anyhow::Ok(measured)
    };
    let calm = measure(Beside::Nothing).await?;
    // How much the noise costs; the first time is only for that.
    let mut noise = measure(Beside::Noise).await?.cores - calm.cores;
    let mut row = NeighboursRow {
        database,
        calm: calm.times,
        pairs: Vec::new(),
        noise: Vec::new(),
        others: 0.0,
    };
    for round in 0..options.rounds {
        let (mut noisy, mut control) = (None, None);
        // In alternating order: whatever drifts meets both alike.
        for turn in [round % 2, (round + 1) % 2] {
            if turn == 0 {
                let measured = measure(Beside::Noise).await?;
                noise = measured.cores - calm.cores;
                noisy = Some(measured);
            } else {
                control = Some(measure(Beside::Burner(noise.max(0.0))).await?);
            }
        }
        if let (Some(noisy), Some(control)) = (noisy, control) {
            row.others = row.others.max(noisy.others).max(control.others);
            row.noise.push(noisy.cores - calm.cores);
            row.pairs.push((control.times, noisy.times));
        }
    }
    Ok(row)
}

/// On a database and a server of its own: what one measurement leaves in the queue is not the next one's.
async fn one(
    options: &NeighboursOptions,
    kind: &DatabaseKind,
    folder: &Path,
    beside: Beside,
) -> anyhow::Result<Measured> {
    let site = Site::new(kind, folder)?;
    let measured = measure(options, &site, beside).await;
    site.remove().await;
    measured
}

async fn measure(
    options: &NeighboursOptions,
    site: &Site,
    beside: Beside,
) -> anyhow::Result<Measured> {
    let clock = Clock::new(TimeZone::system());
    let (quiet, noisy) = (BenchCustomer::new(clock.clone()), BenchCustomer::new(clock));
    site.open(&quiet).await?;
    // Within the limits that an account has by default.
    let limited = Account {
        limits: AccountLimits::default(),
        ..noisy.account()
    };
    site.add(&noisy, limited).await?;
    let intake_token = site.add_intake(nuisance::INTAKE, &noisy).await?;
    let ledger = Arc::new(Ledger::default());
    let script = |number: &str| nuisance::script(number).unwrap_or_else(Script::answer);
    let telephone = BenchTelephone::start(&ledger, script).await?;
    let receiver = CallbackReceiver::start(&ledger).await?;
    let program = server::program()?;
    let settings = settings(&telephone);
    let server =
        BenchServer::start_with(&program, &site.folder, &site.address(), &settings).await?;
    let servers = std::slice::from_ref(&server);
    let url = receiver.url();
    let application =
        LoadApplication::connect(servers, &quiet, &ledger, TEXT, &url, CONNECTIONS).await?;
    application.ask().await?;
    until_done(&ledger).await;
    ensure!(ledger.all_done(), "a single job does not come to its end");
    ledger.take();

    let other = match beside {
        Beside::Nothing => None,
        Beside::Noise => Some(Nuisance::start(
            &server,
            &noisy,
            &intake_token,
            &options.noise,
        )?),
        Beside::Burner(cores) => Some(Burn::start(cores)?),
    };
    tokio::time::sleep(LEAD).await;
    let ours = site.ours().await?;
    let (share, began, cpu) = (
        InterferenceShare::from_now(ours.clone()),
        Instant::now(),
        ours.cpu(),
    );
    application
        .ask_at(options.rate, options.calls.div_ceil(options.rate))
        .await?;
    let cores = (ours.cpu() - cpu) / began.elapsed().as_secs_f64();
    let others = share.so_far();
    until_done(&ledger).await;
    if let Some(mut other) = other {
        other.kill().await?;
    }
    server.kill().await?;
    let times = Times::of(&ledger.take());
    Ok(Measured {
        times,
        cores,
        others,
    })
}

/// The trunk carries both accounts: it is not what they are short of.
fn settings(telephone: &BenchTelephone) -> String {
    format!(
        "[callbacks]\nallowed_networks = ['127.0.0.0/8']\n[media]\nbind = '127.0.0.1'\nports = '10000-19999'\n\
         [[trunk]]\nname = 'telephone'\nhost = '{}'\nbind = '127.0.0.1:0'\noptions_seconds = 0\nchannels = 300\ncalls_per_second = 200\nprefixes = ['']\n",
        telephone.address()
    )
}
