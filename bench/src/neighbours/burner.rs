//! A program that has nothing to do with Clarion and uses some processor time.

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::process::{Child, Command};

/// It works for a part of each of these.
const PERIOD: Duration = Duration::from_millis(10);

/// On all cores alike.
#[derive(Debug, Args)]
pub struct Burn {
    /// How many cores' worth
    cores: f64,
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
        let burn = move || {
            loop {
                let begun = Instant::now();
                while begun.elapsed() < work {
                    std::hint::spin_loop();
                }
                thread::sleep(PERIOD.saturating_sub(begun.elapsed()));
            }
        };
        for _ in 1..cores {
            thread::spawn(burn);
        }
        burn()
    }
}
