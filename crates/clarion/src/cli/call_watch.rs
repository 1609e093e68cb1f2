//! `clarion call watch`: prints each step of a call as it happens, and ends with the call.
//!
//! It reads the database, by the key of the call, so it does not matter which node makes the call. It changes nothing: whoever stops watching does not stop
//! the call.

use std::collections::HashSet;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use tokio::time::Instant;

use super::call_steps;
use crate::clock::Clock;
use crate::domain::call::CallSid;
use crate::domain::callback::{Callback, CallbackState};
use crate::management::{CallStep, Management, ManagementError};

/// From one look at the database to the next.
const LOOK: Duration = Duration::from_millis(250);
/// A database that does not answer so often in a row is given up.
const FAILURES: u32 = 40;
/// The callback of a call that is over is waited for, until it was tried once, for this long.
const CALLBACK_PATIENCE: Duration = Duration::from_secs(10);
/// Nobody was told.
const NOT_REACHED: u8 = 3;
/// The call failed.
const FAILED: u8 = 4;

#[derive(Debug, Args)]
pub struct WatchCall {
    /// The callSid
    #[arg(value_name = "CALLSID")]
    pub call: CallSid,
    /// Print each step as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints what happens to a call until it is over. Returns the exit status.
pub async fn watch(
    call: &CallSid,
    json: bool,
    management: &Management,
) -> anyhow::Result<ExitCode> {
    let clock = management.clock();
    let (mut seen, mut told) = (None, HashSet::new());
    let (mut failures, mut over_since) = (0, None);
    loop {
        match management.look_again(seen.take(), call).await {
            Ok(Some(now)) => {
                failures = 0;
                let steps = now.steps(clock.now());
                let steps = steps.into_iter();
                let new = steps.filter(|step| told.insert(step.identity.clone()));
                if let Err(error) = print(new, json, clock) {
                    // The reader has seen enough (`clarion call watch … | head`).
                    let is_closed = error.kind() == ErrorKind::BrokenPipe;
                    return is_closed.then_some(ExitCode::SUCCESS).ok_or(error.into());
                }
                if let Some(state) = now.record.callback_state() {
                    let since = *over_since.get_or_insert_with(Instant::now);
                    let is_settled = now.callback.as_ref().is_none_or(was_tried);
                    if is_settled || since.elapsed() > CALLBACK_PATIENCE {
                        return Ok(exit_status(state));
                    }
                }
                seen = Some(now);
            }
            Ok(None) => bail!("there is no call {call}"),
            Err(error) => {
                failures += 1;
                give_up_after(failures, error)?;
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A database may be away for a moment.
fn give_up_after(failures: u32, error: ManagementError) -> anyhow::Result<()> {
    if failures < FAILURES {
        return Ok(());
    }
    Err(error).context("the call goes on, but it cannot be watched")
}

fn was_tried(callback: &Callback) -> bool {
    let is_open = matches!(
        callback.state,
        CallbackState::Waiting | CallbackState::Delivering
    );
    !is_open || callback.attempts > 0
}

/// By the state in the callback.
fn exit_status(state: char) -> ExitCode {
    match state {
        '0' => ExitCode::SUCCESS,
        '1' => ExitCode::from(NOT_REACHED),
        _ => ExitCode::from(FAILED),
    }
}

fn print(steps: impl Iterator<Item = CallStep>, json: bool, clock: &Clock) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for step in steps {
        if json {
            writeln!(out, "{}", call_steps::describe(&step, clock))?;
        } else {
            writeln!(out, "{}", call_steps::line(&step, clock))?;
        }
    }
    out.flush()
}
