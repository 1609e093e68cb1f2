//! `clarion callback …`: shows callbacks and their attempts, and sends one again.

use std::sync::Arc;

use clap::Subcommand;
use serde_json::{Value, json};

use super::print;
use crate::clock::Clock;
use crate::domain::account::AppId;
use crate::domain::call::CallSid;
use crate::domain::callback::{Callback, CallbackAttempt, CallbackState};
use crate::store::{CallbackFilter, Store, StoreError};

#[derive(Debug, Subcommand)]
pub enum CallbackCommand {
    /// List callbacks, those of the newest calls first
    List {
        /// Only callbacks in this state: waiting, delivering, delivered or given-up
        #[arg(long)]
        state: Option<CallbackState>,
        /// Only callbacks of this application
        #[arg(long)]
        app: Option<AppId>,
        /// Only callbacks to this receiver: name and port, such as example.com:443
        #[arg(long)]
        host: Option<String>,
        /// Only callbacks of calls before this one, for the next page
        #[arg(long, value_name = "CALLSID")]
        before: Option<CallSid>,
        /// Number of callbacks at most
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a callback with all its attempts
    Show {
        /// The callSid
        call_sid: CallSid,
        /// Show the body too, with the whole number and the data of the application
        #[arg(long)]
        body: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a callback again, whatever its state; a running server does so within seconds
    Replay {
        /// The callSid
        call_sid: CallSid,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(
    command: CallbackCommand,
    store: Arc<dyn Store>,
    clock: Clock,
) -> anyhow::Result<()> {
    match command {
        CallbackCommand::List {
            state,
            app,
            host,
            before,
            limit,
            json,
        } => {
            let filter = CallbackFilter {
                state,
                app,
                host,
                before,
                limit,
            };
            let found = store.callbacks(filter).await?;
            print(json, &found.iter().map(summary).collect());
        }
        CallbackCommand::Show {
            call_sid,
            body,
            json,
        } => show(&*store, &call_sid, body, json).await?,
        CallbackCommand::Replay { call_sid, json } => {
            store.replay_callback(&call_sid, clock.now()).await?;
            show(&*store, &call_sid, false, json).await?;
        }
    }
    Ok(())
}

async fn show(store: &dyn Store, sid: &CallSid, body: bool, json: bool) -> anyhow::Result<()> {
    let found = store.callback(sid).await?;
    let missing = || StoreError::Missing(format!("callback of call {sid}"));
    let (callback, attempts) = found.ok_or_else(missing)?;
    let mut value = summary(&callback);
    value["appId"] = callback.app.as_str().into();
    value["url"] = callback.url.without_query().into();
    value["webhookId"] = callback.webhook_id.as_str().into();
    value["owedAt"] = callback.owed_at.to_string().into();
    if body {
        value["body"] = callback.body.as_str().into();
    }
    value["history"] = attempts.iter().map(attempt).collect();
    if !json {
        value["history"] = numbered(&value["history"]);
    }
    print(json, &value);
    Ok(())
}

fn summary(callback: &Callback) -> Value {
    json!({
        "callSid": callback.call.as_str(),
        "state": callback.state.as_str(),
        "number": callback.number.as_ref().map(ToString::to_string),
        "host": callback.url.host(),
        "attempts": callback.attempts,
        "dueAt": callback.due_at.map(|time| time.to_string()),
        "finishedAt": callback.finished_at.map(|time| time.to_string()),
    })
}

fn attempt(attempt: &CallbackAttempt) -> Value {
    json!({
        "startedAt": attempt.started_at.to_string(),
        "milliseconds": attempt.milliseconds,
        "verdict": attempt.verdict.as_str(),
        "status": attempt.status,
        "error": attempt.error,
        "answer": attempt.answer,
    })
}

/// Numbers the attempts, so that people see each as a block of its own.
fn numbered(history: &Value) -> Value {
    let attempts = history.as_array().into_iter().flatten();
    let named = |(number, attempt): (usize, &Value)| ((number + 1).to_string(), attempt.clone());
    attempts.enumerate().map(named).collect()
}
