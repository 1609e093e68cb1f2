//! `clarion rate …`: what an account's calls cost. The rates for all other accounts are in the settings (`[rates]`).

use std::sync::Arc;

use clap::Subcommand;
use serde_json::{Value, json};

use super::print;
use crate::domain::account::AccountSid;
use crate::domain::bill::rating::{Prefix, Rate};
use crate::domain::money::Money;
use crate::store::{Store, StoreError};

#[derive(Debug, Subcommand)]
pub enum RateCommand {
    /// Set the price of calls to numbers with a prefix; the longest prefix that matches counts
    Set {
        /// The account
        #[arg(long)]
        account: AccountSid,
        /// Country code and beginning of the number, such as +86138; * is all numbers
        #[arg(allow_hyphen_values = true)]
        prefix: Prefix,
        /// Price per unit, such as 0.055; a unit that has begun counts as whole
        price: Money,
        /// Length of a unit in seconds
        #[arg(long, default_value_t = 60)]
        unit: u32,
        /// Price of a call that rang, was busy or was declined
        #[arg(long, default_value = "0")]
        unanswered: Money,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List rates
    List {
        /// The account [default: the rates of the settings, for accounts without their own]
        #[arg(long)]
        account: Option<AccountSid>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a rate; a shorter prefix or the settings count again
    Remove {
        /// The account
        #[arg(long)]
        account: AccountSid,
        /// Prefix of the rate
        prefix: Prefix,
    },
}

pub async fn run(command: RateCommand, store: Arc<dyn Store>) -> anyhow::Result<()> {
    match command {
        RateCommand::Set {
            account,
            prefix,
            price,
            unit,
            unanswered,
            json,
        } => {
            let rate = Rate {
                prefix,
                unit_seconds: unit,
                price,
                unanswered,
            };
            let rate = rate.check().map_err(anyhow::Error::msg)?;
            check_account(&*store, &account).await?;
            store.set_rate(&account, rate.clone()).await?;
            print(json, &describe(&rate));
        }
        RateCommand::List { account, json } => {
            if let Some(account) = &account {
                check_account(&*store, account).await?;
            }
            let rates = store.rates(account.as_ref()).await?;
            print(json, &rates.iter().map(describe).collect());
        }
        RateCommand::Remove { account, prefix } => {
            if !store.remove_rate(&account, &prefix).await? {
                return Err(
                    StoreError::Missing(format!("rate {prefix} of account {account}")).into(),
                );
            }
        }
    }
    Ok(())
}

async fn check_account(store: &dyn Store, sid: &AccountSid) -> Result<(), StoreError> {
    match store.account(sid).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::Missing(format!("account {sid}"))),
    }
}

fn describe(rate: &Rate) -> Value {
    json!({
        "prefix": rate.prefix.to_string(),
        "price": rate.price.to_string(),
        "unitSeconds": rate.unit_seconds,
        "unanswered": rate.unanswered.to_string(),
    })
}
