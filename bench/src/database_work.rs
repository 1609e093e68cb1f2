//! What a PostgreSQL does for a measurement: commits, statements and processor time, apart from those of the server.

use clarion::store::Database;
use tokio_postgres::Client;

use crate::accepts::site::{self, Site};
use crate::others::Processes;

/// Since the server was started.
#[derive(Debug, Clone, Copy, Default)]
pub struct DatabaseWork {
    pub commits: f64,
    /// Only where `pg_stat_statements` is loaded: `POSTGRES_OPTIONS='-c shared_preload_libraries=pg_stat_statements'`.
    pub statements: Option<f64>,
    /// Seconds of all its processes.
    pub cpu: f64,
}

impl DatabaseWork {
    pub fn since(self, before: Self) -> Self {
        let statements = self.statements.zip(before.statements);
        Self {
            commits: self.commits - before.commits,
            statements: statements.map(|(now, before)| now - before),
            cpu: self.cpu - before.cpu,
        }
    }
}

/// Looks from another database, so that it does not count itself.
pub struct DatabaseMeter {
    client: Client,
    name: String,
    processes: Processes,
    has_statements: bool,
}

impl DatabaseMeter {
    /// `None` for SQLite, whose work is the server's.
    pub async fn of(site: &Site) -> anyhow::Result<Option<Self>> {
        let Database::Postgres(config) = &site.database else {
            return Ok(None);
        };
        let client = site::connect(&site::cluster(config.url())?).await?;
        let row = client.query_one("SELECT pg_backend_pid()", &[]).await?;
        let backend = u32::try_from(row.get::<_, i32>(0))?;
        let extension = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT 1 FROM pg_stat_statements LIMIT 1";
        Ok(Some(Self {
            name: site::database_name(config.url())?,
            processes: Processes::of_postgres(backend),
            has_statements: client.batch_execute(extension).await.is_ok(),
            client,
        }))
    }

    /// Connections tell what they have done a second later at the latest, or when they close.
    #[expect(clippy::cast_precision_loss, reason = "exact far beyond any run")]
    pub async fn so_far(&self) -> anyhow::Result<DatabaseWork> {
        let number = async |sql: &str| -> anyhow::Result<f64> {
            let row = self.client.query_one(sql, &[&self.name]).await?;
            Ok(row.get::<_, i64>(0) as f64)
        };
        let commits = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1";
        let statements = "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements AS s \
          JOIN pg_database AS d ON d.oid = s.dbid WHERE datname = $1";
        Ok(DatabaseWork {
            commits: number(commits).await?,
            statements: if self.has_statements {
                Some(number(statements).await?)
            } else {
                None
            },
            cpu: self.processes.cpu(),
        })
    }
}
