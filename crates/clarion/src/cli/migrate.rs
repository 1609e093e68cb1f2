//! `clarion migrate`: brings the schema of the database up to date before the servers are upgraded.

use std::sync::Arc;

use super::{audit, block_on};
use crate::config::Config;
use crate::management::Management;
use crate::telemetry;

pub fn run(config: Config) -> anyhow::Result<()> {
    telemetry::start_logging(&config.log)?;
    block_on(async {
        let config = Arc::new(config);
        let line = audit::command_line();
        let before = Management::migrate(&config, audit::this_user(), &line).await?;
        let (database, version, wanted) = (&config.database, before.version, before.wanted);
        match version {
            0 => println!("{database} was empty and has schema {wanted} now"),
            _ if version < wanted => println!("{database} went from schema {version} to {wanted}"),
            _ => println!("{database} has schema {version}: nothing to do"),
        }
        Ok(())
    })
}
