//! What one rate has shown, and the table of all.

use std::fmt::{self, Write as _};
use std::time::{Duration, Instant};

use clarion::clock::Clock;
use jiff::tz::TimeZone;

use super::ledger::Job;
use crate::database_work::DatabaseWork;
use crate::latency::{Latencies, Spread, millis};
use crate::machine::Machine;

/// A rate at which calls fall further behind than this is not held.
const BEHIND: Duration = Duration::from_secs(1);
/// From accept to INVITE, where nothing waits and the prompt is there.
const SET_UP_BAR: Duration = Duration::from_millis(20);

/// What was seen at one rate.
#[derive(Debug)]
pub struct JobRow {
    pub database: String,
    pub rate: u32,
    pub jobs: Vec<Job>,
    /// From the first request to the last answer.
    pub placing: Duration,
    /// Of the server alone, in seconds.
    pub cpu: f64,
    /// Of a PostgreSQL, from the start of the server to its end.
    pub database_work: Option<DatabaseWork>,
    pub idle_bytes: u64,
    pub byte_limit: u64,
    pub peak_concurrency: usize,
    pub packets: f64,
    pub late: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run")]
impl JobRow {
    pub fn done(&self) -> usize {
        self.jobs.iter().filter(|job| job.is_done()).count()
    }

    /// Every job was done, the asking kept its pace, and the dialling did too.
    pub fn held(&self, seconds: u32) -> bool {
        self.done() == self.jobs.len()
            && self.placing.as_secs_f64() < f64::from(seconds) * 1.05 + 0.5
            && self.to_invite().p99 < BEHIND
    }

    fn spread(&self, time: impl Fn(&Job) -> Option<Duration>) -> Spread {
        let mut latencies = Latencies::default();
        self.jobs
            .iter()
            .filter_map(time)
            .for_each(|time| latencies.add(time));
        latencies.spread()
    }

    fn between(from: Option<Instant>, to: Option<Instant>) -> Option<Duration> {
        Some(to?.saturating_duration_since(from?))
    }

    pub fn to_answer(&self) -> Spread {
        self.spread(|job| Self::between(Some(job.asked), job.accepted))
    }

    /// From the request, so that nothing is left out: reading it and making it durable included.
    pub fn to_invite(&self) -> Spread {
        self.spread(|job| Self::between(Some(job.asked), job.invited))
    }

    pub fn to_callback(&self) -> Spread {
        self.spread(|job| Self::between(job.hung_up, job.told))
    }

    /// From the first callback to the last: what comes before the first is one message, and no measure of a rate.
    fn jobs_a_second(&self) -> f64 {
        let told = || self.jobs.iter().filter_map(|job| job.told);
        let time = Self::between(told().min(), told().max()).unwrap_or_default();
        self.done().saturating_sub(1) as f64 / time.as_secs_f64().max(0.001)
    }

    pub fn cpu_millis(&self) -> f64 {
        self.cpu * 1e3 / self.jobs.len().max(1) as f64
    }

    /// Milliseconds of processor of a PostgreSQL, and its commits, for each job.
    pub fn of_the_database(&self) -> Option<(f64, f64)> {
        let jobs = self.jobs.len().max(1) as f64;
        let work = self.database_work?;
        Some((work.cpu * 1e3 / jobs, work.commits / jobs))
    }

    /// Processor of a PostgreSQL, its commits and its statements.
    fn database_work(&self) -> [String; 3] {
        let of_a_job = |number: f64| number / self.jobs.len().max(1) as f64;
        let Some(work) = self.database_work else {
            return ["–".to_owned(), "–".to_owned(), "–".to_owned()];
        };
        let statements = work.statements.map(of_a_job);
        [
            format!("{:.2} ms", of_a_job(work.cpu * 1e3)),
            format!("{:.1}", of_a_job(work.commits)),
            statements.map_or_else(|| "–".to_owned(), |number| format!("{number:.1}")),
        ]
    }

    fn megabytes(&self) -> f64 {
        self.byte_limit.max(self.idle_bytes) as f64 / 1e6
    }

    fn kilobytes_a_call(&self) -> f64 {
        self.byte_limit.saturating_sub(self.idle_bytes) as f64
            / 1e3
            / self.peak_concurrency.max(1) as f64
    }

