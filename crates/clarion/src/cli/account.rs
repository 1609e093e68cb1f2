//! `clarion account …`: main accounts.

use std::sync::Arc;

use anyhow::ensure;
use clap::{Args, Subcommand};
use ipnet::IpNet;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Given, OnOff, OrNone, limit, print};
use crate::clock::Clock;
use crate::config::parse_network;
use crate::domain::account::{
    Account, AccountChange, AccountLimits, AccountSid, AccountState, AuthToken, Permissions,
};
use crate::domain::call_window::CallWindow;
use crate::domain::money::Money;
use crate::domain::number_pattern::NumberPattern;
use crate::random;
use crate::store::{Store, StoreError};

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
        settings: AccountSettings,
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
        settings: AccountSettings,
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

#[derive(Debug, Args)]
pub struct AccountSettings {
    /// Name of the account
    #[arg(long)]
    name: Option<String>,
    /// State: active, not-activated, suspended or closed
    #[arg(long)]
    state: Option<AccountState>,
    /// Allow bills to be downloaded: on or off
    #[arg(long, value_name = "ON|OFF")]
    bill_download: Option<OnOff>,
    /// Allow requests to choose the caller number: on or off
    #[arg(long, value_name = "ON|OFF")]
    custom_display_number: Option<OnOff>,
    /// Caller numbers that may be shown, such as +864001234567,+86400*. Replaces the list; "none" empties it
    #[arg(long, value_name = "PATTERNS", allow_hyphen_values = true)]
    display_numbers: Option<String>,
    /// Addresses or networks that requests may come from. Replaces the list; "none" allows any
    #[arg(long, value_name = "NETWORKS")]
    allow_ips: Option<String>,
    /// Limit of requests per second; "default" is that of the settings
    #[arg(long, value_name = "N|default")]
    requests_per_second: Option<OrNone<u32>>,
    /// Limit of requests answered at the same time; "default" is that of the settings
    #[arg(long, value_name = "N|default")]
    requests_at_once: Option<OrNone<u32>>,
    /// Limit of calls started per second; "default" is that of the settings
    #[arg(long, value_name = "N|default")]
    calls_per_second: Option<OrNone<u32>>,
    /// Limit of calls in progress at the same time; "default" is that of the settings
    #[arg(long, value_name = "N|default")]
    calls_at_once: Option<OrNone<u32>>,
    /// Hours in which calls may be made, such as "1-5 0800-2100;6-7 1000-1800" (1 is Monday); "none" for any
    #[arg(long, value_name = "HOURS|none")]
    call_hours: Option<OrNone<CallWindow>>,
    /// Allow calls of priority 1 outside these hours: on or off
    #[arg(long, value_name = "ON|OFF")]
    urgent_outside_hours: Option<OnOff>,
    /// Prepaid balance; "none" keeps no balance
    #[arg(long, value_name = "AMOUNT|none")]
    balance: Option<OrNone<Money>>,
    /// Limit of what may be spent in all; "none" sets no limit
    #[arg(long, value_name = "AMOUNT|none")]
    spending_limit: Option<OrNone<Money>>,
}

impl AccountSettings {
    fn into_change(self, now: Timestamp) -> anyhow::Result<AccountChange> {
        Ok(AccountChange {
            name: self.name,
            auth_token: None,
            state: self.state,
            bill_download: self.bill_download.map(|switch| switch.0),
            custom_display_number: self.custom_display_number.map(|switch| switch.0),
            requests_per_second: limit("--requests-per-second", self.requests_per_second)?,
            requests_at_once: limit("--requests-at-once", self.requests_at_once)?,
            calls_per_second: limit("--calls-per-second", self.calls_per_second)?,
            calls_at_once: limit("--calls-at-once", self.calls_at_once)?,
            call_hours: self.call_hours.map(|value| value.0),
            urgent_outside_hours: self.urgent_outside_hours.map(|switch| switch.0),
            balance: self.balance.map(|value| value.0),
            spending_limit: self.spending_limit.map(|value| value.0),
            display_numbers: self
                .display_numbers
                .map(|text| list("--display-numbers", &text, str::parse::<NumberPattern>))
                .transpose()?,
            allowed_networks: self
                .allow_ips
                .map(|text| list::<IpNet>("--allow-ips", &text, parse_network))
                .transpose()?,
            changed_at: Some(now),
        })
    }
}

/// Reads a list. An empty one is a mistake: whoever wants to remove all of it writes "none".
fn list<T>(
    name: &str,
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> anyhow::Result<Vec<T>> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let items = text.split(',').map(str::trim);
    let items: Vec<_> = items.filter(|item| !item.is_empty()).collect();
    ensure!(
        !items.is_empty(),
        "{name} is empty: write none to remove the list"
    );
    let items = items.into_iter();
    items
        .map(|item| parse(item).map_err(anyhow::Error::msg))
        .collect()
}

pub async fn run(
    command: AccountCommand,
    store: Arc<dyn Store>,
    clock: Clock,
) -> anyhow::Result<()> {
    let now = clock.now();
    match command {
        AccountCommand::Add {
            sid,
            token,
            settings,
            json,
        } => {
            let mut account = Account {
                sid: sid.unwrap_or_else(|| random::id().parse().expect("hex digits are an id")),
                name: "unnamed".to_owned(),
                auth_token: token.map_or_else(new_token, |given| given.0),
                state: AccountState::Active,
                permissions: Permissions::default(),
                limits: AccountLimits::default(),
                balance: None,
                spending_limit: None,
                call_hours: None,
                display_numbers: Vec::new(),
                allowed_networks: Vec::new(),
                has_do_not_call: false,
                created_at: now,
                updated_at: now,
            };
            account.apply(settings.into_change(now)?);
            store.add_account(account.clone()).await?;
            print(json, &with_token(&account));
        }
        AccountCommand::Show { sid, json } => {
            let found = store.account(&sid).await?;
            let found = found.ok_or_else(|| StoreError::Missing(format!("account {sid}")))?;
            let mut value = describe(&found);
            if let Some(funds) = store.funds(&sid).await? {
                value["spent"] = funds.spent.to_string().into();
                value["reserved"] = funds.reserved.to_string().into();
            }
            print(json, &value);
        }
        AccountCommand::List { json } => {
            print(
                json,
                &store.accounts().await?.iter().map(describe).collect(),
            );
        }
        AccountCommand::Set {
            sid,
            settings,
            json,
        } => {
            print(
                json,
                &describe(
                    &store
                        .change_account(&sid, settings.into_change(now)?)
                        .await?,
                ),
            );
        }
        AccountCommand::Suspend { sid, hang_up, json } => {
            let change = AccountChange {
                state: Some(AccountState::Suspended),
                changed_at: Some(now),
                ..AccountChange::default()
            };
            let mut value = describe(&store.change_account(&sid, change).await?);
            if hang_up {
                value["callsToEnd"] = store.cancel_calls_of(&sid).await?.into();
            }
            print(json, &value);
        }
        AccountCommand::RotateToken { sid, token, json } => {
            let change = AccountChange {
                auth_token: Some(token.map_or_else(new_token, |given| given.0)),
                changed_at: Some(now),
                ..AccountChange::default()
            };
            print(
                json,
                &with_token(&store.change_account(&sid, change).await?),
            );
        }
    }
    Ok(())
}

fn new_token() -> AuthToken {
    random::id().parse().expect("hex digits are a token")
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
