//! `clarion intake …`: where alerts come in, and what becomes of them.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::print;
use super::setting_options::SettingOptions;
use crate::domain::account::AppId;
use crate::domain::intake::change::IntakeChange;
use crate::domain::intake::incident::Incident;
use crate::domain::intake::{Intake, IntakeFormat, IntakeName, IntakeToken};
use crate::management::settings::{INTAKE_SETTINGS, Setting};
use crate::management::{Management, NewIntake, TriedAlert};

/// No alert is longer.
const LONGEST_PAYLOAD: u64 = 4 << 20;

#[derive(Debug, Subcommand)]
pub enum IntakeCommand {
    /// Make an intake; its address and token are shown once
    Add(Box<AddIntake>),
    /// List all intakes
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show an intake: its settings, and the incidents that are open
    Show {
        /// Name of the intake
        name: IntakeName,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change an intake; what it says and its plan are tried before they are saved
    Set {
        /// Name of the intake
        name: IntakeName,
        #[command(flatten)]
        settings: SettingOptions<IntakeChange>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Give an intake a new token, which is shown once; the old one stops working at once
    RotateToken {
        /// Name of the intake
        name: IntakeName,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove an intake and forget its incidents; notices under way go on
    Remove {
        /// Name of the intake
        name: IntakeName,
    },
    /// Show what an alert would say and whom it would call
    Test {
        /// Name of the intake
        name: IntakeName,
        /// A file with the body that a tool sends, or - for standard input [default: a sample of the format]
        #[arg(long, value_name = "FILE")]
        payload: Option<PathBuf>,
        /// Call those people, too
        #[arg(long)]
        call: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct AddIntake {
    /// Name: up to 32 letters, digits, - or _; it stands in the address
    name: IntakeName,
    /// The application whose calls are made
    #[arg(long, value_name = "APPID")]
    app: AppId,
    /// Whose alerts: alertmanager, grafana, zabbix, uptime-kuma, smseagle or json
    #[arg(long)]
    format: IntakeFormat,
    #[command(flatten)]
    settings: SettingOptions<IntakeChange>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(command: IntakeCommand, management: &Management) -> anyhow::Result<()> {
    match command {
        IntakeCommand::Add(add) => {
            let new = NewIntake {
                name: add.name,
                app: add.app,
                format: add.format,
                settings: *add.settings.0,
            };
            let (intake, token) = management.add_intake(new).await?;
            print(add.json, &with_token(&intake, &token));
        }
        IntakeCommand::List { json } => {
            let intakes = management.intakes().await?;
            print(json, &intakes.iter().map(describe).collect());
        }
        IntakeCommand::Show { name, json } => {
            let intake = management.intake(&name).await?;
            let incidents = management.incidents(&name).await?;
            let mut value = describe(&intake);
            value["incidents"] = incidents.iter().map(describe_incident).collect();
            print(json, &value);
        }
        IntakeCommand::Set {
            name,
            settings,
            json,
        } => {
            let intake = management.set_intake(&name, *settings.0).await?;
            print(json, &describe(&intake));
        }
        IntakeCommand::RotateToken { name, json } => {
            let (intake, token) = management.rotate_intake_token(&name).await?;
            print(json, &with_token(&intake, &token));
        }
        IntakeCommand::Remove { name } => {
            management.remove_intake(&name).await?;
            println!("the intake {name} is removed");
        }
        IntakeCommand::Test {
            name,
            payload,
            call,
            json,
        } => {
            let payload = payload.as_deref().map(read).transpose()?;
            let payload = payload.as_deref();
            let tried = if call {
                management.test_intake(&name, payload).await?
            } else {
                {
                    let settings = IntakeChange::default();
                    management.preview_intake(&name, settings, payload).await?
                }
            };
            show_tried(json, &tried);
        }
    }
    Ok(())
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin()
            .take(LONGEST_PAYLOAD)
            .read_to_end(&mut body)
    } else {
        let opened = std::fs::File::open(file);
        let opened = opened.with_context(|| format!("cannot open {}", file.display()))?;
        opened.take(LONGEST_PAYLOAD).read_to_end(&mut body)
    };
    read.with_context(|| format!("cannot read {}", file.display()))?;
    Ok(body)
}

/// What it takes to reach it.
fn with_token(intake: &Intake, token: &IntakeToken) -> Value {
    let mut value = json!({
        "name": intake.name.as_str(),
        "path": intake.format.path(&intake.name),
        "token": token.reveal(),
    });
    if let (Value::Object(all), Value::Object(rest)) = (&mut value, describe(intake)) {
        all.extend(rest);
    }
    value
}

fn describe(intake: &Intake) -> Value {
    let change = IntakeChange::of(intake);
    let setting = |setting: &Setting<IntakeChange>| {
        let written = setting.written(&change).unwrap_or_default();
        (setting.name.to_owned(), written.into())
    };
    let settings: Map<String, Value> = INTAKE_SETTINGS.iter().map(setting).collect();
    json!({
        "name": intake.name.as_str(),
        "format": intake.format.as_str(),
        "app": intake.app.as_str(),
        "path": intake.format.path(&intake.name),
        "createdAt": intake.created_at.to_string(),
        "updatedAt": intake.updated_at.to_string(),
        "settings": settings,
    })
}

fn describe_incident(incident: &Incident) -> Value {
    json!({
        "key": incident.key.as_str(),
        "notices": incident.notices,
        "callSid": incident.call.as_ref().map(super::super::domain::call::CallSid::as_str),
        "openedAt": incident.opened_at.to_string(),
        "seenAt": incident.seen_at.to_string(),
    })
}

fn show_tried(json: bool, tried: &[TriedAlert]) {
    let describe = |tried: &TriedAlert| {
        let notice = tried.notice.as_ref();
        let not_called = notice.and_then(|notice| notice.not_called.as_ref());
        json!({
            "key": tried.key,
            "text": notice.map(|notice| &notice.text),
            "to": notice.map(|notice| &notice.callees),
            "templateFailed": notice.and_then(|notice| notice.failure.as_ref()),
            "notCalled": not_called.map(ToString::to_string),
            "callSid": notice.and_then(|notice| notice.call.as_ref()).map(super::super::domain::call::CallSid::as_str),
        })
    };
    if json {
        print(true, &tried.iter().map(describe).collect());
        return;
    }
    for alert in tried {
        print(false, &describe(alert));
    }
}
