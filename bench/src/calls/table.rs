//! What one rate has shown, and the table of all.

use std::fmt::Write as _;

use clarion::clock::Clock;
use jiff::tz::TimeZone;

use super::engine::{EngineLoad, EngineReport};
use super::{CallsOptions, LONG, SHORT};
use crate::machine::Machine;

/// What was seen at one rate.
#[derive(Debug)]
pub struct CallsRow {
    pub load: EngineLoad,
    pub report: EngineReport,
    /// Packets that were heard.
    pub arrived: u64,
}

impl CallsRow {
    /// All calls talked, every packet arrived, and the placing kept its pace.
    pub fn held(&self) -> bool {
        self.is_complete()
            && self.report.placing_seconds < f64::from(self.load.seconds) * 1.05 + 0.5
    }

    /// All calls talked, and every packet arrived.
    pub fn is_complete(&self) -> bool {
        self.report.talked == self.report.placed
            && self.arrived == self.report.packets
            && self.report.packets == self.packets_wanted()
    }

    fn packets_wanted(&self) -> u64 {
        self.report.placed * u64::from(self.load.frames)
    }

    fn outcome(&self) -> &'static str {
        if self.held() { "held" } else { "failed" }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    pub fn cpu_millis(&self) -> f64 {
        self.report.cpu_seconds * 1e3 / self.report.placed.max(1) as f64
    }

    fn kilobytes_a_call(&self) -> u64 {
        self.report
            .peak_bytes
            .saturating_sub(self.report.idle_bytes)
            / self.report.peak_calls.max(1)
            / 1000
    }

    /// The worst packet of a call: of all calls, so many of a thousand are better.
    pub fn lateness_millis(&self, of_thousand: usize) -> f64 {
        let worst = &self.report.worst_micros;
        let place = (worst.len() * of_thousand / 1000).min(worst.len().saturating_sub(1));
        worst
            .get(place)
            .map_or(0.0, |micros| f64::from(*micros) / 1e3)
    }
}

pub fn describe(row: &CallsRow) -> String {
    let report = &row.report;
    format!(
        "{} calls/s of {} s: {} of {} talked, {} of {} packets arrived, {} at once, {:.2} ms of processor a call, {} kB a call, worst packet of a call p50/p99/p99.9 {:.1}/{:.1}/{:.1} ms: {}{}",
        row.load.rate,
        row.load.frames / 50,
        report.talked,
        report.placed,
        row.arrived,
        row.packets_wanted(),
        report.peak_calls,
        row.cpu_millis(),
        row.kilobytes_a_call(),
        row.lateness_millis(500),
        row.lateness_millis(990),
        row.lateness_millis(999),
        row.outcome(),
        if report.failed.is_empty() {
            String::new()
        } else {
            format!(" ({})", report.failed.join(", "))
        },
    )
}

pub fn table(
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
        let report = &row.report;
        let _ = writeln!(
            text,
            "| {} | {} s | {} of {} | {} of {} | {} | {:.2} ms | {} kB | {} | {:.1} / {:.1} / {:.1} ms | {} |",
            row.load.rate,
            row.load.frames / 50,
            report.talked,
            report.placed,
            row.arrived,
            row.packets_wanted(),
            report.peak_calls,
            row.cpu_millis(),
            row.kilobytes_a_call(),
            report.late,
            row.lateness_millis(500),
            row.lateness_millis(990),
            row.lateness_millis(999),
            row.outcome(),
        );
    }
    let _ = writeln!(
        text,
        "\nIn the same run: one thread sends {raw:.0} packets a second over loopback to the same counter, one system call each (the sound of {:.0} calls); SIPp as the caller, without sound, holds {sipp} calls/s against SIPp.\n",
        raw / 50.0
    );
    text + &bars(rows)
}

fn bars(rows: &[CallsRow]) -> String {
    let best = |frames: u32| {
        rows.iter()
            .filter(|row| row.load.frames == frames && row.held())
            .max_by_key(|row| row.load.rate)
    };
    let mut text = "| bar | measured | |\n|---|---:|---|\n".to_owned();
    let mut bar = |what: &str, measured: String, met: bool| {
        let verdict = if met { "met" } else { "**missed**" };
        let _ = writeln!(text, "| {what} | {measured} | {verdict} |");
    };
    let short = best(SHORT).map_or(0, |row| row.load.rate);
    bar(
        "at least 1,500 calls/s of 1 s",
        format!("{short}/s"),
        short >= 1500,
    );
    if let Some(long) = best(LONG) {
        bar(
            "at least 450 calls/s of 10 s, 4,500 at once",
            format!("{}/s, {} at once", long.load.rate, long.report.peak_calls),
            long.load.rate >= 450 && long.report.peak_calls >= 4500,
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
