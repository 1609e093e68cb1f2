//! The table of `clarion-bench backlog`.

use std::fmt;
use std::time::Duration;

use jiff::civil::Date;

use super::verbs::{VERBS, VerbTimes};
use crate::machine::Machine;

#[derive(Debug)]
pub struct BacklogReport {
    pub machine: Machine,
    pub day: Date,
    pub calls: u64,
    pub to_one_callee: u64,
    pub rounds: usize,
    pub times: usize,
    pub rows: Vec<BacklogRow>,
}

#[derive(Debug)]
pub struct BacklogRow {
    pub database: String,
    /// With an empty queue, with a long one, with many calls to one callee, and with many notices for tomorrow.
    pub times: Vec<VerbTimes>,
    /// Until a call behind all those to one callee was claimed.
    pub behind: Duration,
    /// Until all of the long queue had expired and ended.
    pub expiry: Duration,
}

impl fmt::Display for BacklogReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            machine,
            day,
            calls,
            to_one_callee,
            rounds,
            times,
            ..
        } = self;
        writeln!(
            f,
            "{day}, Clarion {}. {machine}.\n\nThe verbs of the queue, one after the other on one node without telephones: medians in ms of {rounds} rounds, each with {times} \
             of every verb on every queue. `long`: {calls} calls are due. `one callee`: a callee is being called, and {to_one_callee} more calls to it wait. `tomorrow`: {calls} notices are due in a day. \
             Counting is done so rarely that it takes a hundredth of the time at most.\n",
            env!("CARGO_PKG_VERSION")
        )?;
        writeln!(
            f,
            "| database | verb | empty | long | one callee | tomorrow | long / empty | one callee / empty | tomorrow / empty |\n|---|---|---:|---:|---:|---:|---:|---:|---:|"
        )?;
        for row in &self.rows {
            row.write(f)?;
        }
        writeln!(f)?;
        for row in &self.rows {
            writeln!(
                f,
                "{}: {calls} calls that expire together have ended after {:.1} s. A call that was accepted behind {to_one_callee} calls to one callee was \
                 claimed after {:.1} s; each of those is looked at once.\n",
                row.database,
                row.expiry.as_secs_f64(),
                row.behind.as_secs_f64()
            )?;
        }
        Ok(())
    }
}

impl BacklogRow {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (verb, name) in VERBS.iter().enumerate() {
            let of = |queue: usize| self.times[queue].0[verb];
            writeln!(
                f,
                "| {} | {name} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
                self.database,
                of(0),
                of(1),
                of(2),
                of(3),
                of(1) / of(0),
                of(2) / of(0),
                of(3) / of(0)
            )?;
        }
        Ok(())
    }
}
