//! A database to be measured, and a folder for the server's other files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use clarion::domain::account::Account;
use clarion::domain::intake::{Intake, IntakeFormat, IntakeSettings, IntakeToken};
use clarion::random;
use clarion::store::{Database, sqlite};
use supervisor::Supervisor;
use tokio_postgres::{Client, NoTls};
use url::Url;

use super::customer::BenchCustomer;
use crate::machine;
use crate::options::DatabaseKind;
use crate::others::Ours;

/// The first PostgreSQL that drops a database with connections to it, as the server numbers itself.
const KNOWS_FORCE: u32 = 130_000;

#[derive(Debug)]
pub struct Site {
    pub database: Database,
    pub folder: PathBuf,
}

impl Site {
    /// With files in a folder of its own below `parent`; on PostgreSQL with a database of its own in the cluster.
    pub fn new(kind: &DatabaseKind, parent: &Path) -> anyhow::Result<Self> {
        Ok(match kind {
            DatabaseKind::Sqlite => {
                let folder = parent.join("sqlite");
                Self {
                    database: Database::Sqlite(folder.join("clarion.db")),
                    folder,
                }
            }
            DatabaseKind::Postgres(url) => {
                let mut url = Url::parse(url).context("--postgres is not an address")?;
                url.set_path(&format!("bench_{}", random::id()));
                Self {
                    database: Database::parse(url.as_str()).map_err(anyhow::Error::msg)?,
                    folder: parent.join("postgres"),
                }
            }
        })
    }

    /// As the setting `database` names it.
    pub fn address(&self) -> String {
        match &self.database {
            Database::Sqlite(path) => format!("sqlite:{}", path.display()),
            Database::Postgres(config) => config.url().to_owned(),
        }
    }

    pub fn sqlite_file(&self) -> anyhow::Result<&Path> {
        match &self.database {
            Database::Sqlite(path) => Ok(path),
            Database::Postgres(_) => bail!("PostgreSQL has no file of its own"),
        }
    }

    pub async fn version(&self) -> anyhow::Result<String> {
        match &self.database {
            Database::Sqlite(_) => Ok(format!("SQLite {}", rusqlite::version())),
            Database::Postgres(config) => {
                let client = connect(&cluster(config.url())?).await?;
                let row = client.query_one("SHOW server_version", &[]).await?;
                let version: &str = row.get(0);
                let number = version.split(' ').next().unwrap_or(version);
                Ok(format!("PostgreSQL {number}"))
            }
        }
    }

    /// The processes that take part in measuring this database.
    pub async fn ours(&self) -> anyhow::Result<Ours> {
        let Database::Postgres(config) = &self.database else {
            return Ok(Ours::with_postgres(None));
        };
        let client = connect(config.url()).await?;
        let row = client.query_one("SELECT pg_backend_pid()", &[]).await?;
        Ok(Ours::with_postgres(
            u32::try_from(row.get::<_, i32>(0)).ok(),
        ))
    }

    /// Makes the folder and the database, with nothing in it.
    pub async fn make(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        self.make_database().await
    }

    /// A command of `clarion` on this database, in a process of its own as an operator would run it.
    pub fn command(&self, clarion: &Path) -> anyhow::Result<Command> {
        let config = self.folder.join("command.toml");
        let data = self.folder.join("data");
        std::fs::write(
            &config,
            format!(
                "data_dir = '{}'\ndatabase = '{}'\n",
                data.display(),
                self.address()
            ),
        )?;
        let mut command = Command::new(clarion);
        command.arg("--config").arg(config);
        command.env("CLARION_LOG__FILTER", "warn");
        Ok(command)
    }

    /// Makes the database, with the schema and the customer in it.
    pub async fn open(&self, customer: &BenchCustomer) -> anyhow::Result<()> {
        self.make().await?;
        self.add(customer, customer.account()).await
    }

    /// Adds a customer with this account.
    pub async fn add(&self, customer: &BenchCustomer, account: Account) -> anyhow::Result<()> {
        let store = self.database.open(&Supervisor::new()).await?;
        store.add_account(account).await?;
        store.add_application(customer.application()).await?;
        store.close().await;
        Ok(())
    }

    /// Adds an intake for alerts of Alertmanager, which calls one of the customer's numbers. The token is told once.
    pub async fn add_intake(
        &self,
        name: &str,
        customer: &BenchCustomer,
    ) -> anyhow::Result<IntakeToken> {
        let (token, now) = (IntakeToken::new(random::bytes()), customer.clock.now());
        let store = self.database.open(&Supervisor::new()).await?;
        let to = "13900000000".parse().map_err(anyhow::Error::msg)?;
        let intake = Intake {
            name: name.parse().map_err(anyhow::Error::msg)?,
            app: customer.app.clone(),
            format: IntakeFormat::Alertmanager,
            token: token.hash(),
            settings: IntakeSettings {
                to: vec![to],
                ..IntakeSettings::default()
            },
            created_at: now,
            updated_at: now,
        };
        store.add_intake(intake).await?;
        store.close().await;
        Ok(token)
    }

