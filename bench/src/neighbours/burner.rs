//! A program that has nothing to do with Clarion and uses some processor time.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::time::{ClockId, clock_gettime};
use tokio::process::{Child, Command};

/// It works for a part of each of these. With more than a core, as much as a phrase of speech takes: what works in shorter stretches disturbs
/// less, and what works in longer ones more, at the same processor time (docs/measured.md).
const PERIOD: Duration = Duration::from_millis(30);

/// On all cores alike.
#[derive(Debug, Args)]
pub struct Burn {
    /// How many cores' worth
    cores: f64,
}

/// The processor time that this thread has had.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

impl Burn {
    /// In a process of its own, until what is returned is dropped.
    pub fn start(cores: f64) -> anyhow::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("burn").arg(cores.to_string());
        Ok(command.kill_on_drop(true).spawn()?)
    }

    pub fn run(self) -> anyhow::Result<()> {
        let cores = thread::available_parallelism()?.get();
        let share = (self.cores / cores as f64).clamp(0.0, 1.0);
        let work = PERIOD.mul_f64(share);
        // By the processor time that it has had: what others or a late timer took from it, it makes up for.
        let burn = move || {
            let (begun, used) = (Instant::now(), thread_cpu());
            loop {
                let periods = begun.elapsed().div_duration_f64(PERIOD).floor() + 1.0;
                let until = used + work.mul_f64(periods);
                while thread_cpu() < until {
                    std::hint::spin_loop();
                }
                thread::sleep(PERIOD.mul_f64(periods).saturating_sub(begun.elapsed()));
            }
        };
        for _ in 1..cores {
            thread::spawn(burn);
        }
        burn()
    }
}
