//! The tables of `clarion-bench console`.

use std::fmt;
use std::time::Duration;

use jiff::civil::Date;

use super::pages::PageTimes;
use crate::latency::median;
use crate::machine::Machine;
use crate::ratio::{Comparison, FigurePair};

/// No page takes longer.
const BAR: Duration = Duration::from_millis(200);
/// How much more processor a job may cost while operators look on.
const TOLERANCE: f64 = 0.05;

#[derive(Debug)]
pub struct ConsoleReport {
    pub machine: Machine,
    pub day: Date,
    pub calls: u64,
    pub accounts: u32,
    pub times: u32,
    pub watchers: u16,
    pub rate: u32,
    pub seconds: u32,
    pub together: bool,
    pub pages: Vec<(String, Vec<PageTimes>)>,
    pub jobs: Vec<WatchedJobs>,
}

/// The processor of a job without and with operators who look on.
#[derive(Debug)]
pub struct WatchedJobs {
    pub database: String,
    pub pairs: Vec<FigurePair>,
}

impl fmt::Display for ConsoleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, day, .. } = self;
        writeln!(
            f,
            "{day}, Clarion {}. {machine}.",
            env!("CARGO_PKG_VERSION")
        )?;
        if !self.jobs.is_empty() {
            self.write_jobs(f)?;
        }
        if !self.pages.is_empty() {
            self.write_pages(f)?;
        }
        Ok(())
    }
}

impl ConsoleReport {
    fn write_jobs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            watchers,
            rate,
            seconds,
            ..
        } = self;
        let order = if self.together {
            "both at the same time on a server each"
        } else {
            "in alternating rounds"
        };
        writeln!(
            f,
            "\n{rate} jobs a second for {seconds} s, without and with {watchers} operators who have the first page open and its live part running, {order}, each on a new database: \
             milliseconds of the server's processor for each job.\n\n\
             | database | nobody looks on | {watchers} operators | ratio (median) | interval | rounds | at most {:.0} % more |\n|---|---:|---:|---:|---:|---:|---|",
            TOLERANCE * 100.0
        )?;
        for row in &self.jobs {
            let comparison = Comparison::of(&row.pairs);
            let ratio = comparison.map_or(0.0, |found| found.ratio);
            let interval = comparison.and_then(|found| found.interval);
            let interval = interval.map_or_else(
                || "too few rounds".to_owned(),
                |(low, high)| format!("{low:.3} – {high:.3}"),
            );
            let verdict = match comparison.and_then(|found| found.interval) {
                Some((_, high)) if high <= 1.0 + TOLERANCE => "yes",
                Some((low, _)) if low > 1.0 + TOLERANCE => "**no**",
                _ => "inconclusive",
            };
            writeln!(
                f,
                "| {} | {:.3} | {:.3} | {ratio:.3} | {interval} | {} | {verdict} |",
                row.database,
                median(&row.pairs, |pair| pair.base),
                median(&row.pairs, |pair| pair.new),
                row.pairs.len()
            )?;
        }
        Ok(())
    }

    fn write_pages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nEvery page of the console with {} ended calls, their bill lines, up to two million callbacks and {} accounts behind it: from the request to the last byte, over HTTPS on \
             one connection, {} times each, in ms. A page is to take less than {} ms.\n",
            self.calls,
            self.accounts + 1,
            self.times,
            BAR.as_millis()
        )?;
        for (database, pages) in &self.pages {
            let slow = pages.iter().filter(|page| page.times.max > BAR).count();
            writeln!(
                f,
                "{database}: {} of {} pages always took less.\n\n| page | KB | p50 / p99 / max |\n|---|---:|---:|",
                pages.len() - slow,
                pages.len()
            )?;
            for page in pages {
                let mark = if page.times.max > BAR { "**" } else { "" };
                writeln!(
                    f,
                    "| {} | {} | {mark}{}{mark} |",
                    page.name,
                    page.bytes.div_ceil(1024),
                    page.times
                )?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
