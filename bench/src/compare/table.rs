//! The table that a comparison ends with, on the screen and in `docs/measured.md`.

use std::fmt::Write as _;
use std::time::Duration;

use clarion::clock::Clock;
use jiff::tz::TimeZone;

use super::CompareOptions;
use super::version::BuiltVersion;
use super::workload::{Figure, Subject};
use crate::latency::median;
use crate::machine::Machine;
use crate::ratio::{Comparison, FigurePair, SpeedVerdict};

/// What all rounds of one subject have shown.
#[derive(Debug)]
pub struct ComparedRow {
    pub subject: Subject,
    /// For each figure of the workload its pairs, a round each.
    pub pairs: Vec<Vec<FigurePair>>,
    pub time: Duration,
    /// The share of all cores that others took meanwhile.
    pub others: f64,
}

pub fn table(
    options: &CompareOptions,
    machine: &Machine,
    sides: &[BuiltVersion; 2],
    rows: &[ComparedRow],
) -> String {
    let [base, new] = sides;
    let order = if options.together {
        "both at the same time, each under half of the load"
    } else {
        "in the order base, new, new, base …"
    };
    let mut text = format!(
        "{}. Base `{}`, new `{}`. {machine}.\n\n\
         {} rounds, each one measurement of either version, {order}; {} s of load in a measurement, at {} % of the usual rates. \
         Both are built with the profile of `bench/compared.toml`. The ratio is the median of new/base of each round, with the interval of the sign test \
         (95 % or more). *Not slower*: the interval ends within the tolerance; *slower*: it begins above 1; otherwise *inconclusive*. Medians of the \
         rounds in ms.\n\n",
        Clock::new(TimeZone::system()).wall().date(),
        base.name,
        new.name,
        options.rounds,
        options.seconds,
        options.percent,
    );
    for workload in &options.workloads {
        let _ = writeln!(text, "- `{workload}`: {}.", workload.explanation());
    }
    text.push_str(
        "\n| what | figure | base | new | new/base | 95 % interval | tolerance | verdict |\n|---|---|---:|---:|---:|---:|---:|---|\n",
    );
    for row in rows {
        for (figure, pairs) in row.subject.figures().iter().zip(&row.pairs) {
            let _ = writeln!(text, "{}", line(&row.subject, figure, pairs));
        }
    }
    text.push('\n');
    for row in rows {
        let _ = writeln!(
            text,
            "{}: {:.1} minutes, in which others took {:.0} % of the cores.",
            row.subject,
            row.time.as_secs_f64() / 60.0,
            row.others * 100.0
        );
    }
    text
}

fn line(subject: &Subject, figure: &Figure, pairs: &[FigurePair]) -> String {
    let comparison = Comparison::of(pairs);
    let ratio = comparison.map_or_else(
        || "not measured".to_owned(),
        |comparison| format!("{:.3}", comparison.ratio),
    );
    let interval = comparison.and_then(|comparison| comparison.interval);
    let interval = interval.map_or_else(
        || "too few rounds".to_owned(),
        |(low, high)| format!("{low:.3} – {high:.3}"),
    );
    let verdict = comparison.map_or(SpeedVerdict::Inconclusive, |comparison| {
        comparison.verdict(figure.tolerance)
    });
    format!(
        "| {subject} | {} | {:.3} | {:.3} | {ratio} | {interval} | {:.0} % | {verdict} |",
        figure.name,
        median(pairs, |pair| pair.base),
        median(pairs, |pair| pair.new),
        figure.tolerance * 100.0,
    )
}

#[cfg(test)]
mod tests {
    use super::super::workload::Workload;
    use super::*;
    use crate::options::DatabaseKind;

    #[test]
    fn a_line_says_what_the_rounds_have_shown() {
        let subject = Subject {
            workload: Workload::Job,
            kind: DatabaseKind::Sqlite,
            nodes: 1,
        };
        let figure = &subject.figures()[0];
        let pairs = |new: &[f64]| -> Vec<FigurePair> {
            let pair = |new: &f64| FigurePair {
                base: 4.0,
                new: *new,
            };
            new.iter().map(pair).collect()
        };
        for (new, wanted) in [
            (
                &[4.0, 4.0, 4.04, 3.96, 4.0, 4.0, 4.0][..],
                "4.000 | 1.000 | 0.990 – 1.010 | 3 % | not slower |",
            ),
            (
                &[5.0, 5.0, 5.2, 4.8, 5.0, 5.0, 5.0],
                "5.000 | 1.250 | 1.200 – 1.300 | 3 % | **slower** |",
            ),
            (
                &[4.0],
                "4.000 | 1.000 | too few rounds | 3 % | inconclusive |",
            ),
            (
                &[0.0],
                "0.000 | not measured | too few rounds | 3 % | inconclusive |",
            ),
        ] {
            assert_eq!(
                line(&subject, figure, &pairs(new)),
                format!("| job on SQLite | processor per job | 4.000 | {wanted}")
            );
        }
    }
}
