//! Calls a second and playing calls at once, beside what SIPp itself and the bare socket can do in the same run.

pub mod engine;
pub mod peers;
pub mod table;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use phone::call::MediaConfig;

use self::engine::{EngineLoad, EngineReport};
use self::peers::{Callee, Sink, call_by_sipp};
use self::table::{CallsRow, describe, table};
use crate::machine::Machine;
use crate::options::PlaceOptions;

/// Of a call of ten seconds, and of one of a second.
pub const LONG: u32 = 500;
pub const SHORT: u32 = 50;

#[derive(Debug, Args)]
pub struct CallsOptions {
    /// How long calls are placed at each rate
    #[arg(long, default_value_t = 15)]
    seconds: u32,
    /// Rates for calls of one second
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "250,500,1000,1500,2000,2500"
    )]
    short_rates: Vec<u32>,
    /// Rates for calls of ten seconds
    #[arg(long, value_delimiter = ',', default_value = "10,100,300,450,600")]
    long_rates: Vec<u32>,
    /// Rates for SIPp as the caller
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "500,750,1000,1250,1500,2000"
    )]
    sipp_rates: Vec<u32>,
    /// How many SIPp processes answer
    #[arg(long, default_value_t = 2)]
    callees: usize,
    #[command(flatten)]
    place: PlaceOptions,
}

/// Ports that are not handed out to everybody, so that thousands of calls find theirs.
pub fn media() -> MediaConfig {
    MediaConfig::new(std::net::Ipv4Addr::LOCALHOST.into(), 10_000..=32_000)
}

pub async fn run(options: CallsOptions) -> anyhow::Result<()> {
    let folder = options.place.folder("calls")?;
    let text = measure(&options, &folder).await?;
    options.place.publish("calls", &text)
}

async fn measure(options: &CallsOptions, folder: &Path) -> anyhow::Result<String> {
    let machine = Machine::look(folder)?;
    println!("{machine}");
    let sink = Sink::start()?;
    let raw = sink.raw_rate(Duration::from_secs(options.seconds.min(3).into()))?;
    println!(
        "one thread sends {raw:.0} packets a second over loopback: {:.0} calls",
        raw / 50.0
    );
    let sipp = sipp_alone(options, folder, &sink)?;
    let program = std::env::current_exe()?;
    let mut rows = Vec::new();
    for (frames, rates) in [(SHORT, &options.short_rates), (LONG, &options.long_rates)] {
        for rate in rates {
            let load = EngineLoad {
                rate: *rate,
                seconds: options.seconds,
                frames,
            };
            let row = at_rate(&program, load, options.callees, folder, &sink).await?;
            println!("{}", describe(&row));
            let held = row.held();
            rows.push(row);
            if !held {
                break;
            }
        }
    }
    Ok(table(options, &machine, raw, sipp, &rows))
}

/// The highest rate that SIPp as the caller held against SIPp as the callee.
fn sipp_alone(options: &CallsOptions, folder: &Path, sink: &Sink) -> anyhow::Result<u32> {
    let mut best = 0;
    for rate in &options.sipp_rates {
        let callee = Callee::start(folder, sink.address)?;
        let held = call_by_sipp(folder, callee.address, *rate, options.seconds.min(8))?;
        println!(
            "SIPp calls SIPp {rate} times a second: {}",
            if held { "held" } else { "failed" }
        );
        if !held {
            break;
        }
        best = *rate;
    }
    Ok(best)
}

/// One rate: `program` is the `clarion-bench` whose engine is measured.
pub async fn at_rate(
    program: &Path,
    load: EngineLoad,
    callees: usize,
    folder: &Path,
    sink: &Sink,
) -> anyhow::Result<CallsRow> {
    let callees: Vec<Callee> = (0..callees)
        .map(|_| Callee::start(folder, sink.address))
        .collect::<Result<_, _>>()?;
    let before = sink.packets();
    let mut command = tokio::process::Command::new(program);
    command.arg("engine");
    for callee in &callees {
        command.arg("--callee").arg(callee.address.to_string());
    }
    command
        .arg("--rate")
        .arg(load.rate.to_string())
        .arg("--seconds")
        .arg(load.seconds.to_string())
        .arg("--frames")
        .arg(load.frames.to_string())
        .kill_on_drop(true);
    let limit = Duration::from_secs(u64::from(load.seconds) + 120);
    let output = tokio::time::timeout(limit, command.output())
        .await
        .context("the engine did not come to an end")??;
    ensure!(
        output.status.success(),
        "the engine failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: EngineReport = serde_json::from_slice(&output.stdout)?;
    // The last packets may still lie in the socket's buffer, on a busy machine for a while. Packets that are lost cost this time once.
    for _ in 0..250 {
        if sink.packets() - before >= report.packets {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(CallsRow {
        load,
        report,
        arrived: sink.packets() - before,
    })
}
