//! `clarion list …`: lists of numbers that an account keeps, whom notices call by `@name`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::print;
use crate::clock::Clock;
use crate::domain::account::AccountSid;
use crate::domain::call_list::{CallList, ListName};
use crate::management::{Management, WrittenList};

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

pub async fn run(command: ListCommand, management: &Management) -> anyhow::Result<()> {
    let clock = management.clock();
    match command {
        ListCommand::Add(numbers) => {
            let (json, written) = numbers.written();
            show(json, &management.add_list(written).await?, clock);
        }
        ListCommand::Set(numbers) => {
            let (json, written) = numbers.written();
            show(json, &management.set_list(written).await?, clock);
        }
        ListCommand::Show {
            account,
            name: Some(name),
            json,
        } => show(json, &management.list(&account, &name).await?, clock),
        ListCommand::Show {
            account,
            name: None,
            json,
        } => show_all(json, &management.lists(&account).await?, clock),
        ListCommand::Remove { account, name } => {
            management.remove_list(&account, &name).await?;
            println!("the list {name} is removed");
        }
    }
    Ok(())
}

impl ListNumbers {
    fn written(self) -> (bool, WrittenList) {
        let written = WrittenList {
            account: self.account,
            name: self.name,
            numbers: self.numbers,
        };
        (self.json, written)
    }
}

fn show_all(json: bool, lists: &[CallList], clock: &Clock) {
    if json || lists.is_empty() {
        print(json, &lists.iter().map(describe).collect());
        return;
    }
    for list in lists {
        show(false, list, clock);
    }
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
