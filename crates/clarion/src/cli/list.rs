//! `clarion list …`: lists of numbers that an account keeps, whom notices call by `@name`.

use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::print;
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::account::AccountSid;
use crate::domain::call_list::{CallList, ListName, ListedNumber};
use crate::store::{Store, StoreError};

#[derive(Debug, Subcommand)]
pub enum ListCommand {
    /// Make a new list
    Add(ListNumbers),
    /// Show a list of an account, or all of them
    Show {
        /// The account
        #[arg(long)]
        account: AccountSid,
        /// Name of the list [default: all lists]
        name: Option<ListName>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Replace the numbers of a list; notices under way follow from their next attempt on
    Set(ListNumbers),
    /// Remove a list; notices under way call nobody of it any more
    Remove {
        /// The account
        #[arg(long)]
        account: AccountSid,
        /// Name of the list
        name: ListName,
    },
}

#[derive(Debug, Args)]
pub struct ListNumbers {
    /// The account
    #[arg(long)]
    account: AccountSid,
    /// Name of the list: up to 32 letters, digits, - or _; requests write @ before it
    name: ListName,
    /// Numbers in the order of their turns, 1 to 20; a name may follow, such as 13800000000="Li Wei"
    #[arg(required = true, value_name = "NUMBER[=NAME]")]
    numbers: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ListNumbers {
    fn read(self, config: &Config, clock: &Clock) -> anyhow::Result<CallList> {
        let numbers = self.numbers.iter();
        let numbers = numbers.map(|text| ListedNumber::parse(text, &config.numbers));
        let list = numbers
            .collect::<Result<_, _>>()
            .and_then(|numbers| CallList::new(self.account, self.name, numbers, clock.now()));
        list.map_err(anyhow::Error::msg)
    }
}

pub async fn run(
    command: ListCommand,
    config: &Config,
    store: Arc<dyn Store>,
    clock: Clock,
) -> anyhow::Result<()> {
    match command {
        ListCommand::Add(numbers) => {
            let is_json = numbers.json;
            let list = numbers.read(config, &clock)?;
            store.add_list(list.clone()).await?;
            let added = find(&*store, &list.account, &list.name).await?;
            show(is_json, &added, &clock);
        }
        ListCommand::Set(numbers) => {
            let is_json = numbers.json;
            let list = numbers.read(config, &clock)?;
            store.set_list(list.clone()).await?;
            let changed = find(&*store, &list.account, &list.name).await?;
            show(is_json, &changed, &clock);
        }
        ListCommand::Show {
            account,
            name: Some(name),
            json,
        } => {
            let list = find(&*store, &account, &name).await?;
            show(json, &list, &clock);
        }
        ListCommand::Show {
            account,
            name: None,
            json,
        } => show_all(&*store, &account, json, &clock).await?,
        ListCommand::Remove { account, name } => {
            store.remove_list(&account, &name).await?;
            println!("the list {name} is removed");
        }
    }
    Ok(())
}

async fn find(
    store: &dyn Store,
    account: &AccountSid,
    name: &ListName,
) -> Result<CallList, StoreError> {
    let lists = store.lists_named(account, std::slice::from_ref(name));
    let missing = || StoreError::Missing(format!("list {name} of account {account}"));
    lists.await?.into_iter().next().ok_or_else(missing)
}

async fn show_all(
    store: &dyn Store,
    account: &AccountSid,
    json: bool,
    clock: &Clock,
) -> anyhow::Result<()> {
    if store.account(account).await?.is_none() {
        return Err(StoreError::Missing(format!("account {account}")).into());
    }
    let lists = store.lists(account).await?;
    if json || lists.is_empty() {
        print(json, &lists.iter().map(describe).collect());
        return Ok(());
    }
    for list in &lists {
        show(false, list, clock);
    }
    Ok(())
}

fn show(json: bool, list: &CallList, clock: &Clock) {
    if json {
        print(true, &describe(list));
        return;
    }
    let changed = list.updated_at.to_zoned(clock.zone().clone());
    println!(
        "{:<22} changed {}",
        list.name.to_string(),
        changed.strftime("%Y-%m-%d %H:%M:%S")
    );
    for (place, listed) in (1..).zip(&list.numbers) {
        let person = listed.person.as_deref().unwrap_or("-");
        println!("  {place:<4}{:<16} {person}", listed.called);
    }
}

fn describe(list: &CallList) -> Value {
    let numbers = list.numbers.iter();
    let numbers = numbers.map(|listed| json!({ "number": listed.called, "name": listed.person }));
    json!({
        "name": list.name.as_str(),
        "numbers": numbers.collect::<Vec<_>>(),
        "updatedAt": list.updated_at.to_string(),
    })
}
