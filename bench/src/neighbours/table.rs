//! What the quiet account has seen, and the table of all rounds.

use std::fmt::{self, Write as _};
use std::time::Duration;

use clarion::clock::Clock;
use jiff::tz::TimeZone;

use super::NeighboursOptions;
use crate::job::ledger::Job;
use crate::latency::{Latencies, Spread};
use crate::latency::{median, millis};
use crate::machine::Machine;
use crate::ratio::{Comparison, FigurePair};

/// With noise at most so many times what it is beside the other program.
const BAR: f64 = 1.5;

/// The times of one measurement.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    to_invite: Spread,
    to_callback: Spread,
    done: usize,
    jobs: usize,
}

#[derive(Debug)]
pub struct NeighboursRow {
    pub database: String,
    /// With nothing beside.
    pub calm: Times,
    /// Beside the other program and with noise, a round each.
    pub pairs: Vec<(Times, Times)>,
    /// Cores that the noise used.
    pub noise: Vec<f64>,
    /// The largest share of the cores that others took in a measurement.
    pub others: f64,
}

impl Times {
    pub fn of(jobs: &[Job]) -> Self {
        let spread = |time: &dyn Fn(&Job) -> Option<Duration>| {
            let mut latencies = Latencies::default();
            jobs.iter()
                .filter_map(time)
                .for_each(|time| latencies.add(time));
            latencies.spread()
        };
        Self {
            to_invite: spread(&|job| Some(job.invited?.saturating_duration_since(job.asked))),
            to_callback: spread(&|job| Some(job.told?.saturating_duration_since(job.hung_up?))),
            done: jobs.iter().filter(|job| job.is_done()).count(),
            jobs: jobs.len(),
        }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pair = |spread: &Spread| format!("{:.1}/{:.1}", millis(spread.p50), millis(spread.p95));
        write!(
            f,
            "{} of {} done, p50/p95 to the INVITE {} ms, from the hang-up to the callback {} ms",
            self.done,
            self.jobs,
            pair(&self.to_invite),
            pair(&self.to_callback)
        )
    }
}

pub fn table(options: &NeighboursOptions, machine: &Machine, rows: &[NeighboursRow]) -> String {
    let mut text = format!(
        "{}, Clarion {}. {machine}.\n\nA quiet account places {} calls, {} a second, every tenth with a new text. *Noisy*: another account, within the limits that an account has by default, \
         does its worst from a process of its own: requests as fast as they are answered, texts that change their language 400 times, uploads of a megabyte and uploads that \
         drip, 200 receivers that never answer, numbers that ring for ever or fail, wrong signatures, alerts of incidents without end and of 4 MB, events of calls, silent connections. *Control*: a program that has nothing to do with Clarion \
         uses as much processor as the noise did. {} rounds of both in alternating order, each on a database and a server of its own. Medians of the rounds in ms; the ratio is \
         the median of noisy/control of each round, with the interval of the sign test (95 % or more). The bar is {BAR}.\n\n",
        Clock::new(TimeZone::system()).wall().date(),
        env!("CARGO_PKG_VERSION"),
        options.calls,
        options.rate,
        options.rounds,
    );
    if !options.noise.is_empty() {
        let _ = writeln!(text, "Of the noise only: {:?}.\n", options.noise);
    }
    text.push_str(
        "| database | time, p95 | alone | control | noisy | noisy/control | 95 % interval | |\n\
         |---|---|---:|---:|---:|---:|---:|---|\n",
    );
    for row in rows {
        let invite = |times: &Times| millis(times.to_invite.p95);
        let callback = |times: &Times| millis(times.to_callback.p95);
        let _ = writeln!(text, "{}", line(row, "request → INVITE", invite));
        let _ = writeln!(text, "{}", line(row, "hang-up → callback", callback));
    }
    text.push('\n');
    for row in rows {
        let done = row.pairs.iter().map(|(_, noisy)| noisy.done).sum::<usize>();
        let jobs = row.pairs.iter().map(|(_, noisy)| noisy.jobs).sum::<usize>();
        let _ = writeln!(
            text,
            "{}: {done} of {jobs} calls done beside the noise, which used {:.2} cores (median); others took {:.0} % of the cores at most.",
            row.database,
            median(&row.noise, |cores| *cores),
            row.others * 100.0
        );
    }
    text
}

fn line(row: &NeighboursRow, name: &str, time: impl Fn(&Times) -> f64) -> String {
    let pairs: Vec<_> = row
        .pairs
        .iter()
        .map(|(control, noisy)| FigurePair {
            base: time(control),
            new: time(noisy),
        })
        .collect();
    let comparison = Comparison::of(&pairs);
    let interval = comparison.and_then(|comparison| comparison.interval);
    let verdict = match interval {
        Some((_, high)) if high <= BAR => "met",
        Some((low, _)) if low > BAR => "**missed**",
        _ => "inconclusive",
    };
    format!(
        "| {} | {name} | {:.1} | {:.1} | {:.1} | {} | {} | {verdict} |",
        row.database,
        time(&row.calm),
        median(&pairs, |pair| pair.base),
        median(&pairs, |pair| pair.new),
        comparison.map_or_else(|| "–".to_owned(), |found| format!("{:.2}", found.ratio)),
        interval.map_or_else(
            || "too few rounds".to_owned(),
            |(low, high)| format!("{low:.2} – {high:.2}")
        ),
    )
}