    fn late_percent(&self) -> f64 {
        self.late * 100.0 / self.packets.max(1.0)
    }
}

impl fmt::Display for JobRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [database_cpu, commits, statements] = self.database_work();
        write!(
            f,
            "{} jobs/s: {} of {} done, {} at once; p50/p99/max to the answer {}, to the INVITE {}, from the hang-up to the callback {}; \
             {:.2} ms of processor a job (database {}, {} commits, {} statements), {:.0} MB, {:.2} % late packets",
            self.rate,
            self.done(),
            self.jobs.len(),
            self.peak_concurrency,
            self.to_answer(),
            self.to_invite(),
            self.to_callback(),
            self.cpu_millis(),
            database_cpu,
            commits,
            statements,
            self.megabytes(),
            self.late_percent()
        )
    }
}

pub fn table(seconds: u32, machine: &Machine, rows: &[JobRow]) -> String {
    let mut text = format!(
        "{}, Clarion {}. {machine}.\n\n`clarion serve` in a process of its own; application, test phone and receiver of callbacks in another, on the same cores. {seconds} s at each rate, at a steady pace. A job is a \
         request over HTTPS, its call with the whole message ({}), and its callback; a rate is held when every job was done, asking kept its pace, and 99 % of the INVITEs came within a second. Times in ms, from when the request was due; \
         processor and memory are those of the server alone; the work of PostgreSQL counts from the start of the server to its end.\n\n",
        Clock::new(TimeZone::system()).wall().date(),
        env!("CARGO_PKG_VERSION"),
        rows.first().map_or_else(String::new, message),
    );
    text.push_str("| database | jobs/s asked | done | done/s | calls at once | request → answer p50 / p99 | request → INVITE p50 / p99 / max | hang-up → callback p50 / p99 | processor per job | of PostgreSQL | its commits per job | its statements per job | memory | more than idle, per call | late packets (> 5 ms) | |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n");
    for row in rows {
        let (answer, invite, told) = (row.to_answer(), row.to_invite(), row.to_callback());
        let _ = writeln!(
            text,
            "| {} | {} | {} of {} | {:.1} | {} | {:.1} / {:.1} | {:.1} / {:.1} / {:.0} | {:.1} / {:.1} | {:.2} ms | {} | {:.0} MB | {:.0} kB | {:.2} % | {} |",
            row.database,
            row.rate,
            row.done(),
            row.jobs.len(),
            row.jobs_a_second(),
            row.peak_concurrency,
            millis(answer.p50),
            millis(answer.p99),
            millis(invite.p50),
            millis(invite.p99),
            millis(invite.max),
            millis(told.p50),
            millis(told.p99),
            row.cpu_millis(),
            row.database_work().join(" | "),
            row.megabytes(),
            row.kilobytes_a_call(),
            row.late_percent(),
            if row.held(seconds) { "held" } else { "failed" },
        );
    }
    text + &bars(seconds, rows)
}

/// The first rate of each database is the one at which nothing waits.
fn bars(seconds: u32, rows: &[JobRow]) -> String {
    let mut text = "\n| bar | database | measured | |\n|---|---|---:|---|\n".to_owned();
    for lowest in rows.iter().filter(|row| row.rate == rows[0].rate) {
        let p99 = lowest.to_invite().p99;
        let of = rows.iter().filter(|row| row.database == lowest.database);
        let limit = of.filter(|row| row.held(seconds)).map(|row| row.rate).max();
        let _ = writeln!(
            text,
            "| from request to INVITE at most 20 ms (p99, {} jobs/s) | {} | {:.1} ms | {} |\n| most jobs a second that were held | {} | {} | |",
            lowest.rate,
            lowest.database,
            millis(p99),
            if p99 <= SET_UP_BAR {
                "met"
            } else {
                "**missed**"
            },
            lowest.database,
            limit.unwrap_or(0),
        );
    }
    text
}

/// How long the call lasts in which it is played.
fn message(row: &JobRow) -> String {
    let time = row
        .spread(|job| JobRow::between(job.invited, job.hung_up))
        .p50;
    format!("{:.1} s from INVITE to BYE", time.as_secs_f64())
}
