//! Brings the database's schema up to date, once however many nodes start together.

use anyhow::{Context, bail};

use super::session::Session;
use crate::store::migrations::{FoundSchema, SchemaRight, WANTED, oldest_program, steps};
use crate::store::statements::{Dialect, OLDEST_PROGRAM, SET_OLDEST_PROGRAM, postgres};

/// Any number serves, as long as all nodes use the same and nobody else does.
const LOCK: i64 = 0x636c_6172_696f_6e00;
/// The version in which nodes began to say which schema they were made for.
const NODES_TELL: usize = 3;
const TABLES: &str =
    "SELECT to_regclass('schema_migrations') IS NOT NULL, to_regclass('schema_info') IS NOT NULL";
const MAKE_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, \
     applied_at TIMESTAMPTZ NOT NULL DEFAULT now())";
/// A node that has shown within this time that it lives may still do so. Its own lease is not known to those before it.
const LIVING_NODES: &str = postgres!(
    "SELECT node, ({now} - heartbeat_at) / 1000 FROM nodes WHERE heartbeat_at > {now} - {minute}"
);
const OLD_NODES: &str = postgres!(
    "SELECT node, ({now} - heartbeat_at) / 1000 FROM nodes WHERE lease_until > {now} AND coalesce(schema_version, 0) < $1"
);

pub async fn find(client: &Session) -> anyhow::Result<FoundSchema> {
    let tables = client.query_one_once(TABLES, &[]).await?;
    if !tables.get::<_, bool>(0) {
        return Ok(FoundSchema::NONE);
    }
    let count = "SELECT coalesce(max(version), 0) FROM schema_migrations";
    let version = client.query_one_once(count, &[]).await?;
    let version = usize::try_from(version.get::<_, i32>(0))?;
    let oldest_program = if tables.get(1) {
        let row = client.query_one_once(OLDEST_PROGRAM.postgres, &[]).await?;
        usize::try_from(row.get::<_, i32>(0))?
    } else {
        version
    };
    Ok(FoundSchema {
        version,
        oldest_program,
    })
}

pub async fn migrate(client: &mut Session, right: SchemaRight) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    transaction
        .execute_once("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await?;
    let found = find(&transaction).await?;
    let steps = steps(found, right)?;
    if steps.is_empty() {
        return Ok(());
    }
    refuse_old_nodes(&transaction, found).await?;
    transaction.batch_execute(MAKE_TABLE).await?;
    for (number, migration) in (found.version + 1..).zip(steps) {
        let number = i32::try_from(number)?;
        transaction
            .batch_execute(migration.text(Dialect::Postgres))
            .await
            .with_context(|| format!("migration {number}"))?;
        transaction
            .execute_once(
                "INSERT INTO schema_migrations (version) VALUES ($1)",
                &[&number],
            )
            .await?;
    }
    let oldest = i32::try_from(oldest_program())?;
    transaction
        .execute_once(SET_OLDEST_PROGRAM.postgres, &[&oldest])
        .await?;
    Ok(transaction.commit().await?)
}

/// A node that cannot work with the new schema must not find it under its feet.
async fn refuse_old_nodes(client: &Session, found: FoundSchema) -> anyhow::Result<()> {
    let old = match found.version {
        0 => return Ok(()),
        version if version < NODES_TELL => client.query_once(LIVING_NODES, &[]).await?,
        _ => {
            let oldest = i32::try_from(oldest_program())?;
            client.query_once(OLD_NODES, &[&oldest]).await?
        }
    };
    if let Some(node) = old.first() {
        let (name, seconds): (String, i64) = (node.get(0), node.get(1));
        bail!(
            "{name} of an older version is still running (its last heartbeat was {seconds} s ago), and cannot work with schema {WANTED}: \
             stop all nodes of that version first, and wait for a minute"
        );
    }
    Ok(())
}
