//! `clarion callback …`: shows callbacks and their attempts, and sends one again.

use anyhow::Context;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::print;
use crate::domain::account::AppId;
use crate::domain::call::CallSid;
use crate::domain::callback::{Callback, CallbackAttempt, CallbackKey, CallbackState};
use crate::management::{CallbackReplay, Management};
use crate::store::{CallbackFilter, ReplayFrom};

#[derive(Debug, Subcommand)]
pub enum CallbackCommand {
    /// List callbacks, those of the newest calls first
    List {
        /// Only callbacks in this state: waiting, delivering, delivered, given-up or superseded
        #[arg(long)]
        state: Option<CallbackState>,
        /// Only callbacks of this application
        #[arg(long)]
        app: Option<AppId>,
        /// Only callbacks to this receiver: name and port, such as example.com:443
        #[arg(long)]
        host: Option<String>,
        /// Only callbacks before this one, for the next page
        #[arg(long, value_name = "CALLSID")]
        before: Option<CallbackKey>,
        /// Number of callbacks at most
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a callback with all its attempts
    Show {
        /// The callSid; for an event with its number, such as CALLSID/3
        #[arg(value_name = "CALL_SID")]
        key: CallbackKey,
        /// Show the body too, with the whole number and the data of the application
        #[arg(long)]
        body: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a callback again, whatever its state, or many of them; a running server does so within seconds
    Replay(ReplayOptions),
}

#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// The callSid; for an event with its number, such as CALLSID/3
    #[arg(
        value_name = "CALL_SID",
        required_unless_present = "since",
        conflicts_with = "since"
    )]
    key: Option<CallbackKey>,
    /// Send the final callbacks of all calls again that were accepted since this moment, such as 2026-11-15T08:00:00Z, and were given up
    #[arg(long, value_name = "TIME")]
    since: Option<Timestamp>,
    /// Only those of this application
    #[arg(long, requires = "since")]
    app: Option<AppId>,
    /// Only those to this receiver: name and port, such as example.com:443
    #[arg(long, requires = "since")]
    host: Option<String>,
    /// Only those of calls after this one, to go on where a replay was broken off
    #[arg(long, requires = "since", value_name = "CALLSID")]
    after: Option<CallSid>,
    /// Those that were delivered, in place of those that were given up
    #[arg(long, requires = "since")]
    delivered: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ReplayOptions {
    async fn run(self, management: &Management) -> anyhow::Result<()> {
        if let Some(key) = &self.key {
            management.replay_callback(key).await?;
            return show(management, key, false, self.json).await;
        }
        let wanted = CallbackReplay {
            app: self.app,
            host: self.host,
            since: self
                .since
                .context("name a callSid, or a time with --since")?,
            after: self.after,
            from: if self.delivered {
                ReplayFrom::Delivered
            } else {
                ReplayFrom::GivenUp
            },
        };
        let (mut replayed, mut after) = (0, None);
        loop {
            let step = management.replay_callbacks(&wanted, after.take()).await;
            let step = step.with_context(|| match replayed {
                0 => "no callback is sent again".to_owned(),
                _ => format!("{replayed} callbacks are sent again, the others are not"),
            })?;
            replayed += step.count;
            match step.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        print(self.json, &json!({ "replayed": replayed }));
        Ok(())
    }
}

pub async fn run(command: CallbackCommand, management: &Management) -> anyhow::Result<()> {
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
            let page = management.callbacks(filter).await?;
            let found = page.callbacks.iter();
            print(json, &found.map(|one| summary(one, json)).collect());
            if let Some(until) = page.searched_until {
                eprintln!("searched back to {until}; add --before {until} to search further");
            }
        }
        CallbackCommand::Show { key, body, json } => show(management, &key, body, json).await?,
        CallbackCommand::Replay(replay) => replay.run(management).await?,
    }
    Ok(())
}

async fn show(
    management: &Management,
    key: &CallbackKey,
    body: bool,
    json: bool,
) -> anyhow::Result<()> {
    let (callback, attempts) = management.callback(key).await?;
    let mut value = summary(&callback, json);
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

/// People see an event by the name that they ask for it with.
fn summary(callback: &Callback, json: bool) -> Value {
    let key = &callback.key;
    let name = if json {
        key.call.to_string()
    } else {
        key.to_string()
    };
    json!({
        "callSid": name,
        "state": callback.state.as_str(),
        "number": callback.number.as_ref().map(ToString::to_string),
        "host": callback.url.host(),
        "attempts": callback.attempts,
        "dueAt": callback.due_at.map(|time| time.to_string()),
        "finishedAt": callback.finished_at.map(|time| time.to_string()),
        "event": key.is_event().then_some(key.seq),
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
