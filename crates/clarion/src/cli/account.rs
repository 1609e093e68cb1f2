//! `clarion account …`: main accounts.

use clap::Subcommand;
use serde_json::{Value, json};

use super::setting_options::SettingOptions;
use super::{Given, print};
use crate::domain::account::{Account, AccountChange, AccountSid, AuthToken};
use crate::management::{Management, NewAccount};

#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Create an account and show its token, once
    Add {
        /// Account sid to use [default: a new one]
        #[arg(long)]
        sid: Option<AccountSid>,
        /// Auth token to use, better from a file or from standard input (-) than written out [default: a new one]
        #[arg(long, value_name = "TOKEN|@FILE|-")]
        token: Option<Given<AuthToken>>,
        #[command(flatten)]
        settings: SettingOptions<AccountChange>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show an account
    Show {
        /// The account sid
        sid: AccountSid,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List all accounts
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change an account; a running server follows within a second
    Set {
        /// The account sid
        sid: AccountSid,
        #[command(flatten)]
        settings: SettingOptions<AccountChange>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Refuse all requests of an account until its state is set to active again; its queued calls are not dialled
    Suspend {
        /// The account sid
        sid: AccountSid,
        /// Hang up its calls that ring or talk, too
        #[arg(long)]
        hang_up: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Give an account a new token; the old one stops working within a second
    RotateToken {
        /// The account sid
        sid: AccountSid,
        /// The new token, better from a file or from standard input (-) than written out [default: a random one]
        #[arg(long, value_name = "TOKEN|@FILE|-")]
        token: Option<Given<AuthToken>>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(command: AccountCommand, management: &Management) -> anyhow::Result<()> {
    match command {
        AccountCommand::Add {
            sid,
            token,
            settings,
            json,
        } => {
            let new = NewAccount {
                sid,
                token: token.map(|given| given.0),
                settings: *settings.0,
            };
            print(json, &with_token(&management.add_account(new).await?));
        }
        AccountCommand::Show { sid, json } => {
            let mut value = describe(&management.account(&sid).await?);
            if let Some(funds) = management.funds(&sid).await? {
                value["spent"] = funds.spent.to_string().into();
                value["reserved"] = funds.reserved.to_string().into();
            }
            print(json, &value);
        }
        AccountCommand::List { json } => {
            let accounts = management.accounts().await?;
            print(json, &accounts.iter().map(describe).collect());
        }
        AccountCommand::Set {
            sid,
            settings,
            json,
        } => {
            let changed = management.set_account(&sid, *settings.0).await?;
            print(json, &describe(&changed));
        }
        AccountCommand::Suspend { sid, hang_up, json } => {
            let (account, to_end) = management.suspend_account(&sid, hang_up).await?;
            let mut value = describe(&account);
            if let Some(to_end) = to_end {
                value["callsToEnd"] = to_end.into();
            }
            print(json, &value);
        }
        AccountCommand::RotateToken { sid, token, json } => {
            let token = token.map(|given| given.0);
            let rotated = management.rotate_token(&sid, token).await?;
            print(json, &with_token(&rotated));
        }
    }
    Ok(())
}

/// Describes an account with its token, which is never shown again.
fn with_token(account: &Account) -> Value {
    let mut value = describe(account);
    value["authToken"] = account.auth_token.reveal().into();
    value
}

fn describe(account: &Account) -> Value {
    let texts = |items: Vec<String>| Value::from(items);
    json!({
        "accountSid": account.sid.as_str(),
        "name": account.name,
        "state": account.state.as_str(),
        "createdAt": account.created_at.to_string(),
        "updatedAt": account.updated_at.to_string(),
        "balance": account.balance.map(|money| money.to_string()),
        "spendingLimit": account.spending_limit.map(|money| money.to_string()),
        "permissions": { "billDownload": account.permissions.bill_download, "customDisplayNumber": account.permissions.custom_display_number, "urgentOutsideHours": account.permissions.urgent_outside_hours },
        "callHours": account.call_hours.as_ref().map(ToString::to_string),
        "displayNumbers": texts(account.display_numbers.iter().map(ToString::to_string).collect()),
        "allowedNetworks": texts(account.allowed_networks.iter().map(ToString::to_string).collect()),
        "limits": {
            "requestsPerSecond": account.limits.requests_per_second,
            "requestsAtOnce": account.limits.requests_at_once,
            "callsPerSecond": account.limits.calls_per_second,
            "callsAtOnce": account.limits.calls_at_once,
        },
    })
}
