//! Two versions in rounds: is the new one slower than the base?
//!
//! A round is one measurement of each version: one right after the other, and the order changes from round to round, so that neither a machine
//! that grows slower nor one that warms up favours a side; or both at once, each under half of the load, so that whatever slows the machine slows
//! both (`docs/measured.md` tells how much less that scatters). The load is fixed and below what the machine holds, and processor
//! time is the first figure: on shared cores it scatters less than any time on the clock. This module builds nothing: `scripts/bench-compare` does.

mod measure;
mod table;
mod version;
mod workload;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use self::measure::Measurement;
use self::table::{ComparedRow, table};
use self::version::BuiltVersion;
use self::workload::{Subject, Workload};
use crate::at_once;
use crate::calls::engine::raise_file_limit;
use crate::machine::Machine;
use crate::options::{DatabaseOptions, PlaceOptions};
use crate::others::{InterferenceShare, Ours};
use crate::ratio::FigurePair;

/// So many measurements of a subject may fail and are done again.
const SPARE_MEASUREMENTS: usize = 2;

#[derive(Debug, Args)]
pub struct CompareOptions {
    /// Folder with `clarion` and `clarion-bench` of the other version
    #[arg(long, value_name = "FOLDER")]
    base: PathBuf,
    /// How the table calls that version
    #[arg(long, default_value = "base")]
    base_name: String,
    /// Folder with `clarion` and `clarion-bench` of the new version [default: the folder of this program]
    #[arg(long, value_name = "FOLDER")]
    new: Option<PathBuf>,
    /// How the table calls that version
    #[arg(long, default_value = "new")]
    new_name: String,
    /// Rounds, each with one measurement of either version; fewer than six are inconclusive
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// What is compared
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "calls,job,accepts,bills,sound"
    )]
    workloads: Vec<Workload>,
    /// Seconds of load in one measurement
    #[arg(long, default_value_t = 6)]
    seconds: u32,
    /// Percent of the usual rates and sizes
    #[arg(long, default_value_t = 100)]
    percent: u32,
    /// Measure both versions at the same time, each under half of the load, instead of one after the other
    #[arg(long)]
    together: bool,
    #[command(flatten)]
    databases: DatabaseOptions,
    #[command(flatten)]
    place: PlaceOptions,
}

pub async fn run(options: CompareOptions) -> anyhow::Result<()> {
    raise_file_limit();
    let folder = options.place.folder("compare")?;
    let here = std::env::current_exe()?;
    let here = here.parent().unwrap_or(Path::new("."));
    let sides = [
        BuiltVersion::of(&options.base, &options.base_name)?,
        BuiltVersion::of(options.new.as_deref().unwrap_or(here), &options.new_name)?,
    ];
    let machine = Machine::look(&folder)?;
    println!("{machine}");
    let kinds = options.databases.kinds()?;
    let mut rows = Vec::new();
    for workload in &options.workloads {
        for subject in workload.subjects(&kinds) {
            let row = Comparing {
                options: &options,
                sides: &sides,
                folder: &folder,
                subject,
            };
            rows.push(row.rounds().await?);
        }
    }
    let text = table(&options, &machine, &sides, &rows);
    options.place.publish("compare", &text)
}

/// All rounds of one subject.
struct Comparing<'a> {
    options: &'a CompareOptions,
    /// The base, then the new version.
    sides: &'a [BuiltVersion; 2],
    folder: &'a Path,
    subject: Subject,
}

impl Comparing<'_> {
    async fn rounds(self) -> anyhow::Result<ComparedRow> {
        let others = InterferenceShare::from_now(Ours::with_postgres(None));
        let began = Instant::now();
        let mut pairs = vec![Vec::new(); self.subject.figures().len()];
        let spare = AtomicUsize::new(SPARE_MEASUREMENTS);
        for round in 0..self.options.rounds {
            let [base, new] = if self.options.together {
                at_once::both(|side| self.measure(side, &spare))?
            } else {
                self.one_after_the_other(round, &spare).await?
            };
            for ((pairs, base), new) in pairs.iter_mut().zip(base).zip(new) {
                pairs.push(FigurePair { base, new });
            }
            self.show_progress(round + 1, began.elapsed(), &pairs);
        }
        Ok(ComparedRow {
            subject: self.subject,
            pairs,
            time: began.elapsed(),
            others: others.so_far(),
        })
    }

    async fn one_after_the_other(
        &self,
        round: usize,
        spare: &AtomicUsize,
    ) -> anyhow::Result<[Vec<f64>; 2]> {
        let mut figures = [Vec::new(), Vec::new()];
        for side in order(round) {
            figures[side] = self.measure(side, spare).await?;
        }
        Ok(figures)
    }

    /// One measurement; one that failed is done again while there are spare ones.
    async fn measure(&self, side: usize, spare: &AtomicUsize) -> anyhow::Result<Vec<f64>> {
        let folder = self.folder.join(side.to_string());
        std::fs::create_dir_all(&folder)?;
        let measurement = Measurement {
            side: &self.sides[side],
            folder: &folder,
            seconds: self.options.seconds,
            percent: self.options.percent,
            together: self.options.together,
        };
        let one_less = |spare: usize| spare.checked_sub(1);
        loop {
            match measurement.run(&self.subject).await {
                Err(error)
                    if spare
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
                        .is_ok() =>
                {
                    println!("  measured again: {error:#}");
                }
                result => return result,
            }
        }
    }

    fn show_progress(&self, done: usize, time: Duration, pairs: &[Vec<FigurePair>]) {
        let rounds = self.options.rounds;
        let left = time.as_secs_f64() / done as f64 * (rounds - done) as f64;
        let first = &self.subject.figures()[0];
        if let Some(pair) = pairs[0].last() {
            println!(
                "{}, round {done} of {rounds}, {}: base {:.3} ms, new {:.3} ms, ratio {:.3}; about {left:.0} s left",
                self.subject,
                first.name,
                pair.base,
                pair.new,
                pair.new / pair.base,
            );
        }
    }
}

/// Base and new, new and base, base and new …
fn order(round: usize) -> [usize; 2] {
    if round.is_multiple_of(2) {
        [0, 1]
    } else {
        [1, 0]
    }
}
