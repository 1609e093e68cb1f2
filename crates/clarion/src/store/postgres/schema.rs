//! Brings the database's schema up to date, once however many nodes start together.

use anyhow::{Context, bail};

use super::session::Session;

const MIGRATIONS: &[&str] = &[
    include_str!("../../../migrations/postgres/0001_first.sql"),
    include_str!("../../../migrations/postgres/0002_audio_files_and_probe.sql"),
];
/// Any number serves, as long as all nodes use the same and nobody else does.
const LOCK: i64 = 0x636c_6172_696f_6e00;

/// The version that this program wants.
pub const WANTED: usize = MIGRATIONS.len();

/// 0 where no schema has been made.
pub async fn version(client: &Session) -> anyhow::Result<usize> {
    let row = client
        .query_one_once("SELECT to_regclass('schema_migrations') IS NOT NULL", &[])
        .await?;
    if !row.get::<_, bool>(0) {
        return Ok(0);
    }
    let row = client
        .query_one_once(
            "SELECT coalesce(max(version), 0) FROM schema_migrations",
            &[],
        )
        .await?;
    Ok(usize::try_from(row.get::<_, i32>(0))?)
}

pub async fn migrate(client: &mut Session) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    transaction
        .execute_once("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await?;
    transaction
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, \
             applied_at TIMESTAMPTZ NOT NULL DEFAULT now())",
        )
        .await?;
    let version = version(&transaction).await?;
    if version > MIGRATIONS.len() {
        bail!(
            "its schema has version {version}, but this program knows only {}: use the newer program that wrote it",
            MIGRATIONS.len()
        );
    }
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(version) {
        let number = i32::try_from(number + 1)?;
        transaction
            .batch_execute(migration)
            .await
            .with_context(|| format!("migration {number}"))?;
        transaction
            .execute_once(
                "INSERT INTO schema_migrations (version) VALUES ($1)",
                &[&number],
            )
            .await?;
    }
    Ok(transaction.commit().await?)
}
