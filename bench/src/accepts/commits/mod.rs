//! Single commits on SQLite at half load: those of a server beside those of plain loops that commit the same calls at the same rate.
//!
//! A round measures each once, one right after the other, and every second round in the opposite order. Every commit counts, also in
//! seconds that others have disturbed: stalls are what is looked for, and others disturb all sides alike.

mod log;
mod plain;
mod table;

use std::path::Path;
use std::time::{Duration, Instant};

use self::log::CommitLog;
use self::plain::{LogCare, PlainLoop};
pub use self::plain::{batch, commit};
pub use self::table::CommitComparison;
use super::customer::BenchCustomer;
use super::load::Load;
use super::site::Site;
use crate::latency::{Latencies, Spread};
use crate::others::Ours;
use crate::server::BenchServer;

/// Not measured: connections, caches and statements settle, and the log finds its length.
const WARM_UP: Duration = Duration::from_secs(1);

/// Who commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committer {
    /// `clarion serve`, asked over HTTPS.
    Server,
    Plain(LogCare),
}

impl Committer {
    pub const ALL: [Self; 3] = [
        Self::Server,
        Self::Plain(LogCare::Stores),
        Self::Plain(LogCare::Sqlites),
    ];
}

/// One measurement of each committer, in the order of `Committer::ALL`.
#[derive(Debug, Clone, Copy)]
pub struct CommitRound(pub [Spread; 3]);

#[derive(Debug)]
pub struct CommitRounds<'a> {
    pub site: &'a Site,
    pub customer: &'a BenchCustomer,
    pub ours: &'a Ours,
    pub connections: usize,
    /// Accepts a second.
    pub rate: f64,
    pub seconds: u64,
}

impl CommitRounds<'_> {
    pub async fn measure(&self, rounds: usize) -> anyhow::Result<CommitComparison> {
        let mut measured = Vec::new();
        for round in 0..rounds {
            let mut spreads = [Spread::default(); 3];
            for place in order(round) {
                self.site.reset().await?;
                spreads[place] = self.one(Committer::ALL[place]).await?;
            }
            let round = CommitRound(spreads);
            println!("  commits at {:.0}/s: {round}", self.rate);
            measured.push(round);
        }
        Ok(CommitComparison {
            rate: self.rate,
            seconds: self.seconds,
            rounds: measured,
        })
    }

    async fn one(&self, committer: Committer) -> anyhow::Result<Spread> {
        let path = self.site.sqlite_file()?;
        match committer {
            Committer::Server => self.server().await,
            Committer::Plain(care) => self.plain(path, care),
        }
    }

    fn plain(&self, path: &Path, care: LogCare) -> anyhow::Result<Spread> {
        let plain = PlainLoop::start(path, care)?;
        plain.commit(self.customer, self.rate, WARM_UP)?;
        let time = Duration::from_secs(self.seconds);
        Ok(plain.commit(self.customer, self.rate, time)?.spread())
    }

    async fn server(&self) -> anyhow::Result<Spread> {
        let (mut server, commits) =
            BenchServer::start_telling(&self.site.folder, &self.site.address(), log::FILTER)
                .await?;
        let commits = CommitLog::read(commits);
        let load = Load::new(self.customer, self.ours, self.connections);
        let start = Instant::now() + WARM_UP;
        load.paced(&mut server, self.rate, self.seconds).await?;
        let end = Instant::now();
        server.stop().await?;
        let mut latencies = Latencies::default();
        for commit in commits.all() {
            if (start..end).contains(&commit.told_at) {
                latencies.add(commit.time);
            }
        }
        Ok(latencies.spread())
    }
}

/// Forwards, backwards, forwards …
fn order(round: usize) -> [usize; 3] {
    if round.is_multiple_of(2) {
        [0, 1, 2]
    } else {
        [2, 1, 0]
    }
}
