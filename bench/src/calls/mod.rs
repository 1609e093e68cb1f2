//! Calls a second and playing calls at once, beside what SIPp itself and the bare socket can do in the same run.

pub mod engine;
mod peers;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use clarion::clock::Clock;
use jiff::tz::TimeZone;
use phone::call::MediaConfig;

use self::engine::Told;
use self::peers::{Callee, Sink, call_by_sipp};
use crate::machine::Machine;
use crate::options::PlaceOptions;

/// Of a call of ten seconds, and of one of a second.
const LONG: u32 = 500;
const SHORT: u32 = 50;

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

/// What was seen at one rate.
#[derive(Debug)]
struct CallsRow {
    rate: u32,
    frames: u32,
    told: Told,
    arrived: u64,
}

impl CallsRow {
    /// All calls talked, every packet arrived, and the placing kept its pace.
    fn held(&self, seconds: u32) -> bool {
        self.told.talked == self.told.placed
            && self.arrived == self.told.packets
            && self.told.packets == self.told.placed * u64::from(self.frames)
            && self.told.placing_seconds < f64::from(seconds) * 1.05 + 0.5
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    fn cpu_millis(&self) -> f64 {
        self.told.cpu_seconds * 1e3 / self.told.placed.max(1) as f64
    }

    fn kilobytes_a_call(&self) -> u64 {
        self.told.peak_bytes.saturating_sub(self.told.idle_bytes)
            / self.told.peak_calls.max(1)
            / 1000
    }

    /// The worst packet of a call: of all calls, so many of a thousand are better.
    fn lateness_millis(&self, of_thousand: usize) -> f64 {
        let worst = &self.told.worst_micros;
        let place = (worst.len() * of_thousand / 1000).min(worst.len().saturating_sub(1));
        worst
            .get(place)
            .map_or(0.0, |micros| f64::from(*micros) / 1e3)
    }
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
    let raw = sink.raw_rate(Duration::from_secs(3))?;
    println!(
        "one thread sends {raw:.0} packets a second over loopback: {:.0} calls",
        raw / 50.0
    );
    let sipp = sipp_alone(options, folder, &sink)?;
    let mut rows = Vec::new();
    for (frames, rates) in [(SHORT, &options.short_rates), (LONG, &options.long_rates)] {
        for rate in rates {
            let row = at_rate(options, folder, &sink, *rate, frames).await?;
            println!("{}", describe(&row, options.seconds));
            let held = row.held(options.seconds);
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

async fn at_rate(
    options: &CallsOptions,
    folder: &Path,
    sink: &Sink,
    rate: u32,
    frames: u32,
) -> anyhow::Result<CallsRow> {
    let callees: Vec<Callee> = (0..options.callees)
        .map(|_| Callee::start(folder, sink.address))
        .collect::<Result<_, _>>()?;
    let before = sink.packets();
    let mut command = tokio::process::Command::new(std::env::current_exe()?);
    command.arg("engine");
    for callee in &callees {
        command.arg("--callee").arg(callee.address.to_string());
    }
    command
        .arg("--rate")
        .arg(rate.to_string())
        .arg("--seconds")
        .arg(options.seconds.to_string())
        .arg("--frames")
        .arg(frames.to_string())
        .kill_on_drop(true);
    let limit = Duration::from_secs(u64::from(options.seconds) + 120);
    let output = tokio::time::timeout(limit, command.output())
        .await
        .context("the engine did not come to an end")??;
    ensure!(
        output.status.success(),
        "the engine failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let told: Told = serde_json::from_slice(&output.stdout)?;
    // The last packets may still lie in the socket's buffer.
    for _ in 0..50 {
        if sink.packets() - before >= told.packets {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(CallsRow {
        rate,
        frames,
        told,
        arrived: sink.packets() - before,
    })
}

fn describe(row: &CallsRow, seconds: u32) -> String {
    let told = &row.told;
    format!(
        "{} calls/s of {} s: {} of {} talked, {} of {} packets arrived, {} at once, {:.2} ms of processor a call, {} kB a call, worst packet of a call p50/p99/p99.9 {:.1}/{:.1}/{:.1} ms: {}{}",
        row.rate,
        row.frames / 50,
        told.talked,
        told.placed,
        row.arrived,
        told.placed * u64::from(row.frames),
        told.peak_calls,
        row.cpu_millis(),
        row.kilobytes_a_call(),
        row.lateness_millis(500),
        row.lateness_millis(990),
        row.lateness_millis(999),
        if row.held(seconds) { "held" } else { "failed" },
        if told.failed.is_empty() {
            String::new()
        } else {
            format!(" ({})", told.failed.join(", "))
        },
    )
}

fn table(
    options: &CallsOptions,
    machine: &Machine,
    raw: f64,
    sipp: u32,
    rows: &[CallsRow],
) -> String {
    let mut text = format!(
        "{}, Clarion {}. {machine}.\n\nThe engine in a process of its own calls {} SIPp processes over UDP, which answer at once; the sound goes to one socket that counts the packets. Engine, SIPp and counter share the cores; {} s at each rate. A rate is held when every call talked, every packet arrived, and the placing kept its pace.\n\n",
        Clock::new(TimeZone::system()).wall().date(),
        env!("CARGO_PKG_VERSION"),
        options.callees,
        options.seconds,
    );
    text.push_str("| calls/s | message | talked | packets that arrived | at once | processor per call | memory per call | late packets (> 5 ms) | worst packet of a call, p50 / p99 / p99.9 | |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n");
    for row in rows {
        let told = &row.told;
        let _ = writeln!(
            text,
            "| {} | {} s | {} of {} | {} of {} | {} | {:.2} ms | {} kB | {} | {:.1} / {:.1} / {:.1} ms | {} |",
            row.rate,
            row.frames / 50,
            told.talked,
            told.placed,
            row.arrived,
            told.placed * u64::from(row.frames),
            told.peak_calls,
            row.cpu_millis(),
            row.kilobytes_a_call(),
            told.late,
            row.lateness_millis(500),
            row.lateness_millis(990),
            row.lateness_millis(999),
            if row.held(options.seconds) {
                "held"
            } else {
                "failed"
            },
        );
    }
    let _ = writeln!(
        text,
        "\nIn the same run: one thread sends {raw:.0} packets a second over loopback to the same counter, one system call each (the sound of {:.0} calls); SIPp as the caller, without sound, holds {sipp} calls/s against SIPp.\n",
        raw / 50.0
    );
    text + &bars(options.seconds, rows)
}

fn bars(seconds: u32, rows: &[CallsRow]) -> String {
    let best = |frames: u32| {
        rows.iter()
            .filter(|row| row.frames == frames && row.held(seconds))
            .max_by_key(|row| row.rate)
    };
    let mut text = "| bar | measured | |\n|---|---:|---|\n".to_owned();
    let mut bar = |what: &str, measured: String, met: bool| {
        let verdict = if met { "met" } else { "**missed**" };
        let _ = writeln!(text, "| {what} | {measured} | {verdict} |");
    };
    let short = best(SHORT).map_or(0, |row| row.rate);
    bar(
        "at least 1,500 calls/s of 1 s",
        format!("{short}/s"),
        short >= 1500,
    );
    if let Some(long) = best(LONG) {
        bar(
            "at least 450 calls/s of 10 s, 4,500 at once",
            format!("{}/s, {} at once", long.rate, long.told.peak_calls),
            long.rate >= 450 && long.told.peak_calls >= 4500,
        );
        bar(
            "at most 3 ms of processor for a call of 10 s",
            format!("{:.2} ms", long.cpu_millis()),
            long.cpu_millis() <= 3.0,
        );
        bar(
            "at most 64 kB for a playing call",
            format!("{} kB", long.kilobytes_a_call()),
            long.kilobytes_a_call() <= 64,
        );
    }
    text
}
