//! `clarion trunk`: lists the trunks of the settings, drains one, opens it again, and tests one with a call.

use clap::Subcommand;
use serde_json::{Value, json};

use super::{call_place, print};
use crate::domain::account::AppId;
use crate::domain::prefix::Prefix;
use crate::management::{ManagedTrunk, Management};

#[derive(Debug, Subcommand)]
pub enum TrunkCommand {
    /// List trunks in the order in which they are tried
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send no new calls to a trunk; calls in progress finish
    Drain {
        /// Name of the trunk
        trunk: String,
    },
    /// Use a drained trunk again
    Open {
        /// Name of the trunk
        trunk: String,
    },
    /// Call a number over this trunk alone and play the test file
    Test {
        /// Name of the trunk
        trunk: String,
        /// Number to call
        number: String,
        /// The application that the call is placed and billed for [default: the only one there is]
        #[arg(long, value_name = "APPID")]
        app: Option<AppId>,
    },
}

pub async fn run(command: TrunkCommand, management: &Management) -> anyhow::Result<()> {
    match command {
        TrunkCommand::List { json } => {
            let trunks = management.trunks().await?;
            print(json, &trunks.iter().map(describe).collect());
        }
        TrunkCommand::Drain { trunk } => {
            management.drain_trunk(&trunk).await?;
            println!("{trunk} gets no more calls, until `clarion trunk open {trunk}`");
        }
        TrunkCommand::Open { trunk } => {
            management.open_trunk(&trunk).await?;
            println!("{trunk} is used");
        }
        TrunkCommand::Test { trunk, number, app } => {
            let app = call_place::chosen_app(management, app).await?.id;
            let sid = management.test_trunk(&trunk, &app, &number).await?;
            println!("{sid}\nSee what becomes of it: clarion call watch {sid}");
        }
    }
    Ok(())
}

fn describe(managed: &ManagedTrunk<'_>) -> Value {
    let trunk = managed.settings;
    let prefixes: Vec<_> = trunk.route.prefixes.iter().map(Prefix::as_str).collect();
    json!({
        "name": trunk.name(),
        "host": match &trunk.loopback {
            Some(_) => "loopback".to_owned(),
            None => trunk.sip.host.to_string(),
        },
        "state": if managed.is_drained { "drained" } else { "open" },
        "channels": trunk.channels,
        "callsPerSecond": trunk.calls_per_second,
        "priority": trunk.route.priority,
        "prefixes": prefixes,
    })
}
