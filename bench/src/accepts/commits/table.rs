//! The table of commits, and what it says about the bars.

use std::fmt;

use super::plain::LogCare;
use super::{CommitRound, Committer};
use crate::latency::Spread;
use crate::latency::{median, millis};
use crate::ratio::{Comparison, FigurePair};

/// How often as long as the plain loop's a server's p99.9 may be, and its longest commit.
const P999_BAR: f64 = 3.0;
const LONGEST_BAR: f64 = 10.0;

#[derive(Debug)]
pub struct CommitComparison {
    pub rate: f64,
    pub seconds: u64,
    pub rounds: Vec<CommitRound>,
}

/// One number of a spread, in milliseconds.
type Quantile = fn(&Spread) -> f64;

const QUANTILES: [Quantile; 4] = [
    |spread| millis(spread.p50),
    |spread| millis(spread.p99),
    |spread| millis(spread.p999),
    |spread| millis(spread.max),
];

impl CommitComparison {
    fn spread(&self, committer: usize) -> String {
        let part = |quantile: Quantile| median(&self.rounds, |round| quantile(&round.0[committer]));
        let [p50, p99, p999, longest] = QUANTILES.map(part);
        format!("{p50:.2} | {p99:.2} | {p999:.1} | {longest:.0}")
    }

    /// The server's number as a multiple of that of a plain loop.
    fn against(&self, committer: usize, quantile: Quantile) -> Option<Comparison> {
        let pair = |round: &CommitRound| FigurePair {
            base: quantile(&round.0[committer]),
            new: quantile(&round.0[0]),
        };
        Comparison::of(&self.rounds.iter().map(pair).collect::<Vec<_>>())
    }

    pub fn write_bars(&self, f: &mut fmt::Formatter<'_>, database: &str) -> fmt::Result {
        for (place, committer) in Committer::ALL.iter().enumerate().skip(1) {
            for (name, quantile, bar) in [
                ("p99.9", QUANTILES[2], P999_BAR),
                ("longest", QUANTILES[3], LONGEST_BAR),
            ] {
                let ratio = self.against(place, quantile);
                writeln!(
                    f,
                    "| {name} of the server's commits at most {bar:.0} times that of the {committer} | {database} | {} | {} |",
                    describe(ratio),
                    verdict(ratio, bar)
                )?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for CommitComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Single commits on SQLite at {:.0} accepts a second (half load), the same calls in all rows: medians of {} alternating rounds of {} s in ms, \
             every commit counted. Ratios are medians of those of the rounds, with the interval of the sign test (95 % or more).\n",
            self.rate,
            self.rounds.len(),
            self.seconds
        )?;
        writeln!(
            f,
            "| who commits | p50 | p99 | p99.9 | longest |\n|---|---:|---:|---:|---:|"
        )?;
        for (place, committer) in Committer::ALL.iter().enumerate() {
            writeln!(f, "| {committer} | {} |", self.spread(place))?;
        }
        for (place, committer) in Committer::ALL.iter().enumerate().skip(1) {
            let ratios = QUANTILES.map(|quantile| describe(self.against(place, quantile)));
            writeln!(f, "| server / {committer} | {} |", ratios.join(" | "))?;
        }
        Ok(())
    }
}

fn describe(ratio: Option<Comparison>) -> String {
    match ratio {
        None => "not measured".to_owned(),
        Some(Comparison { ratio, interval }) => match interval {
            None => format!("{ratio:.2} (too few rounds)"),
            Some((low, high)) => format!("{ratio:.2} ({low:.2} – {high:.2})"),
        },
    }
}

/// Met where the whole interval lies below the bar, missed where it lies above.
fn verdict(ratio: Option<Comparison>, bar: f64) -> &'static str {
    match ratio.and_then(|ratio| ratio.interval) {
        Some((_, high)) if high <= bar => "met",
        Some((low, _)) if low > bar => "**missed**",
        _ => "inconclusive",
    }
}

impl fmt::Display for Committer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Plain(LogCare::Stores) => "plain loop",
            Self::Plain(LogCare::Sqlites) => "plain loop with SQLite's own checkpoints",
        })
    }
}

impl fmt::Display for CommitRound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (committer, spread) in Committer::ALL.iter().zip(&self.0) {
            let [p50, p99, p999, longest] = QUANTILES.map(|quantile| quantile(spread));
            write!(
                f,
                "{committer} p50/p99/p99.9/longest {p50:.2}/{p99:.2}/{p999:.1}/{longest:.0} ms; "
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_met_or_missed_only_where_the_rounds_agree() {
        let ratio = |interval| {
            Some(Comparison {
                ratio: 2.0,
                interval,
            })
        };
        for (interval, wanted) in [
            (Some((1.0, 3.0)), "met"),
            (Some((3.1, 4.0)), "**missed**"),
            (Some((1.0, 3.1)), "inconclusive"),
            (None, "inconclusive"),
        ] {
            assert_eq!(verdict(ratio(interval), P999_BAR), wanted, "{interval:?}");
        }
        assert_eq!(verdict(None, P999_BAR), "inconclusive");
    }
}
