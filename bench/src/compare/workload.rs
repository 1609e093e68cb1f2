//! What is compared: each workload with its figures. Less is better in all of them.

use std::fmt;

use clap::ValueEnum;

use crate::options::DatabaseKind;

/// Processor time hardly depends on what else the machine does.
const PROCESSOR: f64 = 0.03;
/// Times on the clock do, and the rare long ones most of all.
const MEDIAN_TIME: f64 = 0.10;
const TAIL_TIME: f64 = 0.25;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// The calling engine alone
    Calls,
    /// Whole jobs
    Job,
    /// Accepting requests
    Accepts,
    /// Closing a day
    Bills,
    /// Making prompts
    Sound,
}

/// One number of a measurement, in milliseconds.
#[derive(Debug)]
pub struct Figure {
    pub name: &'static str,
    /// How much more still counts as equal.
    pub tolerance: f64,
}

const fn figure(name: &'static str, tolerance: f64) -> Figure {
    Figure { name, tolerance }
}

const CALLS: &[Figure] = &[
    figure("processor per call of 1 s", PROCESSOR),
    figure("processor per call of 5 s", PROCESSOR),
    figure(
        "lateness of the worst packet of a call of 5 s, p50",
        TAIL_TIME,
    ),
];
const JOB: &[Figure] = &[
    figure("processor per job", PROCESSOR),
    figure("request → answer, p50", MEDIAN_TIME),
    figure("request → INVITE, p50", MEDIAN_TIME),
    figure("request → INVITE, p99", TAIL_TIME),
    figure("hang-up → callback, p50", MEDIAN_TIME),
];
const ACCEPTS: &[Figure] = &[
    figure("processor per accept", PROCESSOR),
    figure("request → answer, p50", MEDIAN_TIME),
    figure("request → answer, p99", TAIL_TIME),
];
const BILLS: &[Figure] = &[
    figure("processor for closing the day", PROCESSOR),
    figure("time for closing the day", MEDIAN_TIME),
];
const SOUND: &[Figure] = &[figure("processor for the whole run", PROCESSOR)];

impl Workload {
    pub fn figures(self) -> &'static [Figure] {
        match self {
            Self::Calls => CALLS,
            Self::Job => JOB,
            Self::Accepts => ACCEPTS,
            Self::Bills => BILLS,
            Self::Sound => SOUND,
        }
    }

    /// What of each version takes part, so that a reader knows what a ratio is a ratio of.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Calls => {
                "the calling engine (SIP and RTP) of each version in its own `clarion-bench engine`, against the same SIPp and the same counter of packets"
            }
            Self::Job => {
                "`clarion serve` of each version; application, test phone and receiver of callbacks are those of the new version"
            }
            Self::Accepts => {
                "`clarion serve` of each version without a channel to dial on; the load generator is that of the new version"
            }
            Self::Bills => {
                "`clarion bill close` of each version on the same lines, on SQLite, its start included"
            }
            Self::Sound => {
                "`clarion-bench sound` of each version, its speech engine's processes included (about a third of it)"
            }
        }
    }

    /// The databases on which it is compared: those asked for, where the database is part of what is measured.
    pub fn subjects(self, kinds: &[DatabaseKind]) -> Vec<Subject> {
        let kinds = match self {
            Self::Job | Self::Accepts => kinds,
            Self::Calls | Self::Bills | Self::Sound => &[DatabaseKind::Sqlite],
        };
        kinds
            .iter()
            .map(|kind| Subject {
                workload: self,
                kind: kind.clone(),
            })
            .collect()
    }
}

/// As the option names it.
impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// A workload on one kind of database.
#[derive(Debug, Clone)]
pub struct Subject {
    pub workload: Workload,
    pub kind: DatabaseKind,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = match (self.workload, &self.kind) {
            (Workload::Job | Workload::Accepts, DatabaseKind::Sqlite) => " on SQLite",
            (Workload::Job | Workload::Accepts, DatabaseKind::Postgres(_)) => " on PostgreSQL",
            _ => "",
        };
        write!(f, "{}{on}", self.workload)
    }
}
