//! `clarion call`: shows calls, cancels one, stops all dialling, and bars numbers.

use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{plain, print};
use crate::clock::Clock;
use crate::config::Config;
use crate::dispatch::STOP_ALL;
use crate::domain::account::AccountSid;
use crate::domain::attempt::{Attempt, CallHistory, LegOfCall};
use crate::domain::call::CallSid;
use crate::domain::call_state::CallState;
use crate::domain::claim::{CallFilter, CallRecord};
use crate::domain::outcome::Outcome;
use crate::domain::phone_number::PhoneNumber;
use crate::store::Store;

#[derive(Debug, Subcommand)]
pub enum CallCommand {
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
) -> anyhow::Result<()> {
    match command {
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
            let rows: Vec<_> = calls.iter().map(|call| describe(call, &clock)).collect();
            print(json, &Value::Array(rows));
        }
        CallCommand::Show { call, json } => {
            let record = store.call_record(&call).await?;
            let record = record.with_context(|| format!("there is no call {call}"))?;
            let mut shown = describe(&record, &clock);
            let history = store.call_history(&call).await?;
            add_history(&mut shown, &call, &history, &clock, json);
            print(json, &shown);
        }
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
    Ok(())
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

fn describe(call: &CallRecord, clock: &Clock) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| local(time, clock));
    json!({
        "callSid": call.sid.as_str(),
        "to": call.number.to_string(),
        "state": call.state,
        "outcome": call.outcome.map(Outcome::as_str),
        "accountSid": call.account.as_str(),
        "appId": call.app.as_str(),
        "caller": call.caller,
        "trunk": call.trunk,
        "tries": call.tries,
        "accepted": time(Some(call.accepted_at)),
        "due": time(call.due_at),
        "dialled": time(call.dialled_at),
        "rang": time(call.rang_at),
        "answered": time(call.answered_at),
        "ended": time(call.ended_at),
        "sipCode": call.sip_code,
        "reason": call.reason,
    })
}

fn local(time: Timestamp, clock: &Clock) -> String {
    let local = time.to_zoned(clock.zone().clone());
    local.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

/// Attempts and legs, for people one a line.
fn add_history(
    shown: &mut Value,
    call: &CallSid,
    history: &CallHistory,
    clock: &Clock,
    json: bool,
) {
    let attempts = history.attempts.iter();
    let attempts = attempts.map(|attempt| describe_attempt(call, attempt, clock));
    let legs = history.legs.iter().map(|leg| describe_leg(leg, clock));
    let (attempts, legs): (Vec<_>, Vec<_>) = (attempts.collect(), legs.collect());
    if json {
        (shown["attempts"], shown["legs"]) = (attempts.into(), legs.into());
        return;
    }
    for (name, rows) in [("attempt", attempts), ("leg", legs)] {
        for (number, row) in (1..).zip(rows) {
            shown[format!("{name} {number}")] = in_one_line(&row).into();
        }
    }
}

fn describe_attempt(call: &CallSid, attempt: &Attempt, clock: &Clock) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| local(time, clock));
    json!({
        "to": attempt.to.to_string(),
        "outcome": attempt.outcome.as_str(),
        "orderId": attempt.number.order_id(call),
        "dialled": time(attempt.dialled_at),
        "answered": time(attempt.answered_at),
        "ended": time(Some(attempt.ended_at)),
    })
}

fn describe_leg(of_call: &LegOfCall, clock: &Clock) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| local(time, clock));
    let (leg, media) = (&of_call.leg, &of_call.leg.media);
    let with_sound = |figure: Value| media.codec.as_ref().map(|_| figure);
    json!({
        "attempt": of_call.attempt.number(),
        "trunk": leg.trunk,
        "address": leg.address.to_string(),
        "transport": leg.transport,
        "sent": time(Some(leg.sent_at)),
        "rang": time(leg.rang_at),
        "answered": time(leg.answered_at),
        "ended": time(Some(leg.ended_at)),
        "sipCode": leg.sip_code,
        "q850Cause": leg.q850_cause,
        "phrase": leg.phrase,
        "hungUpBy": leg.hung_up_by.as_str(),
        "codec": media.codec,
        "packetsSent": with_sound(media.packets_sent.into()),
        "packetsLate": with_sound(media.packets_late.into()),
        "packetsReceived": with_sound(media.packets_received.into()),
        "packetsLost": with_sound(media.packets_lost.into()),
        "jitterMs": with_sound(json!(media.jitter.as_secs_f64() * 1000.0)),
        "worstJitterMs": with_sound(json!(media.worst_jitter.as_secs_f64() * 1000.0)),
    })
}

/// Names and values of what there is.
fn in_one_line(row: &Value) -> String {
    let fields = row.as_object().into_iter().flatten();
    let fields = fields.filter(|(_, value)| !value.is_null());
    let fields = fields.map(|(name, value)| format!("{name} {}", plain(value)));
    fields.collect::<Vec<_>>().join(", ")
}
