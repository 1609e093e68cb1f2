//! `clarion trunk`: lists the trunks of the settings, drains one, and opens it again.

use std::sync::Arc;

use anyhow::bail;
use clap::Subcommand;
use serde_json::{Value, json};

use super::print;
use crate::clock::Clock;
use crate::config::{Config, TrunkSettings};
use crate::dispatch::drained_switch;
use crate::domain::prefix::Prefix;
use crate::store::Store;

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
}

pub async fn run(
    command: TrunkCommand,
    config: &Config,
    store: Arc<dyn Store>,
    clock: Clock,
) -> anyhow::Result<()> {
    match command {
        TrunkCommand::List { json } => {
            let switches = store.switches().await?;
            let mut trunks: Vec<_> = config.trunks.iter().collect();
            trunks.sort_by_key(|trunk| trunk.route.priority);
            let rows = trunks.into_iter().map(|trunk| {
                let drained = switches
                    .iter()
                    .any(|(name, _)| *name == drained_switch(trunk.name()));
                let prefixes: Vec<_> = trunk.route.prefixes.iter().map(Prefix::as_str).collect();
                json!({
                    "name": trunk.name(),
                    "host": match &trunk.loopback {
                        Some(_) => "loopback".to_owned(),
                        None => trunk.sip.host.to_string(),
                    },
                    "state": if drained { "drained" } else { "open" },
                    "channels": trunk.channels,
                    "callsPerSecond": trunk.calls_per_second,
                    "priority": trunk.route.priority,
                    "prefixes": prefixes,
                })
            });
            print(json, &Value::Array(rows.collect()));
        }
        TrunkCommand::Drain { trunk } => {
            known(config, &trunk)?;
            let now = clock.now();
            store
                .set_switch(&drained_switch(&trunk), Some("on"), now)
                .await?;
            println!("{trunk} gets no more calls, until `clarion trunk open {trunk}`");
        }
        TrunkCommand::Open { trunk } => {
            known(config, &trunk)?;
            store
                .set_switch(&drained_switch(&trunk), None, clock.now())
                .await?;
            println!("{trunk} is used");
        }
    }
    Ok(())
}

fn known(config: &Config, name: &str) -> anyhow::Result<()> {
    let names: Vec<_> = config.trunks.iter().map(TrunkSettings::name).collect();
    if !names.contains(&name) {
        bail!(
            "there is no trunk {name}; the configuration has: {}",
            names.join(", ")
        );
    }
    Ok(())
}
