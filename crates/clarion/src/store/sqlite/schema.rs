//! Brings the file's schema up to date. The number of the last migration is SQLite's own `user_version`.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::store::migrations::{FoundSchema, SchemaRight, WANTED, oldest_program, steps};
use crate::store::statements::{Dialect, OLDEST_PROGRAM, SET_OLDEST_PROGRAM};

const HAS_INFO: &str = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_info'";

pub fn find(connection: &Connection) -> anyhow::Result<FoundSchema> {
    let version = connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))?;
    let version = usize::try_from(version)?;
    let has_info = connection.query_row(HAS_INFO, [], |_| Ok(())).optional()?;
    let oldest_program = match has_info {
        Some(()) => connection
            .query_row(OLDEST_PROGRAM.sqlite, [], |row| row.get::<_, i64>(0))?
            .try_into()?,
        None => version,
    };
    Ok(FoundSchema {
        version,
        oldest_program,
    })
}

pub fn migrate(connection: &mut Connection, right: SchemaRight) -> anyhow::Result<()> {
    // Immediate: of two processes that start at once, one migrates and the other then finds it done.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let steps = steps(find(&transaction)?, right)?;
    if steps.is_empty() {
        return Ok(());
    }
    for migration in steps {
        transaction.execute_batch(migration.text(Dialect::Sqlite))?;
    }
    transaction.pragma_update(None, "user_version", i64::try_from(WANTED)?)?;
    transaction.execute(
        SET_OLDEST_PROGRAM.sqlite,
        [i64::try_from(oldest_program())?],
    )?;
    transaction.commit()?;
    Ok(())
}
