//! Brings the file's schema up to date. The number of the last migration is SQLite's own `user_version`.

use anyhow::bail;
use rusqlite::{Connection, TransactionBehavior};

const MIGRATIONS: &[&str] = &[
    include_str!("../../../migrations/sqlite/0001_first.sql"),
    include_str!("../../../migrations/sqlite/0002_audio_files_and_probe.sql"),
    include_str!("../../../migrations/sqlite/0003_clock_and_lanes.sql"),
    include_str!("../../../migrations/sqlite/0004_limits.sql"),
];

/// The version that this program wants.
pub const WANTED: usize = MIGRATIONS.len();

pub fn version(connection: &Connection) -> anyhow::Result<usize> {
    let version = connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))?;
    Ok(version.try_into()?)
}

pub fn migrate(connection: &mut Connection) -> anyhow::Result<()> {
    // Immediate: of two processes that start at once, one migrates and the other then finds it done.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version = version(&transaction)?;
    if version > MIGRATIONS.len() {
        bail!(
            "its schema has version {version}, but this program knows only {}: use the newer program that wrote it",
            MIGRATIONS.len()
        );
    }
    for migration in &MIGRATIONS[version..] {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", i64::try_from(MIGRATIONS.len())?)?;
    transaction.commit()?;
    Ok(())
}
