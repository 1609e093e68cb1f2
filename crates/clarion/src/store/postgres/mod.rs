//! The shared store: PostgreSQL, or a database that speaks its language. Plain SQL, no extensions.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use jiff::Timestamp;
use supervisor::{Supervisor, TaskGuard};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use self::accept::Accepter;
use self::group_commit::GroupCommit;
use self::plan_age::PlanAge;
pub use self::session::PooledSession;
use self::session::{ConnectError, Connector, SessionPool, TimeLimit, Transaction, Values};
use self::waking::NodeSignals;
use super::binding::Bind;
use super::incident_room::IncidentRoom;
use super::migrations::{SchemaRight, WANTED};
use super::statements::PROBE;
use super::{DatabaseRoute, Inspection, Store, StoreError, WriteProbe};
use crate::config::PostgresConfig;
use crate::domain::wording::wording;
use crate::fair_places::FairPlaces;

pub mod accept;
mod accounts;
mod audio_files;
mod audit_trail;
mod bills;
mod call_lists;
pub mod callbacks;
mod claiming;
mod do_not_call;
mod ending;
mod group_commit;
mod intakes;
mod legs;
mod notices;
mod operators;
mod plan_age;
mod queue;
mod records;
mod schema;
mod session;
mod sharing;
mod taking_over;
mod views;
mod waking;

const CONNECTIONS: usize = 8;
/// So long changes gather for their next commit.
const PROGRESS_PAUSE: Duration = Duration::from_millis(3);
const ENDS_PAUSE: Duration = Duration::from_millis(10);
/// A migration may have to rewrite tables, or to wait for another node that does.
const MIGRATION: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub struct PostgresStore {
    pool: SessionPool,
    usual: TimeLimit,
    long: TimeLimit,
    accepter: Accepter,
    /// How far calls have come.
    progress: GroupCommit,
    /// Calls that have ended, or go back into the queue.
    ends: GroupCommit,
    /// A connection of its own: a heartbeat never waits behind the work of the calls.
    heartbeats: SessionPool,
    /// One to claim and one to record: delivering never waits behind those who read.
    callbacks: SessionPool,
    /// Accounts whose row is waited for, each on one connection at most: others are left connections.
    reserving: FairPlaces,
    connector: Arc<Connector>,
    signals: NodeSignals,
    plans: PlanAge,
    incident_room: IncidentRoom,
    listening: OnceLock<(SessionPool, TaskGuard)>,
    /// One readiness probe at a time.
    probe: Arc<Semaphore>,
}

impl PostgresStore {
    pub(super) async fn open(
        config: &PostgresConfig,
        right: SchemaRight,
        supervisor: &Supervisor,
    ) -> anyhow::Result<Self> {
        let usual = TimeLimit::each(config.deadlines.usual);
        let connector = Arc::new(Connector::new(config.clone()));
        let pool = SessionPool::new(Arc::clone(&connector), CONNECTIONS);
        let client = pool.get(TimeLimit::each(MIGRATION)).await;
        let mut client = client.context("cannot connect to PostgreSQL")?;
        schema::migrate(&mut client, right)
            .await
            .context("cannot use the PostgreSQL database")?;
        drop(client);
        // A connection of its own: accepting never waits behind those who read.
        let accepting = SessionPool::new(Arc::clone(&connector), 1);
        let signals = NodeSignals::default();
        let queued = Arc::clone(&signals.queued);
        let accepter = Accepter::start(accepting, usual, queued, supervisor);
        // Calls wait for their progress to be written, and nobody waits for their ends.
        let group_commit = |name, pause| {
            let pool = SessionPool::new(Arc::clone(&connector), 1);
            GroupCommit::start(name, pool, usual, pause, supervisor)
        };
        Ok(Self {
            pool,
            progress: group_commit("store-progress", PROGRESS_PAUSE),
            ends: group_commit("store-ends", ENDS_PAUSE),
            heartbeats: SessionPool::new(Arc::clone(&connector), 1),
            callbacks: SessionPool::new(Arc::clone(&connector), 2),
            reserving: FairPlaces::new(CONNECTIONS / 2, 1),
            usual,
            long: TimeLimit::each(config.deadlines.long),
            accepter,
            connector,
            signals,
            plans: PlanAge::default(),
            incident_room: IncidentRoom::default(),
            listening: OnceLock::new(),
            probe: Arc::new(Semaphore::new(1)),
        })
    }

    async fn client(&self) -> Result<PooledSession, StoreError> {
        Ok(self.pool.get(self.usual).await?)
    }

    /// For statements that read or change many rows.
    async fn long_client(&self) -> Result<PooledSession, StoreError> {
        Ok(self.pool.get(self.long).await?)
    }

