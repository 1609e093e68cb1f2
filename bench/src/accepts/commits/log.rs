//! What a server says about its commits: a line of its log for each, at the level `trace`.

use std::io::{BufRead, BufReader, Read};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Deserialize;

/// For the setting `log.filter`.
pub const FILTER: &str = "warn,clarion::store::sqlite::writer=trace";

#[derive(Debug)]
pub struct ToldCommit {
    pub told_at: Instant,
    pub time: Duration,
}

/// Reads in a thread of its own, so that the server never waits for a reader.
#[derive(Debug)]
pub struct CommitLog(JoinHandle<Vec<ToldCommit>>);

#[derive(Deserialize)]
struct Line {
    commit_micros: u64,
}

impl CommitLog {
    pub fn read(log: impl Read + Send + 'static) -> Self {
        Self(thread::spawn(|| {
            let mut commits = Vec::new();
            for line in BufReader::new(log).lines().map_while(Result::ok) {
                match serde_json::from_str::<Line>(&line) {
                    Ok(told) => commits.push(ToldCommit {
                        told_at: Instant::now(),
                        time: Duration::from_micros(told.commit_micros),
                    }),
                    // Something else that the server has to say.
                    Err(_) => eprintln!("{line}"),
                }
            }
            commits
        }))
    }

    /// All of them, when the server has ended.
    pub fn all(self) -> Vec<ToldCommit> {
        self.0.join().expect("reading does not panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_told_from_other_lines() {
        let log = "{\"level\":\"WARN\",\"message\":\"slow\"}\n{\"level\":\"TRACE\",\"commit_micros\":1500,\"changes\":2}\n";
        let commits = CommitLog::read(log.as_bytes()).all();
        let times: Vec<_> = commits.iter().map(|commit| commit.time).collect();
        assert_eq!(times, [Duration::from_micros(1500)]);
    }
}
