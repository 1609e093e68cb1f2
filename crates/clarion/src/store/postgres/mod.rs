//! The shared store: PostgreSQL, or a database that speaks its language. Plain SQL, no extensions.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use jiff::Timestamp;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row};

use self::accept::Accepter;
use super::{
    CallbackBacklog, CallbackClaim, CallbackFilter, ClaimedBatch, Inspection, Store, StoreError,
};
use crate::domain::account::{
    Account, AccountChange, AccountSid, AppId, Application, ApplicationChange,
};
use crate::domain::call::{CallProgress, CallSid, NewCall};
use crate::domain::callback::{Callback, CallbackAttempt, CallbackLease, EndedAttempt};
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};

pub mod accept;
mod accounts;
mod audio_files;
mod bills;
pub mod callbacks;
mod calls;
mod claiming;
mod ending;
mod queue;
mod records;
mod schema;

const CONNECTIONS: usize = 8;
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct PostgresStore {
    pool: Pool,
    accepter: Accepter,
}

impl PostgresStore {
    pub async fn open(url: &str) -> anyhow::Result<Self> {
        let shared = pool(url, CONNECTIONS)?;
        let mut client = shared.get().await.context("cannot connect to PostgreSQL")?;
        schema::migrate(&mut client)
            .await
            .context("cannot bring the PostgreSQL schema up to date")?;
        // A connection of its own: accepting never waits behind those who read.
        let accepter = Accepter::start(pool(url, 1)?);
        Ok(Self {
            pool: shared,
            accepter,
        })
    }

    async fn client(&self) -> Result<deadpool_postgres::Client, StoreError> {
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
    let version = schema::version(&**client).await?;
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
        version,
        wanted: schema::WANTED,
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
    async fn add_account(&self, account: Account) -> Result<(), StoreError> {
        accounts::add(&mut *self.client().await?, &account).await
    }

    async fn account(&self, sid: &AccountSid) -> Result<Option<Account>, StoreError> {
        accounts::find(&**self.client().await?, sid, "").await
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        accounts::all(&**self.client().await?).await
    }

    async fn change_account(
        &self,
        sid: &AccountSid,
        change: AccountChange,
    ) -> Result<Account, StoreError> {
        accounts::change(&mut *self.client().await?, sid, change).await
    }

    async fn add_application(&self, application: Application) -> Result<(), StoreError> {
        accounts::add_application(&mut *self.client().await?, &application).await
    }

    async fn application(&self, id: &AppId) -> Result<Option<Application>, StoreError> {
        accounts::find_application(&**self.client().await?, id, "").await
    }

    async fn applications(&self, account: &AccountSid) -> Result<Vec<Application>, StoreError> {
        accounts::applications(&**self.client().await?, account).await
    }

    async fn change_application(
        &self,
        id: &AppId,
        change: ApplicationChange,
    ) -> Result<Application, StoreError> {
        accounts::change_application(&mut *self.client().await?, id, change).await
    }

    async fn audio_files(
        &self,
        app: &AppId,
        owner: FileOwner,
        names: &[FileName],
    ) -> Result<Vec<Option<ContentId>>, StoreError> {
        audio_files::audio_files(&**self.client().await?, app, owner, names).await
    }

    async fn add_audio_files(&self, files: Vec<AddedFile>) -> Result<(), StoreError> {
        audio_files::add(&**self.client().await?, files).await
    }

    async fn audio_files_of(&self, owner: &AudioOwner) -> Result<Vec<AddedFile>, StoreError> {
        audio_files::all(&**self.client().await?, owner).await
    }

    async fn remove_audio_file(
        &self,
        owner: &AudioOwner,
        name: &FileName,
    ) -> Result<(), StoreError> {
        audio_files::remove(&**self.client().await?, owner, name).await
    }

    async fn audio_contents_in_use(&self) -> Result<HashSet<ContentId>, StoreError> {
        audio_files::in_use(&**self.client().await?).await
    }

    async fn accept_call(&self, call: NewCall) -> Result<(), StoreError> {
        self.accepter.accept(call).await
    }

    async fn call_progress(
        &self,
        account: &AccountSid,
        sid: &CallSid,
    ) -> Result<Option<CallProgress>, StoreError> {
        calls::progress(&**self.client().await?, account, sid).await
    }

    async fn claim_callbacks(&self, claim: CallbackClaim) -> Result<ClaimedBatch, StoreError> {
        let client = self.client().await?;
        let (hosts, next_due) = claim.choose(callbacks::waiting_hosts(&client).await?);
        let callbacks = if hosts.is_empty() {
            Vec::new()
        } else {
            callbacks::claim(&client, &claim, &hosts).await?
        };
        Ok(ClaimedBatch {
            callbacks,
            next_due,
        })
    }

    async fn record_attempts(&self, ended: Vec<EndedAttempt>) -> Result<Vec<CallSid>, StoreError> {
        callbacks::record(&*self.client().await?, &ended).await
    }

    async fn release_callbacks(&self, leases: Vec<CallbackLease>) -> Result<(), StoreError> {
        callbacks::release(&**self.client().await?, &leases).await
    }

    async fn reclaim_callbacks(&self, _node: &str) -> Result<u64, StoreError> {
        callbacks::reclaim(&**self.client().await?).await
    }

    async fn callbacks(&self, filter: CallbackFilter) -> Result<Vec<Callback>, StoreError> {
        callbacks::list(&**self.client().await?, &filter).await
    }

    async fn callback(
        &self,
        sid: &CallSid,
    ) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError> {
        callbacks::find(&**self.client().await?, sid).await
    }

    async fn replay_callback(&self, sid: &CallSid, now: Timestamp) -> Result<(), StoreError> {
        callbacks::replay(&**self.client().await?, sid, now).await
    }

    async fn callback_backlog(&self) -> Result<CallbackBacklog, StoreError> {
        callbacks::backlog(&**self.client().await?).await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        // A standby can be read but not written, and would be of no use.
        let client = self.client().await?;
        let row = client.query_one("SELECT pg_is_in_recovery()", &[]).await?;
        if row.get(0) {
            return Err(StoreError::failed(
                "PostgreSQL is in recovery and cannot be written to",
            ));
        }
        Ok(())
    }

    async fn close(&self) {
        self.accepter.close();
        self.pool.close();
    }
}
