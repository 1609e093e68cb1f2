//! The tables that a run ends with, on the screen and in `docs/measured.md`.

use std::cmp::Reverse;
use std::fmt;

use jiff::civil::Date;

use super::commits::CommitComparison;
use super::figures::Figures;
use super::load;
use super::raw::BATCH;
use crate::latency::Spread;
use crate::latency::{median, millis};
use crate::machine::Machine;

#[derive(Debug)]
pub struct AcceptsReport {
    pub machine: Machine,
    pub day: Date,
    pub seconds: u64,
    pub rounds: usize,
    pub connections: usize,
    /// For each kind of database: empty, then with a history.
    pub rows: Vec<AcceptsRow>,
}

#[derive(Debug)]
pub struct AcceptsRow {
    pub database: String,
    pub history: u64,
    pub rounds: Vec<Figures>,
    /// A long measurement at full load.
    pub long: Option<load::LoadOutcome>,
    /// Single commits beside those of plain loops, on SQLite.
    pub commits: Option<CommitComparison>,
}

impl AcceptsRow {
    /// A third of the time is enough to tell.
    pub fn quiet_rounds(&self, seconds: u64) -> usize {
        let enough = |round: &&Figures| round.quiet() as u64 * 3 >= seconds;
        self.rounds.iter().filter(enough).count()
    }

    pub fn keep_quietest(&mut self, rounds: usize) {
        self.rounds.sort_by_key(|round| Reverse(round.quiet()));
        self.rounds.truncate(rounds);
    }

    fn median(&self, figure: impl Fn(&Figures) -> f64) -> f64 {
        median(&self.rounds, figure)
    }

    pub fn rate(&self) -> f64 {
        self.median(|round| round.at_full_load.rate)
    }

    fn half_load_p99(&self) -> f64 {
        self.median(|round| millis(round.at_half_load.latency.p99))
    }

    fn spread(&self, latency: impl Fn(&Figures) -> Spread) -> String {
        let part = |time: fn(Spread) -> std::time::Duration| {
            self.median(|round| millis(time(latency(round))))
        };
        format!(
            "{:.1} / {:.1} / {:.0}",
            part(|spread| spread.p50),
            part(|spread| spread.p99),
            part(|spread| spread.max)
        )
    }
}

impl fmt::Display for AcceptsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            machine,
            day,
            seconds,
            rounds,
            connections,
            ..
        } = self;
        writeln!(
            f,
            "{day}, Clarion {}. {machine}.\n",
            env!("CARGO_PKG_VERSION")
        )?;
        writeln!(
            f,
            "`raw`: the store's own statements and indices in commits of {BATCH} on one connection, without HTTP. `HTTPS`: {connections} \
             kept-alive connections to `clarion serve`, load generator and server (and PostgreSQL) on the same cores. Medians of {rounds} \
             rounds of {seconds} s; the rounds alternate between raw and HTTPS and between the empty and the full database. Seconds in \
             which other programs or a hypervisor took the cores away are left out. Latencies in ms.\n"
        )?;
        self.write_figures(f)?;
        self.write_long(f)?;
        for commits in self.rows.iter().filter_map(|row| row.commits.as_ref()) {
            write!(f, "\n{commits}")?;
        }
        self.write_bars(f)
    }
}

impl AcceptsReport {
    fn write_figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| database | ended calls in it | raw, accepts/s | HTTPS, accepts/s | of raw | mean batch | full load p50 / p99 / max | half load p50 / p99 / max | quiet seconds, at least |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|---:|"
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {} | {} | {:.0} % | {:.0} | {} | {} | {} of {} |",
                row.database,
                thousands(row.history),
                whole(row.median(|round| round.raw.rate)),
                whole(row.rate()),
                row.median(Figures::share_of_raw) * 100.0,
                row.median(|round| round.at_full_load.batch),
                row.spread(|round| round.at_full_load.latency),
                row.spread(|round| round.at_half_load.latency),
                row.rounds
                    .iter()
                    .map(Figures::quiet)
                    .min()
                    .unwrap_or_default(),
                self.seconds,
            )?;
        }
        Ok(())
    }

    fn write_long(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            if let Some(long) = &row.long {
                writeln!(f, "\n{} under full load for longer: {long}.", row.database)?;
            }
        }
        Ok(())
    }

    fn write_bars(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n| bar | database | measured | |\n|---|---|---:|---|")?;
        for pair in self.rows.chunks(2) {
            for row in pair.iter().filter(|row| !row.rounds.is_empty()) {
                let place = format!("{}, {} ended calls", row.database, thousands(row.history));
                let share = row.median(Figures::share_of_raw) * 100.0;
                writeln!(
                    f,
                    "| HTTPS at least 50 % of raw | {place} | {share:.0} % | {} |",
                    verdict(share >= 50.0)
                )?;
                let p99 = row.half_load_p99();
                writeln!(
                    f,
                    "| p99 at half load at most 20 ms | {place} | {p99:.1} ms | {} |",
                    verdict(p99 <= 20.0)
                )?;
            }
            for row in pair {
                if let Some(commits) = &row.commits {
                    commits.write_bars(f, &row.database)?;
                }
            }
            if let [empty, full] = pair
                && !empty.rounds.is_empty()
            {
                let kept = full.rate() / empty.rate() * 100.0;
                writeln!(
                    f,
                    "| with {} ended calls at least 90 % of empty | {} | {kept:.0} % | {} |",
                    thousands(full.history),
                    full.database,
                    verdict(kept >= 90.0)
                )?;
            }
        }
        Ok(())
    }
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "**missed**" }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is positive and small"
)]
fn whole(rate: f64) -> String {
    thousands(rate.round() as u64)
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(
            [0, 999, 1000, 10_000_000].map(thousands),
            ["0", "999", "1,000", "10,000,000"]
        );
    }
}
