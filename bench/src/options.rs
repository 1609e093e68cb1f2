//! The options that several benches share: where they work, where their table goes, and on which databases they run.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use clarion::random;

use crate::report;

/// Where `scripts/with-postgres` says what it has started.
pub const POSTGRES_VARIABLE: &str = "TEST_POSTGRES_URL";

#[derive(Debug, Args)]
pub struct PlaceOptions {
    /// Folder on the disk to be measured
    #[arg(long, default_value = "target/bench")]
    dir: PathBuf,
    /// Put the tables into this document, in place of those of the last run
    #[arg(long, value_name = "FILE")]
    write_table: Option<PathBuf>,
}

impl PlaceOptions {
    /// A new folder for one run of the bench `name`.
    pub fn folder(&self, name: &str) -> anyhow::Result<BenchFolder> {
        let path = self.dir.join(format!("{name}-{}", short_id()));
        std::fs::create_dir_all(&path)
            .with_context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(BenchFolder {
            path: std::path::absolute(path)?,
            keep: false,
        })
    }

    /// Shows what the bench `name` has measured, and puts it into the document if one is wanted.
    pub fn publish(&self, name: &str, text: &str) -> anyhow::Result<()> {
        println!("\n{text}");
        match &self.write_table {
            Some(path) => report::write(path, name, text),
            None => Ok(()),
        }
    }
}

/// For the name of a folder: a socket in it must have a short path.
pub fn short_id() -> String {
    random::id().split_off(24)
}

/// The folder of one run, removed at its end.
#[derive(Debug)]
pub struct BenchFolder {
    path: PathBuf,
    keep: bool,
}

impl BenchFolder {
    pub fn keep(&mut self) {
        self.keep = true;
    }
}

impl Deref for BenchFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Drop for BenchFolder {
    fn drop(&mut self) {
        if self.keep {
            println!("kept: {}", self.path.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

#[derive(Debug, Args)]
pub struct DatabaseOptions {
    /// Which databases to measure [default: both; without a PostgreSQL, SQLite alone]
    #[arg(long, value_enum)]
    database: Option<DatabaseChoice>,
    /// A PostgreSQL where databases may be made [default: what scripts/with-postgres has started]
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DatabaseChoice {
    Sqlite,
    Postgres,
    Both,
}

/// A database system to measure on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseKind {
    Sqlite,
    /// The address of a cluster where databases may be made.
    Postgres(String),
}

impl DatabaseOptions {
    pub fn kinds(&self) -> anyhow::Result<Vec<DatabaseKind>> {
        let url = self.postgres.clone();
        self.choose(url.or_else(|| std::env::var(POSTGRES_VARIABLE).ok()))
    }

    fn choose(&self, postgres: Option<String>) -> anyhow::Result<Vec<DatabaseKind>> {
        let named = postgres
            .map(DatabaseKind::Postgres)
            .context("name a PostgreSQL with --postgres, or run this under scripts/with-postgres");
        Ok(match self.database {
            Some(DatabaseChoice::Sqlite) => vec![DatabaseKind::Sqlite],
            Some(DatabaseChoice::Postgres) => vec![named?],
            Some(DatabaseChoice::Both) => vec![DatabaseKind::Sqlite, named?],
            None => std::iter::once(DatabaseKind::Sqlite)
                .chain(named.ok())
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_postgresql_is_measured_where_there_is_one_and_missed_only_when_it_was_asked_for() {
        let sqlite = || DatabaseKind::Sqlite;
        let postgres = || DatabaseKind::Postgres("postgres://here".to_owned());
        for (database, with_one, without) in [
            (None, vec![sqlite(), postgres()], Some(vec![sqlite()])),
            (Some(DatabaseChoice::Both), vec![sqlite(), postgres()], None),
            (Some(DatabaseChoice::Postgres), vec![postgres()], None),
            (
                Some(DatabaseChoice::Sqlite),
                vec![sqlite()],
                Some(vec![sqlite()]),
            ),
        ] {
            let options = DatabaseOptions {
                database,
                postgres: None,
            };
            let url = Some("postgres://here".to_owned());
            assert_eq!(options.choose(url).unwrap(), with_one, "{database:?}");
            assert_eq!(options.choose(None).ok(), without, "{database:?}");
        }
    }
}
