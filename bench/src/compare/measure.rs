//! One measurement of one version: the same load for both, and the figures of the workload in their order.
//!
//! A measurement in which something failed has no figures: its processor time is that of less work, or of other work.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::ensure;
use clarion::clock::Clock;
use jiff::tz::TimeZone;

use super::version::{BuiltVersion, finish};
use super::workload::{Subject, Workload};
use crate::accepts::customer::BenchCustomer;
use crate::accepts::load::Load;
use crate::accepts::site::Site;
use crate::bills::day;
use crate::calls::SHORT;
use crate::calls::engine::EngineLoad;
use crate::calls::peers::Sink;
use crate::job::{CONNECTIONS, JobLoad, TEXT};
use crate::latency::millis;
use crate::options::{DatabaseKind, short_id};
use crate::server::{BenchServer, WAITING_TRUNK};
use crate::usage::{Usage, cpu_of_ended_children};
use crate::{calls, job};

/// Packets of a call of five seconds.
const LONGER: u32 = 250;
const CALLEES: usize = 2;

/// Rates and sizes at 100 %: well below what two cores hold, so that nothing waits.
const SHORT_CALLS_PER_SECOND: u32 = 400;
const LONGER_CALLS_PER_SECOND: u32 = 150;
const JOBS_PER_SECOND: u32 = 100;
const ACCEPTS_PER_SECOND: u32 = 2000;
const BILL_LINES: u32 = 500_000;
const TEXTS: u32 = 20;
const PROMPTS: u32 = 500_000;

#[derive(Debug)]
pub struct Measurement<'a> {
    pub side: &'a BuiltVersion,
    pub folder: &'a Path,
    /// Seconds of load.
    pub seconds: u32,
    /// Of the rates and sizes above.
    pub percent: u32,
    /// The other version is measured at the same time.
    pub together: bool,
}

