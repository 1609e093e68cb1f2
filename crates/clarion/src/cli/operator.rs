//! `clarion operator …`: who may use the console.

use anyhow::ensure;
use clap::Subcommand;
use serde_json::{Value, json};

use super::{Given, print};
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::operator::{Operator, OperatorName, OperatorPassword, OperatorRole};
use crate::management::{ChangedOperator, Management};
use crate::passwords;

#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// Add an operator; a password that is made for it is shown once
    Add {
        /// Name to sign in with: up to 32 letters, digits, -, _ or .
        name: OperatorName,
        /// What the operator may do: viewer sees everything, admin may change things
        #[arg(long, default_value = "viewer")]
        role: OperatorRole,
        /// Password to use, better from a file or from standard input (-) than written out [default: a new one]
        #[arg(long, value_name = "PASSWORD|@FILE|-")]
        password: Option<Given<OperatorPassword>>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List operators
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change the role or the password of an operator; a new password ends its sign-ins
    Set {
        /// The operator
        name: OperatorName,
        /// viewer or admin
        #[arg(long)]
        role: Option<OperatorRole>,
        /// New password, better from a file or from standard input (-) than written out
        #[arg(long, value_name = "PASSWORD|@FILE|-")]
        password: Option<Given<OperatorPassword>>,
        /// Make a new password and show it once
        #[arg(long, conflicts_with = "password")]
        new_password: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove an operator and end its sign-ins
    Remove {
        /// The operator
        name: OperatorName,
    },
}

pub async fn run(command: OperatorCommand, management: &Management) -> anyhow::Result<()> {
    let clock = management.clock();
    match command {
        OperatorCommand::Add {
            name,
            role,
            password,
            json,
        } => {
            let made = password.is_none().then(passwords::generate);
            let password = password.map(|given| given.0).or(made.clone());
            let password = password.expect("given or made");
            let operator = management.add_operator(name, role, &password).await?;
            show(json, &operator, made.as_ref(), clock);
            if !json {
                println!("{}", where_to_sign_in(management.config()));
            }
        }
        OperatorCommand::List { json } => {
            let operators = management.operators().await?;
            let rows = operators.iter().map(|operator| describe(operator, clock));
            print(json, &Value::Array(rows.collect()));
        }
        OperatorCommand::Set {
            name,
            role,
            password,
            new_password,
            json,
        } => {
            let made = new_password.then(passwords::generate);
            let password = password.map(|given| given.0).or(made.clone());
            ensure!(
                role.is_some() || password.is_some(),
                "name what to change: --role, --password or --new-password"
            );
            let changed = ChangedOperator { role, password };
            let operator = management.set_operator(&name, changed).await?;
            show(json, &operator, made.as_ref(), clock);
        }
        OperatorCommand::Remove { name } => {
            management.remove_operator(&name).await?;
            println!("{name} is removed, and signed out");
        }
    }
    Ok(())
}

fn where_to_sign_in(config: &Config) -> String {
    let console = &config.console;
    let scheme = if console.plain { "http" } else { "https" };
    match console.listen.first() {
        Some(address) => format!("sign in at {scheme}://{address}, where the server runs"),
        None => "no console is served: console.listen is empty".to_owned(),
    }
}

fn show(json: bool, operator: &Operator, made: Option<&OperatorPassword>, clock: &Clock) {
    let mut shown = describe(operator, clock);
    if let Some(password) = made {
        shown["password"] = password.reveal().into();
    }
    print(json, &shown);
}

fn describe(operator: &Operator, clock: &Clock) -> Value {
    let local = |time: jiff::Timestamp| {
        let local = time.to_zoned(clock.zone().clone());
        local.strftime("%Y-%m-%d %H:%M:%S").to_string()
    };
    json!({
        "name": operator.name.as_str(),
        "role": operator.role.as_str(),
        "created": local(operator.created_at),
        "changed": local(operator.changed_at),
    })
}
