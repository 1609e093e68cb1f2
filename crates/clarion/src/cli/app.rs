//! `clarion app …`: applications of an account.

use clap::Subcommand;
use serde_json::{Value, json};

use super::print;
use super::setting_options::SettingOptions;
use crate::domain::account::{AccountSid, AppId, Application, ApplicationChange, BillJsonKey};
use crate::domain::voice_name::VoiceName;
use crate::management::{Management, NewApplication};

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
    /// Sign its callbacks with a new secret, which is shown once; a running server follows within a second
    RotateSecret {
        /// The application id
        app_id: AppId,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change an application; a running server follows within a second
    Set {
        /// The application id
        app_id: AppId,
        #[command(flatten)]
        settings: SettingOptions<ApplicationChange>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(command: AppCommand, management: &Management) -> anyhow::Result<()> {
    match command {
        AppCommand::Add {
            account,
            app_id,
            name,
            sign_callbacks,
            json,
        } => {
            let new = NewApplication {
                account,
                id: app_id,
                name,
                signs_callbacks: sign_callbacks,
            };
            let application = management.add_application(new).await?;
            print(json, &describe_with_secret(&application));
        }
        AppCommand::RotateSecret { app_id, json } => {
            let rotated = management.rotate_callback_secret(&app_id).await?;
            print(json, &describe_with_secret(&rotated));
        }
        AppCommand::List { account, json } => {
            let applications = management.applications(&account).await?;
            print(json, &applications.iter().map(describe).collect());
        }
        AppCommand::Set {
            app_id,
            settings,
            json,
        } => {
            let changed = management.set_application(&app_id, *settings.0).await?;
            print(json, &describe(&changed));
        }
    }
    Ok(())
}

fn describe_with_secret(application: &Application) -> Value {
    let mut value = describe(application);
    if let Some(secret) = &application.callback_secret {
        value["callbackSecret"] = secret.reveal().into();
    }
    value
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
        "voice": application.voice.as_ref().map(VoiceName::as_str),
    })
}
