//! `clarion check`: everything that an operator wants to know before the first call, one line each.
//!
//! The check changes nothing: it makes no schema, binds no port that a server wants, and replaces no registration of a running server. So
//! it may run beside a server as well as before the first start.

mod certificate;
mod database;
mod doors;
mod machine;
mod media;
mod privacy;
mod report;
mod sockets;
mod speech;
mod trunks;

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use clap::Args;

pub use self::certificate::names_of as names_of_certificate;
use self::report::{CheckReport, Finding};
use crate::clock::Clock;
use crate::config::{Config, ConfigError};

#[derive(Debug, Args)]
pub struct Check {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Another clock, and by how many seconds this machine is ahead of it.
#[derive(Debug, Clone)]
pub struct OtherClock {
    name: String,
    ahead: f64,
}

impl OtherClock {
    fn new(name: impl Into<String>, theirs: jiff::Timestamp, ours: jiff::Timestamp) -> Self {
        Self {
            name: name.into(),
            ahead: ours.duration_since(theirs).as_secs_f64(),
        }
    }
}

impl Check {
    pub async fn run(self, file: Option<&Path>) -> anyhow::Result<()> {
        let mut report = CheckReport::new(self.json);
        let file = Config::file(file);
        match Config::load(file.as_deref()) {
            Ok(config) => {
                report.tell([Finding::ok(
                    "configuration",
                    "can be read, and holds together",
                )]);
                report.tell(privacy::settings(&config, file.as_deref()));
                examine(&Arc::new(config), &mut report).await;
            }
            Err(ConfigError(mistakes)) => report.tell(mistakes.into_iter().map(|mistake| {
                let remedy = "correct it; `clarion config` prints every setting with its meaning";
                Finding::problem("configuration", mistake, remedy)
            })),
        }
        match report.end() {
            (0, _) => Ok(()),
            (1, _) => bail!("one problem was found"),
            (problems, _) => bail!("{problems} problems were found"),
        }
    }
}

async fn examine(config: &Arc<Config>, report: &mut CheckReport) {
    let database = &config.database;
    let clock = Clock::new(config.time_zone());
    report.tell(doors::parts(config));
    let serving = doors::serving_process(config, database);
    report.tell(doors::server(config, serving));
    let (findings, mut clocks) = database::check(database, config, &clock).await;
    report.tell(findings);
    report.tell(machine::disk(config, database));
    report.tell([machine::files(config, serving)]);
    report.tell(certificate::check(config, &clock));
    report.tell(speech::check(config).await);
    report.tell(media::check(config, serving));
    let (findings, others) = trunks::check(config, serving, &clock).await;
    report.tell(findings);
    clocks.extend(others);
    report.tell(machine::clock(config, &clocks));
    report.tell(doors::policy(config));
}
