//! `clarion call`: places a call, shows and watches calls, cancels one, stops all dialling, and bars numbers.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::call_list::ListCalls;
use super::call_place::PlaceCall;
use super::call_trace::CallTrace;
use super::call_watch::{self, WatchCall};
use super::{call_story, print};
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::management::{BarredNumber, Management};

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
    List(Box<ListCalls>),
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
    /// Make a call again that has ended: the same request, a new callSid, the checks of today
    Again {
        /// The callSid
        call: CallSid,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
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

pub async fn run(command: CallCommand, management: &Management) -> anyhow::Result<ExitCode> {
    let clock = management.clock();
    match command {
        CallCommand::Place(place) => return place.run(management).await,
        CallCommand::Watch(WatchCall { call, json }) => {
            return call_watch::watch(&call, json, management).await;
        }
        CallCommand::List(list) => list.run(management).await?,
        CallCommand::Show { call, json } => {
            let seen = management.call(&call).await?;
            print(json, &call_story::tell(&seen, clock, json));
        }
        CallCommand::Trace(trace) => trace.run(management.config()).await?,
        CallCommand::Again { call, json } => {
            let again = management.call_again(&call).await?;
            if json {
                print(true, &json!({ "callSid": again.as_str() }));
            } else {
                println!("{again}");
            }
        }
        CallCommand::Cancel { call } => match management.cancel_call(&call).await? {
            CallState::Queued => println!("{call} will not be dialled"),
            _ => println!("{call} is being hung up"),
        },
        CallCommand::StopAll => {
            management.stop_all().await?;
            println!("nothing is dialled any more, until `clarion call resume`");
        }
        CallCommand::Resume => {
            management.resume().await?;
            println!("calls are dialled again");
        }
        CallCommand::Bar { number } => tell_barred(&management.bar_number(&number).await?),
        CallCommand::Unbar { number } => tell_barred(&management.unbar_number(&number).await?),
        CallCommand::Barred { json } => print(json, &json!(management.barred_numbers().await?)),
    }
    Ok(ExitCode::SUCCESS)
}

fn tell_barred(number: &BarredNumber) {
    let now = if number.is_barred {
        "is never called"
    } else {
        "may be called"
    };
    let before = if number.is_new { "" } else { ", as before" };
    println!("+{} {now}{before}", number.digits);
}