impl Measurement<'_> {
    /// In milliseconds, in the order of the workload's figures.
    pub async fn run(&self, subject: &Subject) -> anyhow::Result<Vec<f64>> {
        match subject.workload {
            Workload::Calls => self.calls().await,
            Workload::Job | Workload::Nodes => self.job(subject).await,
            Workload::Accepts => self.accepts(&subject.kind).await,
            Workload::Bills => self.bills().await,
            Workload::Sound => self.sound(),
        }
    }

    fn share(&self, whole: u32) -> u32 {
        let versions = if self.together { 2 } else { 1 };
        (whole * self.percent / 100 / versions).max(1)
    }

    async fn calls(&self) -> anyhow::Result<Vec<f64>> {
        let sink = Sink::start()?;
        let mut rows = Vec::new();
        for (frames, rate) in [
            (SHORT, SHORT_CALLS_PER_SECOND),
            (LONGER, LONGER_CALLS_PER_SECOND),
        ] {
            let load = EngineLoad {
                rate: self.share(rate),
                seconds: self.seconds,
                frames,
            };
            let row = calls::at_rate(&self.side.bench, load, CALLEES, self.folder, &sink).await?;
            ensure!(row.is_complete(), "{}", calls::table::describe(&row));
            rows.push(row);
        }
        let [short, longer] = &rows[..] else {
            unreachable!("two loads have two rows");
        };
        Ok(vec![
            short.cpu_millis(),
            longer.cpu_millis(),
            longer.lateness_millis(500),
        ])
    }

    async fn job(&self, subject: &Subject) -> anyhow::Result<Vec<f64>> {
        let customer = customer();
        let site = self.site(&subject.kind, &customer).await?;
        let load = JobLoad {
            seconds: self.seconds,
            text: TEXT.to_owned(),
            connections: CONNECTIONS,
            nodes: subject.nodes,
            watchers: 0,
        };
        let rate = self.share(JOBS_PER_SECOND);
        let row = job::at_rate(&self.side.clarion, &load, &site, &customer, rate).await;
        site.remove().await;
        let row = row?;
        ensure!(row.done() == row.jobs.len(), "{row}");
        let mut figures = vec![
            row.cpu_millis(),
            millis(row.to_answer().p50),
            millis(row.to_invite().p50),
            millis(row.to_invite().p99),
            millis(row.to_callback().p50),
        ];
        figures.extend(
            row.of_the_database()
                .into_iter()
                // A PostgreSQL that serves both tells its commits by database, its processor time in one.
                .flat_map(|(cpu, commits)| [if self.together { f64::NAN } else { cpu }, commits]),
        );
        Ok(figures)
    }

    async fn accepts(&self, kind: &DatabaseKind) -> anyhow::Result<Vec<f64>> {
        let customer = customer();
        let site = self.site(kind, &customer).await?;
        let figures = self.accepts_on(&site, &customer).await;
        site.remove().await;
        figures
    }

    async fn accepts_on(&self, site: &Site, customer: &BenchCustomer) -> anyhow::Result<Vec<f64>> {
        let (clarion, ours) = (&self.side.clarion, site.ours().await?);
        let mut server =
            BenchServer::start_with(clarion, &site.folder, &site.address(), WAITING_TRUNK).await?;
        let load = Load::new(customer, &ours, CONNECTIONS);
        let rate = f64::from(self.share(ACCEPTS_PER_SECOND));
        let before = Usage::of(server.id()?)?;
        let outcome = load
            .paced(&mut server, rate, u64::from(self.seconds))
            .await?;
        let used = Usage::of(server.id()?)?.cpu - before.cpu;
        server.stop().await?;
        Ok(vec![
            used * 1e3 / customer.orders() as f64,
            millis(outcome.latency.p50),
            millis(outcome.latency.p99),
        ])
    }

    /// Closes a day in a copy of a database that each version has filled once.
    async fn bills(&self) -> anyhow::Result<Vec<f64>> {
        let day = Clock::new(TimeZone::system()).wall().date().yesterday()?;
        let filled = self.folder.join(format!("bills-{}", self.side.name));
        if !filled.exists() {
            let customer = customer();
            let site = self
                .side
                .open(&DatabaseKind::Sqlite, &filled, &customer)
                .await?;
            let lines = u64::from(self.share(BILL_LINES));
            day::fill(&site.database, &customer, day, lines).await?;
        }
        let [from, site] =
            [&filled, &self.new_folder()].map(|folder| Site::new(&DatabaseKind::Sqlite, folder));
        let (from, site) = (from?, site?);
        std::fs::create_dir_all(&site.folder)?;
        std::fs::copy(from.sqlite_file()?, site.sqlite_file()?)?;
        let mut command = self.side.command(&site)?;
        command.args(["bill", "close", "--day", &day.to_string(), "--json"]);
        let (time, cpu) = (Instant::now(), cpu_of_ended_children()?);
        finish(&mut command)?;
        let (time, cpu) = (time.elapsed(), cpu_of_ended_children()? - cpu);
        site.remove().await;
        Ok(vec![cpu * 1e3, millis(time)])
    }

    fn sound(&self) -> anyhow::Result<Vec<f64>> {
        let mut command = std::process::Command::new(&self.side.bench);
        command
            .args(["sound", "--texts", &self.share(TEXTS).to_string()])
            .args(["--prompts", &self.share(PROMPTS).to_string(), "--dir"])
            .arg(self.folder);
        let cpu = cpu_of_ended_children()?;
        finish(&mut command)?;
        Ok(vec![(cpu_of_ended_children()? - cpu) * 1e3])
    }

    async fn site(&self, kind: &DatabaseKind, customer: &BenchCustomer) -> anyhow::Result<Site> {
        self.side.open(kind, &self.new_folder(), customer).await
    }

    fn new_folder(&self) -> PathBuf {
        self.folder.join(short_id())
    }
}

fn customer() -> BenchCustomer {
    BenchCustomer::new(Clock::new(TimeZone::system()))
}
