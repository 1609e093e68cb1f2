//! The shared store: PostgreSQL, or a database that speaks its language. Plain SQL, no extensions.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use jiff::Timestamp;
use supervisor::Supervisor;
use tokio::sync::Semaphore;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row};

use self::accept::Accepter;
use super::binding::Bind;
use super::migrations::{SchemaRight, WANTED};
use super::statements::PROBE;
use super::{Inspection, Store, StoreError};

pub mod accept;
mod accounts;
mod audio_files;
mod bills;
pub mod callbacks;
mod claiming;
mod ending;
mod queue;
mod records;
mod schema;
mod sharing;

const CONNECTIONS: usize = 8;
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct PostgresStore {
    pool: Pool,
    accepter: Accepter,
    /// One readiness probe at a time.
    probe: Arc<Semaphore>,
}

impl PostgresStore {
    pub(super) async fn open(
        url: &str,
        right: SchemaRight,
        supervisor: &Supervisor,
    ) -> anyhow::Result<Self> {
        let shared = pool(url, CONNECTIONS)?;
        let mut client = shared.get().await.context("cannot connect to PostgreSQL")?;
        schema::migrate(&mut client, right)
            .await
            .context("cannot use the PostgreSQL database")?;
        // A connection of its own: accepting never waits behind those who read.
        let accepter = Accepter::start(pool(url, 1)?, supervisor);
        Ok(Self {
            pool: shared,
            accepter,
            probe: Arc::new(Semaphore::new(1)),
        })
    }

    async fn client(&self) -> Result<Client, StoreError> {
        self.pool.get().await.map_err(StoreError::failed)
    }

    /// Like the methods of a client by these names. What is asked again and again is prepared once a connection: one round trip instead of two, and
    /// no planning.
    async fn query(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, StoreError> {
        let client = self.client().await?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.query(&statement, values).await?)
    }

    async fn query_one(&self, sql: &str, values: Values<'_>) -> Result<Row, StoreError> {
        let client = self.client().await?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.query_one(&statement, values).await?)
    }

    async fn query_opt(&self, sql: &str, values: Values<'_>) -> Result<Option<Row>, StoreError> {
        let client = self.client().await?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.query_opt(&statement, values).await?)
    }

    async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, StoreError> {
        let client = self.client().await?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.execute(&statement, values).await?)
    }
}

type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

fn bound<'a>(values: &'a [Bind<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values
        .iter()
        .map(|value| value as &(dyn ToSql + Sync))
        .collect()
}

/// One column of a batch: PostgreSQL takes it as an array.
fn column<'a, S, T>(rows: &'a [S], value: impl Fn(&'a S) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

async fn query_in(
    transaction: &deadpool_postgres::Transaction<'_>,
    sql: &str,
    values: Values<'_>,
) -> Result<Vec<Row>, StoreError> {
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.query(&statement, values).await?)
}

pub fn pool(url: &str, connections: usize) -> anyhow::Result<Pool> {
    let mut config: Config = url.parse().context("database: not a PostgreSQL address")?;
    config.connect_timeout(TIMEOUT);
    config.application_name("clarion");
    // "Accepted" is a promise about the disk, whatever the server's default is.
    let options = config.get_options().unwrap_or_default().to_owned();
    config.options(format!("{options} -c synchronous_commit=on"));
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let manager = Manager::from_config(config, NoTls, recycling);
    Ok(Pool::builder(manager)
        .max_size(connections)
        .wait_timeout(Some(TIMEOUT))
        .create_timeout(Some(TIMEOUT))
        .runtime(Runtime::Tokio1)
        .build()?)
}

/// Looks at the database without making or changing anything.
pub async fn inspect(url: &str) -> anyhow::Result<Inspection> {
    let pool = pool(url, 1)?;
    let client = pool.get().await?;
    let schema = schema::find(&**client).await?;
    let row = client
        .query_one(
            "SELECT pg_is_in_recovery(), current_setting('fsync') = 'on', \
             current_setting('full_page_writes') = 'on', \
             (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
            &[],
        )
        .await?;
    let dangers = [
        (row.get(0), "it is a standby, which cannot be written to"),
        (
            !row.get::<_, bool>(1),
            "its setting fsync is off, so a power cut loses accepted calls",
        ),
        (
            !row.get::<_, bool>(2),
            "its setting full_page_writes is off, so a power cut may ruin it",
        ),
    ];
    let dangers = dangers.into_iter().filter(|(there, _)| *there);
    Ok(Inspection {
        version: schema.version,
        is_usable: schema.is_usable(),
        wanted: WANTED,
        now: Some(Timestamp::from_millisecond(row.get(3))?),
        dangers: dangers.map(|(_, danger)| danger.to_owned()).collect(),
    })
}

/// `Display` of the driver's error hides what the server said.
fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(server) => format!("{}: {}", server.code().code(), server.message()),
        None => error.to_string(),
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Failed(describe(&error))
    }
}

#[async_trait]
impl Store for PostgresStore {
    /// The write is a task of its own: whoever stops waiting leaves no connection behind with an answer still to come.
    async fn ready(&self) -> Result<(), StoreError> {
        let turn = Arc::clone(&self.probe).acquire_owned().await;
        let turn = turn.map_err(StoreError::failed)?;
        let pool = self.pool.clone();
        let probe = tokio::spawn(async move {
            let _turn = turn;
            probe(&pool).await
        });
        probe.await.map_err(StoreError::failed)?
    }

    async fn close(&self) {
        self.accepter.close();
        self.pool.close();
    }
}

async fn probe(pool: &Pool) -> Result<(), StoreError> {
    let client = pool.get().await.map_err(StoreError::failed)?;
    let written = tokio::time::timeout(TIMEOUT, client.execute(PROBE.postgres, &[])).await;
    match written {
        Ok(Ok(1)) => Ok(()),
        Ok(Ok(_)) => Err(StoreError::failed("the row for probing is missing")),
        Ok(Err(error)) => Err(error.into()),
        Err(_elapsed) => {
            // Whatever comes on this connection now would wait behind the probe: the pool shall make another.
            drop(Client::take(client));
            Err(StoreError::failed(format!(
                "PostgreSQL has not made a write durable within {TIMEOUT:?}"
            )))
        }
    }
}