    /// For statements that must all be over by then.
    async fn client_until(&self, until: Instant) -> Result<PooledSession, StoreError> {
        Ok(self.pool.get(self.usual.until(until)).await?)
    }

    /// Like the methods of a session by these names.
    async fn query(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, StoreError> {
        Ok(self.client().await?.query(sql, values).await?)
    }

    async fn query_one(&self, sql: &str, values: Values<'_>) -> Result<Row, StoreError> {
        Ok(self.client().await?.query_one(sql, values).await?)
    }

    async fn query_opt(&self, sql: &str, values: Values<'_>) -> Result<Option<Row>, StoreError> {
        Ok(self.client().await?.query_opt(sql, values).await?)
    }

    async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, StoreError> {
        Ok(self.client().await?.execute(sql, values).await?)
    }
}

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
    transaction: &Transaction<'_>,
    sql: &str,
    values: Values<'_>,
) -> Result<Vec<Row>, StoreError> {
    Ok(transaction.query(sql, values).await?)
}

/// A connection of its own, as the store uses it: for measuring what it can do.
pub async fn connect(config: &PostgresConfig) -> Result<PooledSession, ConnectError> {
    let connector = Arc::new(Connector::new(config.clone()));
    let pool = SessionPool::new(connector, 1);
    pool.get(TimeLimit::each(config.deadlines.usual)).await
}

/// Looks at the database without making or changing anything.
pub async fn inspect(config: &PostgresConfig) -> anyhow::Result<Inspection> {
    let connector = Arc::new(Connector::new(config.clone()));
    let hosts = connector.survey().await;
    let pool = SessionPool::new(connector, 1);
    let client = pool.get(TimeLimit::each(config.deadlines.usual)).await?;
    let schema = schema::find(&client).await?;
    let row = client
        .query_one_once(
            "SELECT pg_is_in_recovery(), current_setting('fsync') = 'on', \
             current_setting('full_page_writes') = 'on', \
             (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
            &[],
        )
        .await?;
    let dangers = [
        (
            row.get(0),
            wording!(
                "it is a standby, which cannot be written to",
                "是备库，无法写入"
            ),
        ),
        (
            !row.get::<_, bool>(1),
            wording!(
                "its setting fsync is off, so a power cut loses accepted calls",
                "关闭了 fsync，断电会丢失已受理的呼叫"
            ),
        ),
        (
            !row.get::<_, bool>(2),
            wording!(
                "its setting full_page_writes is off, so a power cut may ruin it",
                "关闭了 full_page_writes，断电可能损坏数据"
            ),
        ),
    ];
    let dangers = dangers.into_iter().filter(|(there, _)| *there);
    Ok(Inspection {
        version: schema.version,
        is_usable: schema.is_usable(),
        wanted: WANTED,
        now: Some(Timestamp::from_millisecond(row.get(3))?),
        dangers: dangers.map(|(_, danger)| danger).collect(),
        damage: None,
        route: Some(DatabaseRoute {
            hosts,
            ..client.route().clone()
        }),
    })
}

impl From<ConnectError> for StoreError {
    fn from(error: ConnectError) -> Self {
        Self::failed(error)
    }
}

#[async_trait]
impl WriteProbe for PostgresStore {
    /// The write is a task of its own: whoever stops waiting costs no connection.
    async fn ready(&self) -> Result<(), StoreError> {
        let turn = Arc::clone(&self.probe).acquire_owned().await;
        let turn = turn.map_err(StoreError::failed)?;
        let (pool, limit) = (self.pool.clone(), self.usual);
        let probe = tokio::spawn(async move {
            let _turn = turn;
            match pool.get(limit).await?.execute(PROBE.postgres, &[]).await? {
                1 => Ok(()),
                _ => Err(StoreError::failed("the row for probing is missing")),
            }
        });
        probe.await.map_err(StoreError::failed)?
    }
}

#[async_trait]
impl Store for PostgresStore {
    /// The disk is that of another machine.
    fn keep_reserve(&self, _bytes: u64) {}

    fn wake_up(&self, supervisor: &Supervisor) -> Arc<Notify> {
        self.listening.get_or_init(|| {
            // A connection of its own: it waits most of the time.
            let pool = SessionPool::new(Arc::clone(&self.connector), 1);
            let task = self.signals.start(pool.clone(), self.usual, supervisor);
            (pool, task)
        });
        Arc::clone(&self.signals.woken)
    }

    async fn close(&self) {
        if let Some((pool, _)) = self.listening.get() {
            pool.close();
        }
        self.accepter.close();
        self.progress.close();
        self.ends.close();
        self.heartbeats.close();
        self.callbacks.close();
        self.pool.close();
    }
}
