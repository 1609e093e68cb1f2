//! `clarion serve`: runs the server until it is told to stop.

use std::io::Write;

use anyhow::{bail, ensure};
use clap::Args;
use jiff::SignedDuration;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use super::block_on;
use crate::clock::Clock;
use crate::config::Config;
use crate::server::Server;
use crate::telemetry;

#[derive(Debug, Args)]
pub struct Serve {
    /// For the demonstration: a clock that is so many seconds ahead of the machine's
    #[arg(long, hide = true, value_name = "SECONDS", default_value_t = 0)]
    demo_clock_ahead: u32,
    /// For tests: as if the machine's clock were so many seconds ahead
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, value_name = "SECONDS", default_value_t = 0)]
    clock_skew: i64,
    /// For tests: tasks that panic as soon as the server runs
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, value_name = "TASK")]
    panic_task: Vec<String>,
}

impl Serve {
    /// Returns the server's clock. A clock that is ahead makes wrong bills, so it is only for a server that can call nobody and that nobody
    /// else reaches.
    fn clock(&self, config: &Config) -> anyhow::Result<Clock> {
        let clock = Clock::new(config.time_zone());
        #[cfg(debug_assertions)]
        clock.skew(SignedDuration::from_secs(self.clock_skew));
        if self.demo_clock_ahead > 0 {
            let real = config.trunks.iter().find(|trunk| trunk.loopback.is_none());
            let reached = config.http.listen.iter().find(|at| !at.ip().is_loopback());
            ensure!(
                real.is_none() && reached.is_none(),
                "--demo-clock-ahead is for the demonstration: every trunk must be a loopback, and http.listen must name addresses of this machine alone"
            );
            tracing::info!(
                seconds = self.demo_clock_ahead,
                "the clock of this server is ahead, as the demonstration wants it"
            );
            clock.shift(SignedDuration::from_secs(self.demo_clock_ahead.into()));
        }
        Ok(clock)
    }
}

pub fn run(serve: &Serve, config: Config) -> anyhow::Result<()> {
    telemetry::start_logging(&config.log)?;
    raise_file_limit(config.http.max_connections);
    block_on(async {
        // The handlers come before anything else, so that a signal during the start also stops the server.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let clock = serve.clock(&config)?;
        let scheme = if config.http.plain { "http" } else { "https" };
        let database = config.database.clone();
        let console_scheme = if config.console.plain {
            "http"
        } else {
            "https"
        };
        let server = Server::start(config, clock).await?;
        for address in &server.addresses {
            say(&format!(
                "Clarion serves {scheme}://{address} from {database}"
            ));
        }
        for address in &server.console {
            say(&format!(
                "Operators find the console at {console_scheme}://{address}"
            ));
        }
        #[cfg(debug_assertions)]
        for task in &serve.panic_task {
            ensure!(
                server.supervisor().request_panic_at_once(task),
                "there is no task {task}"
            );
        }
        if let Some(ca) = &server.ca {
            let ca = std::path::absolute(ca)?;
            say(&format!(
                "Clients that verify the certificate need this CA file: {}",
                ca.display()
            ));
        }
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            failure = server.failed() => {
                // There is no orderly stop: calls under way are recovered by the next start or by another node, as after a crash.
                tracing::error!(%failure, "stopping, so that the service manager starts the server anew");
                bail!("{failure}; the server cannot go on without it");
            }
        }
        tracing::info!("stopping: nothing new is accepted, what has begun is finished");
        server.stop().await;
        Ok(())
    })
}

/// Prints a line. The reader may have gone away (`clarion serve | head -1`), and `println!` would then panic and end the server.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Raises the limit of open files. Every connection is a file, and the usual limit of 1024 is for programs that do not ask for more. A
/// program may ask up to the hard limit.
fn raise_file_limit(connections: usize) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit on open files cannot be raised");
    }
    if limit
        .maximum
        .is_some_and(|limit| limit < connections as u64)
    {
        tracing::warn!(
            "http.max_connections is {connections}, but the hard limit on open files is lower"
        );
    }
}
