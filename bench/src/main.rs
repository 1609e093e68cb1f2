//! What Clarion can do on this machine, measured beside what the machine itself can do in the same run.

mod accepts;
mod latency;
mod machine;
mod others;
mod report;
mod server;
mod sound;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

/// The load generator must cost less than what it loads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Measures Clarion on this machine, over loopback only.
#[derive(Debug, Parser)]
#[command(name = "clarion-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Durable accepts a second over HTTPS, beside the raw group-commit rate of the same disk
    Accepts(accepts::Options),
    /// Speech, prompts from the cache and resampling, beside the speech engine's own program
    Sound(sound::Options),
}

/// One thread is enough to load two cores' worth of server, and a second one would only take the server's core away.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Accepts(options) => accepts::run(options).await,
        Command::Sound(options) => sound::run(options).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("clarion-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
