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
    /// Whole jobs on two and on three nodes, which share a PostgreSQL
    Nodes,
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
/// The same, and what PostgreSQL does for it.
const JOB_AND_DATABASE: &[Figure] = &[
    figure("processor per job", PROCESSOR),
    figure("request → answer, p50", MEDIAN_TIME),
    figure("request → INVITE, p50", MEDIAN_TIME),
    figure("request → INVITE, p99", TAIL_TIME),
    figure("hang-up → callback, p50", MEDIAN_TIME),
    figure("processor of the database per job", PROCESSOR),
    figure("commits per job", PROCESSOR),
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
    /// What of each version takes part, so that a reader knows what a ratio is a ratio of.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Calls => {
                "the calling engine (SIP and RTP) of each version in its own `clarion-bench engine`, against the same SIPp and the same counter of packets"
            }
            Self::Job | Self::Nodes => {
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
            Self::Job | Self::Accepts | Self::Nodes => kinds,
            Self::Calls | Self::Bills | Self::Sound => &[DatabaseKind::Sqlite],
        };
        let nodes: &[u16] = match self {
            Self::Nodes => &[2, 3],
            _ => &[1],
        };
        let is_subject =
            |kind: &&DatabaseKind| self != Self::Nodes || matches!(kind, DatabaseKind::Postgres(_));
        let kinds = kinds.iter().filter(is_subject);
        kinds
            .flat_map(|kind| nodes.iter().map(|nodes| (kind.clone(), *nodes)))
            .map(|(kind, nodes)| Subject {
                workload: self,
                kind,
                nodes,
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
    pub nodes: u16,
}

impl Subject {
    pub fn figures(&self) -> &'static [Figure] {
        match (self.workload, &self.kind) {
            (Workload::Calls, _) => CALLS,
            (Workload::Job, DatabaseKind::Sqlite) => JOB,
            (Workload::Job | Workload::Nodes, _) => JOB_AND_DATABASE,
            (Workload::Accepts, _) => ACCEPTS,
            (Workload::Bills, _) => BILLS,
            (Workload::Sound, _) => SOUND,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.workload == Workload::Nodes {
            return write!(f, "job on PostgreSQL with {} nodes", self.nodes);
        }
        let on = match (self.workload, &self.kind) {
            (Workload::Job | Workload::Accepts, DatabaseKind::Sqlite) => " on SQLite",
            (Workload::Job | Workload::Accepts, DatabaseKind::Postgres(_)) => " on PostgreSQL",
            _ => "",
        };
        write!(f, "{}{on}", self.workload)
    }
}
