//! `clarion migrate`: brings the schema of the database up to date before the servers are upgraded.

use anyhow::Context;
use supervisor::Supervisor;

use super::audit::NotedChange;
use super::block_on;
use crate::clock::Clock;
use crate::config::Config;
use crate::private_files;
use crate::telemetry;

pub fn run(config: &Config) -> anyhow::Result<()> {
    telemetry::start_logging(&config.log)?;
    block_on(async {
        private_files::data_folder(&config.data_dir).context("data_dir")?;
        let database = &config.database;
        // A server that runs from a file would find another schema under its feet. Nodes on PostgreSQL are asked which one they know.
        let _lock = database.lock_for_serving()?;
        let before = database.inspect().await?;
        let store = database.open(&Supervisor::new()).await?;
        // There may have been no trail before.
        if before.version < before.wanted {
            let clock = Clock::new(config.time_zone());
            let change = NotedChange::named("migrate");
            change.note(&*store, clock.now(), None).await?;
        }
        store.close().await;
        let (version, wanted) = (before.version, before.wanted);
        match version {
            0 => println!("{database} was empty and has schema {wanted} now"),
            _ if version < wanted => println!("{database} went from schema {version} to {wanted}"),
            _ => println!("{database} has schema {version}: nothing to do"),
        }
        Ok(())
    })
}