    /// Forgets the calls that the last measurement has queued, so that each begins with an empty queue and with nothing left to write.
    pub async fn reset(&self) -> anyhow::Result<()> {
        let forget = "DELETE FROM calls WHERE call_sid IN (SELECT call_sid FROM call_queue); DELETE FROM call_queue";
        match &self.database {
            Database::Sqlite(path) => {
                let connection = sqlite::connect(path)?;
                connection.execute_batch(forget)?;
                connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
            }
            Database::Postgres(config) => {
                let client = connect(config.url()).await?;
                client.batch_execute(forget).await?;
                // Statements of their own: VACUUM must not stand in a transaction.
                for statement in [
                    "VACUUM ANALYZE call_queue",
                    "VACUUM ANALYZE calls",
                    "CHECKPOINT",
                ] {
                    client.batch_execute(statement).await?;
                }
            }
        }
        Ok(())
    }

    /// The database learns how its tables are filled, as it does by itself after a while.
    pub async fn analyze(&self) -> anyhow::Result<()> {
        if let Database::Postgres(config) = &self.database {
            let client = connect(config.url()).await?;
            client.batch_execute("VACUUM ANALYZE call_queue").await?;
        }
        Ok(())
    }

    /// Is there room for so many bytes where the database lies? A PostgreSQL on another machine is taken at its word.
    pub async fn check_space(&self, needed: u64) -> anyhow::Result<()> {
        let folder = match &self.database {
            Database::Sqlite(_) => self.folder.clone(),
            Database::Postgres(config) => {
                let row = connect(config.url())
                    .await?
                    .query_one("SHOW data_directory", &[])
                    .await?;
                PathBuf::from(row.get::<_, String>(0))
            }
        };
        if folder.exists() {
            machine::check_space(&folder, needed)?;
        }
        Ok(())
    }

    /// Removes the files and the database. What was measured counts all the same where that fails, so it is only said.
    pub async fn remove(&self) {
        if let Err(error) = self.try_to_remove().await {
            println!("  left behind: {}: {error:#}", self.folder.display());
        }
    }

    async fn try_to_remove(&self) -> anyhow::Result<()> {
        self.drop_database().await?;
        if self.folder.exists() {
            std::fs::remove_dir_all(&self.folder)?;
        }
        Ok(())
    }

    /// Also while somebody is still connected: a store that was closed lets its connections go when it pleases.
    async fn drop_database(&self) -> anyhow::Result<()> {
        let Database::Postgres(config) = &self.database else {
            return Ok(());
        };
        let url = config.url();
        let (name, client) = (database_name(url)?, connect(&cluster(url)?).await?);
        let row = client.query_one("SHOW server_version_num", &[]).await?;
        let version: u32 = row.get::<_, &str>(0).parse()?;
        let force = if version < KNOWS_FORCE {
            let others =
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1";
            client.execute(others, &[&name]).await?;
            ""
        } else {
            "WITH (FORCE)"
        };
        let drop = format!("DROP DATABASE IF EXISTS {name} {force}");
        let dropped = client.batch_execute(&drop).await;
        dropped.with_context(|| format!("cannot drop the database {name}"))
    }

    /// Makes the database itself; a SQLite file needs none.
    async fn make_database(&self) -> anyhow::Result<()> {
        let Database::Postgres(config) = &self.database else {
            return Ok(());
        };
        let url = config.url();
        let (name, client) = (database_name(url)?, connect(&cluster(url)?).await?);
        let make = format!("CREATE DATABASE {name}");
        Ok(client.batch_execute(&make).await?)
    }
}

pub fn database_name(url: &str) -> anyhow::Result<String> {
    Ok(Url::parse(url)?.path().trim_start_matches('/').to_owned())
}

/// The database that every cluster has.
pub fn cluster(url: &str) -> anyhow::Result<String> {
    let mut url = Url::parse(url)?;
    url.set_path("postgres");
    Ok(url.into())
}

pub async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .context("cannot connect to PostgreSQL")?;
    tokio::spawn(connection);
    Ok(client)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::POSTGRES_VARIABLE;

    #[tokio::test]
    async fn a_database_is_removed_although_somebody_is_connected() {
        let url = std::env::var(POSTGRES_VARIABLE).expect("scripts/with-postgres says where");
        let folder = tempfile::tempdir().unwrap();
        let site = Site::new(&DatabaseKind::Postgres(url), folder.path()).unwrap();
        site.make().await.unwrap();
        let connected = connect(&site.address()).await.unwrap();
        site.try_to_remove().await.unwrap();
        assert!(connect(&site.address()).await.is_err(), "it is gone");
        assert!(connected.simple_query("SELECT 1").await.is_err());
    }
}
