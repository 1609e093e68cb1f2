//! `clarion rate …`: what an account's calls cost. The rates for all other accounts are in the settings (`[rates]`).

use clap::Subcommand;
use serde_json::{Value, json};

use super::print;
use crate::domain::account::AccountSid;
use crate::domain::bill::rating::{Prefix, Rate};
use crate::domain::money::Money;
use crate::management::Management;

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

pub async fn run(command: RateCommand, management: &Management) -> anyhow::Result<()> {
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
            print(json, &describe(&management.set_rate(&account, rate).await?));
        }
        RateCommand::List { account, json } => {
            let rates = management.rates(account.as_ref()).await?;
            print(json, &rates.iter().map(describe).collect());
        }
        RateCommand::Remove { account, prefix } => {
            management.remove_rate(&account, &prefix).await?;
        }
    }
    Ok(())
}

fn describe(rate: &Rate) -> Value {
    json!({
        "prefix": rate.prefix.to_string(),
        "price": rate.price.to_string(),
        "unitSeconds": rate.unit_seconds,
        "unanswered": rate.unanswered.to_string(),
    })
}
