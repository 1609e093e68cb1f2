//! `clarion speak-naturally`: a process of the natural voice. The server starts it, and speaks with it through pipes.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use natural::Installation;
use rustix::process::{Resource, Rlimit, Signal, setpriority_process, setrlimit};

/// Calls that talk come first, and so does everything else.
const NICE: i32 = 10;
/// Bytes of memory. Our allocator sets half of it aside before anything needs it, and a model that speaks needs half of the rest.
const MEMORY: u64 = 2 << 30;

#[derive(Debug, Args)]
pub struct SpeakNaturally {
    /// Where the voice is installed
    #[arg(long)]
    folder: PathBuf,
    /// The program that knows how English words sound
    #[arg(long, default_value = "espeak-ng")]
    espeak: String,
}

impl SpeakNaturally {
    pub fn run(&self) -> anyhow::Result<()> {
        // It ends with the server, however that ends.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        setpriority_process(None, NICE).context("nice")?;
        let limit = Rlimit {
            current: Some(MEMORY),
            maximum: Some(MEMORY),
        };
        setrlimit(Resource::Data, limit).context("memory")?;
        natural::serve(&Installation::find(&self.folder)?, &self.espeak)
    }
}
