//! `clarion call`: places a call, shows and watches calls, cancels one, stops all dialling, and bars numbers.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Subcommand;
use serde_json::{Value, json};

use super::call_place::PlaceCall;
use super::call_steps::SeenCall;
use super::call_trace::CallTrace;
use super::call_watch::{self, WatchCall};
use super::{call_story, print};
use crate::clock::Clock;
use crate::config::Config;
use crate::dispatch::STOP_ALL;
use crate::domain::account::AccountSid;
use crate::domain::call::CallSid;
use crate::domain::call_record::CallFilter;
use crate::domain::call_state::CallState;
use crate::domain::phone_number::PhoneNumber;
use crate::store::Store;

#[derive(Debug, Subcommand)]
pub enum CallCommand {
    /// Request a call or a notice, as an application does: signed, over HTTPS
    ///
    /// Prints the callSid; or the code and the sentence of the refusal, with exit status 1. With --watch the exit status is that of `clarion call watch`.
    Place(Box<PlaceCall>),
    /// Print each step of a call as it happens, until the call is over
    ///
    /// Ctrl-C stops watching, not the call. Exit status: 0 somebody was told; 3 nobody was reached; 4 the call failed (states 0, 1 and 2 of the callback); 1 it could not be watched.
    Watch(WatchCall),
    /// List calls, the newest first
    List {
        /// Only calls of this account
        #[arg(long)]
        account: Option<AccountSid>,
        /// Only calls that have not ended
        #[arg(long)]
        alive: bool,
        /// Only calls before this one, for the next page
        #[arg(long, value_name = "CALLSID")]
        before: Option<CallSid>,
        /// Number of calls at most
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show everything that is known about a call
    Show {
        /// The callSid
        call: CallSid,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the SIP messages of a call, a number or a trunk, from the memory of the server on this machine
    Trace(CallTrace),
    /// Cancel a call: one that waits is not dialled, one in progress is hung up
    Cancel {
        /// The callSid
        call: CallSid,
    },
    /// Stop dialling; calls in progress go on, queued calls wait
    StopAll,
    /// Resume dialling
    Resume,
    /// Never call a number; requests for it are refused with 108035
    Bar {
        /// The number, with its country code
        number: String,
    },
    /// Allow calls to a barred number again
    Unbar {
        /// The number, with its country code
        number: String,
    },
    /// List barred numbers
    Barred {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(
    command: CallCommand,
    config: &Config,
    store: Arc<dyn Store>,
    clock: Clock,
) -> anyhow::Result<ExitCode> {
    match command {
        CallCommand::Place(place) => return place.run(config, &*store, &clock).await,
        CallCommand::Watch(WatchCall { call, json }) => {
            return call_watch::watch(&call, json, &*store, &clock).await;
        }
        CallCommand::List {
            account,
            alive,
            before,
            limit,
            json,
        } => {
            let filter = CallFilter {
                account,
                alive,
                before,
                limit,
            };
            let calls = store.list_calls(filter).await?;
            let rows = calls.iter().map(|call| call_story::outline(call, &clock));
            let rows: Vec<_> = rows.collect();
            print(json, &Value::Array(rows));
        }
        CallCommand::Show { call, json } => {
            let seen = SeenCall::look(&*store, &call).await?;
            let seen = seen.with_context(|| format!("there is no call {call}"))?;
            print(json, &call_story::tell(&seen, &clock, json));
        }
        CallCommand::Trace(trace) => trace.run(config).await?,
        CallCommand::Cancel { call } => match store.cancel_call(&call).await? {
            Some(CallState::Queued) => println!("{call} will not be dialled"),
            Some(_) => println!("{call} is being hung up"),
            None => bail!("{call} has ended already, or there is no such call"),
        },
        CallCommand::StopAll => {
            store.set_switch(STOP_ALL, Some("on"), clock.now()).await?;
            println!("nothing is dialled any more, until `clarion call resume`");
        }
        CallCommand::Resume => {
            store.set_switch(STOP_ALL, None, clock.now()).await?;
            println!("calls are dialled again");
        }
        CallCommand::Bar { number } => bar(&number, true, config, &*store, &clock).await?,
        CallCommand::Unbar { number } => bar(&number, false, config, &*store, &clock).await?,
        CallCommand::Barred { json } => print(json, &json!(store.barred_numbers().await?)),
    }
    Ok(ExitCode::SUCCESS)
}

async fn bar(
    number: &str,
    barred: bool,
    config: &Config,
    store: &dyn Store,
    clock: &Clock,
) -> anyhow::Result<()> {
    let number = PhoneNumber::parse(number, &config.numbers)
        .map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
    let changed = store
        .bar_number(number.digits(), barred, clock.now())
        .await?;
    let now = if barred {
        "is never called"
    } else {
        "may be called"
    };
    println!(
        "+{} {now}{}",
        number.digits(),
        if changed { "" } else { ", as before" }
    );
    Ok(())
}
