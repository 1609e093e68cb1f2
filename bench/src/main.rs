//! What Clarion can do on this machine, measured beside what the machine itself can do in the same run.

mod accepts;
mod at_once;
mod backlog;
mod bills;
mod calls;
mod compare;
mod console;
mod console_browser;
mod database_work;
mod job;
mod latency;
mod machine;
mod neighbours;
mod nodes;
mod options;
mod others;
mod queue_node;
mod ratio;
mod report;
mod server;
mod sound;
mod usage;
mod voices;

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
    Accepts(accepts::AcceptsOptions),
    /// What a long queue costs: the verbs of the queue with and without a backlog
    Backlog(backlog::BacklogOptions),
    /// A day with millions of lines: closing it, downloading it, asking for it, beside the databases' own exports
    Bills(bills::BillsOptions),
    /// Calls a second and playing calls at once, beside SIPp and the bare socket
    Calls(calls::CallsOptions),
    /// Two versions in alternating rounds: is the new one slower? `scripts/bench-compare COMMIT` builds both and runs this
    Compare(compare::CompareOptions),
    /// Every page of the console with a long past behind it, and what the console costs while calls are placed
    Console(console::ConsoleOptions),
    /// The engine that `calls` measures
    #[command(hide = true)]
    Engine(calls::engine::CallingEngine),
    /// Whole jobs a second: request, call, message, hang-up, callback
    Job(job::JobOptions),
    /// One account does its worst while another places calls, beside a program that uses as much processor
    Neighbours(neighbours::NeighboursOptions),
    /// The account that does its worst
    #[command(hide = true)]
    Nuisance(neighbours::nuisance::Nuisance),
    /// The program that uses as much processor
    #[command(hide = true)]
    Burn(neighbours::burner::Burn),
    /// Several nodes on one PostgreSQL: calls claimed and ended a second, and statements of nodes that have nothing to do
    Nodes(nodes::NodesOptions),
    /// Speech, prompts from the cache and resampling, beside the speech engine's own program
    Sound(sound::SoundOptions),
    /// Voices: new texts a second, time to a ready prompt, memory, and late packets of calls that play meanwhile
    Voices(voices::VoicesOptions),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("clarion-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    // One thread is enough to load two cores' worth of server, and a second one would only take the server's core away.
    let one_thread = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    };
    match command {
        Command::Accepts(options) => one_thread()?.block_on(accepts::run(options)),
        Command::Backlog(options) => one_thread()?.block_on(backlog::run(options)),
        Command::Bills(options) => one_thread()?.block_on(bills::run(options)),
        Command::Calls(options) => one_thread()?.block_on(calls::run(options)),
        Command::Sound(options) => one_thread()?.block_on(sound::run(options)),
        Command::Voices(options) => tokio::runtime::Runtime::new()?.block_on(voices::run(options)),
        // The telephone that hears every call works here too.
        Command::Compare(options) => {
            tokio::runtime::Runtime::new()?.block_on(compare::run(options))
        }
        Command::Console(options) => {
            tokio::runtime::Runtime::new()?.block_on(console::run(options))
        }
        Command::Job(options) => tokio::runtime::Runtime::new()?.block_on(job::run(options)),
        Command::Neighbours(options) => {
            tokio::runtime::Runtime::new()?.block_on(neighbours::run(options))
        }
        Command::Nuisance(nuisance) => one_thread()?.block_on(nuisance.run()),
        Command::Burn(burn) => burn.run(),
        Command::Nodes(options) => tokio::runtime::Runtime::new()?.block_on(nodes::run(options)),
        Command::Engine(engine) => tokio::runtime::Runtime::new()?.block_on(engine.run()),
    }
}
