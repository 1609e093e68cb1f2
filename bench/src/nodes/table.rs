//! The tables of `clarion-bench nodes`.

use std::fmt;

use jiff::civil::Date;

use super::cycles::CycleFigures;
use super::idle::IdleFigures;
use crate::machine::Machine;

#[derive(Debug)]
pub struct NodesReport {
    pub machine: Machine,
    pub day: Date,
    pub calls: u64,
    pub rounds: usize,
    pub cycles: Vec<CycleFigures>,
    pub idle: Option<IdleFigures>,
}

impl fmt::Display for NodesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            machine,
            day,
            calls,
            rounds,
            ..
        } = self;
        writeln!(
            f,
            "{day}, Clarion {}. {machine}.\n",
            env!("CARGO_PKG_VERSION")
        )?;
        if let Some(one) = self.cycles.first() {
            writeln!(
                f,
                "Nodes without telephones claim and end {calls} queued calls of 12 accounts on one PostgreSQL: for each call a claim (with others), `dialling`, the answer and \
                 the end with its bill line and its callback. Medians of {rounds} alternating rounds; commits and statements as the database tells them within a second.\n"
            )?;
            writeln!(
                f,
                "| nodes | calls/s | of one node | processor of the nodes per call | of the database per call | commits per call | statements per call |\n\
                 |---:|---:|---:|---:|---:|---:|---:|"
            )?;
            for row in &self.cycles {
                writeln!(
                    f,
                    "| {} | {:.0} | {:.2} | {:.2} ms | {:.2} ms | {:.2} | {} |",
                    row.nodes,
                    row.calls_a_second,
                    row.calls_a_second / one.calls_a_second,
                    row.node_cpu,
                    row.database_cpu,
                    row.commits,
                    counted(row.statements)
                )?;
            }
        }
        if let Some(idle) = &self.idle {
            writeln!(
                f,
                "\n{} servers on one PostgreSQL with nothing to do: {:.1} commits and {} statements a second, {:.1} ms of processor a second in the servers and {:.1} ms in \
                 the database.",
                idle.nodes,
                idle.commits_a_second,
                counted(idle.statements_a_second),
                idle.node_cpu,
                idle.database_cpu
            )?;
        }
        Ok(())
    }
}

fn counted(number: Option<f64>) -> String {
    number.map_or_else(|| "not counted".to_owned(), |number| format!("{number:.1}"))
}
