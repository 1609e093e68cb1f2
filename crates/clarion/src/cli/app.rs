//! `clarion app …`: applications of an account.

use std::sync::Arc;

use clap::Subcommand;
use serde_json::{Value, json};

use super::{Given, OrNone, limit, print};
use crate::clock::Clock;
use crate::domain::account::{
    AccountSid, AppId, AppLimits, AppState, Application, ApplicationChange, BillJsonKey,
    CallbackSecret,
};
use crate::random;
use crate::store::{Store, StoreError};

#[derive(Debug, Subcommand)]
pub enum AppCommand {
    /// Create an application
    Add {
        /// The account that it belongs to
        #[arg(long)]
        account: AccountSid,
        /// Application id to use [default: a new one]
        #[arg(long)]
        app_id: Option<AppId>,
        /// Name of the application
        #[arg(long, default_value = "unnamed")]
        name: String,
        /// Sign this application's callbacks with a new secret, which is shown once
        #[arg(long)]
        sign_callbacks: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the applications of an account
    List {
        /// The account
        #[arg(long)]
        account: AccountSid,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change an application; a running server follows within a second
    Set {
        /// The application id
        app_id: AppId,
        /// Name of the application
        #[arg(long)]
        name: Option<String>,
        /// State: active, disabled or deleted
        #[arg(long)]
        state: Option<AppState>,
        /// Secret that signs callbacks, beginning with whsec_, better from a file or from standard input (-) than written out; "none" signs no callbacks
        #[arg(long, value_name = "SECRET|@FILE|-|none")]
        callback_secret: Option<OrNone<Given<CallbackSecret>>>,
        /// Limit of calls started per second, beside that of the account; "none" sets no limit
        #[arg(long, value_name = "N|none")]
        calls_per_second: Option<OrNone<u32>>,
        /// Limit of calls in progress at the same time, beside that of the account; "none" sets no limit
        #[arg(long, value_name = "N|none")]
        calls_at_once: Option<OrNone<u32>>,
        /// What the answer with a bill calls the address in JSON, for clients that know only one: downurl or downUrl; "none" means the platform's
        #[arg(long, value_name = "KEY|none")]
        bill_json_key: Option<OrNone<BillJsonKey>>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(command: AppCommand, store: Arc<dyn Store>, clock: Clock) -> anyhow::Result<()> {
    match command {
        AppCommand::Add {
            account,
            app_id,
            name,
            sign_callbacks,
            json,
        } => {
            let application = Application {
                id: app_id.unwrap_or_else(|| random::id().parse().expect("hex digits are an id")),
                account,
                name,
                state: AppState::Active,
                callback_secret: sign_callbacks.then(|| CallbackSecret::from_key(&random::bytes())),
                limits: AppLimits::default(),
                created_at: clock.now(),
                bill_json_key: None,
            };
            store.add_application(application.clone()).await?;
            let mut value = describe(&application);
            if let Some(secret) = &application.callback_secret {
                value["callbackSecret"] = secret.reveal().into();
            }
            print(json, &value);
        }
        AppCommand::List { account, json } => {
            if store.account(&account).await?.is_none() {
                return Err(StoreError::Missing(format!("account {account}")).into());
            }
            print(
                json,
                &store
                    .applications(&account)
                    .await?
                    .iter()
                    .map(describe)
                    .collect(),
            );
        }
        AppCommand::Set {
            app_id,
            name,
            state,
            callback_secret,
            calls_per_second,
            calls_at_once,
            bill_json_key,
            json,
        } => {
            let change = ApplicationChange {
                name,
                state,
                callback_secret: callback_secret.map(|value| value.0.map(|given| given.0)),
                calls_per_second: limit("--calls-per-second", calls_per_second)?,
                calls_at_once: limit("--calls-at-once", calls_at_once)?,
                bill_json_key: bill_json_key.map(|key| key.0),
            };
            print(
                json,
                &describe(&store.change_application(&app_id, change).await?),
            );
        }
    }
    Ok(())
}

fn describe(application: &Application) -> Value {
    json!({
        "appId": application.id.as_str(),
        "name": application.name,
        "state": application.state.as_str(),
        "createdAt": application.created_at.to_string(),
        "account": application.account.as_str(),
        "signsCallbacks": application.callback_secret.is_some(),
        "callsPerSecond": application.limits.calls_per_second,
        "callsAtOnce": application.limits.calls_at_once,
        "billJsonKey": application.bill_json_key.map(BillJsonKey::as_str),
    })
}
