//! The embedded store: one SQLite file in WAL mode, `synchronous=FULL`.
//!
//! One thread writes (`writer`), committing everything that has arrived in one transaction; readers go beside it on connections of
//! their own; a third thread moves the log back into the file (`checkpoint`) so that the writer rarely has to.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::Semaphore;

use self::checkpoint::Checkpointer;
use self::writer::Writer;
use super::{
    CallbackBacklog, CallbackClaim, CallbackFilter, ClaimedBatch, Inspection, Store, StoreError,
};
use crate::domain::account::{
    Account, AccountChange, AccountSid, AppId, Application, ApplicationChange,
};
use crate::domain::call::{CallProgress, CallSid, NewCall};
use crate::domain::callback::{Callback, CallbackAttempt, CallbackLease, EndedAttempt};
use crate::domain::prompt::{AddedFile, AudioOwner, ContentId, FileName, FileOwner};

mod accounts;
mod audio_files;
mod bills;
pub mod callbacks;
pub mod calls;
pub mod checkpoint;
mod claiming;
mod ending;
mod queue;
mod records;
mod schema;
mod writer;

/// Another process (the command line beside a server) may hold the write lock for a moment; nobody holds it for seconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// More readers at once would only wait for the same disk, each with a connection and a cache of its own.
const READERS: usize = 8;
/// In KiB. The writer's: the upper levels of every index stay in memory also after ten million calls.
const WRITER_CACHE: i32 = 32_768;
const READER_CACHE: i32 = 4_096;

#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    writer: Writer,
    readers: Arc<Mutex<Vec<Connection>>>,
    turns: Semaphore,
    _checkpointer: Checkpointer,
}

impl SqliteStore {
    pub async fn open(path: &Path) -> anyhow::Result<Self> {
        let path = path.to_owned();
        tokio::task::spawn_blocking(move || Self::open_blocking(path)).await?
    }

    fn open_blocking(path: PathBuf) -> anyhow::Result<Self> {
        let mut connection = connect(&path)
            .with_context(|| format!("cannot open the database {}", path.display()))?;
        schema::migrate(&mut connection)
            .with_context(|| format!("cannot bring the database {} up to date", path.display()))?;
        let checkpointer = Checkpointer::start(connect(&path)?, &path)?;
        let writer = Writer::start(connection, checkpointer.backlog());
        Ok(Self {
            path,
            writer,
            readers: Arc::default(),
            turns: Semaphore::new(READERS),
            _checkpointer: checkpointer,
        })
    }

    /// Hands a change to the writer and waits until it is durable.
    async fn write<T, F>(&self, change: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.writer
            .write(move |db| change(db).map_err(StoreError::failed))
            .await
    }

    /// Runs a read on a connection of its own, off the async threads.
    async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let _turn = self.turns.acquire().await.map_err(StoreError::failed)?;
        let (readers, path) = (Arc::clone(&self.readers), self.path.clone());
        let work = move || {
            let idle = readers
                .lock()
                .expect("no reader panics while it holds the list")
                .pop();
            let connection = match idle {
                Some(connection) => connection,
                None => connect_reader(&path)?,
            };
            let result = read(&connection);
            readers
                .lock()
                .expect("no reader panics while it holds the list")
                .push(connection);
            result
        };
        let result = tokio::task::spawn_blocking(work)
            .await
            .map_err(StoreError::failed)?;
        result.map_err(StoreError::failed)
    }
}

/// Two that open an empty file in the same moment get in each other's way here, and SQLite itself does not wait for this lock.
fn use_a_log(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = std::time::Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update(None, "journal_mode", "wal") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && std::time::Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
}

fn connect_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path)?;
    connection.pragma_update(None, "cache_size", -READER_CACHE)?;
    Ok(connection)
}

/// Every connection of ours is made here, so that none can forget a setting.
pub fn connect(path: &Path) -> rusqlite::Result<Connection> {
    create_private(path);
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    use_a_log(&connection)?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Looks at the file without making or changing anything.
pub fn inspect(path: &Path) -> anyhow::Result<Inspection> {
    let mut found = Inspection {
        version: 0,
        wanted: schema::WANTED,
        now: None,
        dangers: Vec::new(),
    };
    if !path.exists() {
        return Ok(found);
    }
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    found.version = schema::version(&connection)?;
    connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
    Ok(found)
}

/// After a failed sync nobody knows what is on the disk, and trying again may report success for data that is gone. Only a fresh
/// start, which reads the file as it is, tells the truth.
fn stop_if_the_disk_failed(error: &rusqlite::Error) {
    if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
        stop_the_disk_failed(error);
    }
}

fn stop_the_disk_failed(error: &dyn std::error::Error) -> ! {
    tracing::error!(%error, "the disk failed; stopping, because nothing can be promised any more");
    std::process::exit(74); // EX_IOERR
}

/// The file holds account tokens: nobody but its owner may read it. SQLite gives the log files the same mode.
fn create_private(path: &Path) {
    use std::os::unix::fs::OpenOptionsExt;
    // If this fails, opening the database fails next, with the better message.
    let _ = std::fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path);
}

#[async_trait]
impl Store for SqliteStore {
    async fn add_account(&self, account: Account) -> Result<(), StoreError> {
        self.writer
            .write(move |db| accounts::add(db, &account))
            .await
    }

    async fn account(&self, sid: &AccountSid) -> Result<Option<Account>, StoreError> {
        let sid = sid.clone();
        self.read(move |db| accounts::find(db, &sid)).await
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.read(accounts::all).await
    }

    async fn change_account(
        &self,
        sid: &AccountSid,
        change: AccountChange,
    ) -> Result<Account, StoreError> {
        let sid = sid.clone();
        self.writer
            .write(move |db| accounts::change(db, &sid, change.clone()))
            .await
    }

    async fn add_application(&self, application: Application) -> Result<(), StoreError> {
        self.writer
            .write(move |db| accounts::add_application(db, &application))
            .await
    }

    async fn application(&self, id: &AppId) -> Result<Option<Application>, StoreError> {
        let id = id.clone();
        self.read(move |db| accounts::find_application(db, &id))
            .await
    }

    async fn applications(&self, account: &AccountSid) -> Result<Vec<Application>, StoreError> {
        let account = account.clone();
        self.read(move |db| accounts::applications(db, &account))
            .await
    }

    async fn change_application(
        &self,
        id: &AppId,
        change: ApplicationChange,
    ) -> Result<Application, StoreError> {
        let id = id.clone();
        self.writer
            .write(move |db| accounts::change_application(db, &id, change.clone()))
            .await
    }

    async fn audio_files(
        &self,
        app: &AppId,
        owner: FileOwner,
        names: &[FileName],
    ) -> Result<Vec<Option<ContentId>>, StoreError> {
        let (app, names) = (app.clone(), names.to_vec());
        self.read(move |db| audio_files::audio_files(db, &app, owner, &names))
            .await
    }

    async fn add_audio_files(&self, files: Vec<AddedFile>) -> Result<(), StoreError> {
        self.writer
            .write(move |db| audio_files::add(db, &files))
            .await
    }

    async fn audio_files_of(&self, owner: &AudioOwner) -> Result<Vec<AddedFile>, StoreError> {
        let owner = owner.clone();
        self.read(move |db| audio_files::all(db, &owner)).await
    }

    async fn remove_audio_file(
        &self,
        owner: &AudioOwner,
        name: &FileName,
    ) -> Result<(), StoreError> {
        let (owner, name) = (owner.clone(), name.clone());
        self.writer
            .write(move |db| audio_files::remove(db, &owner, &name))
            .await
    }

    async fn audio_contents_in_use(&self) -> Result<HashSet<ContentId>, StoreError> {
        self.read(audio_files::in_use).await
    }

    async fn accept_call(&self, call: NewCall) -> Result<(), StoreError> {
        self.writer
            .write(move |db| {
                calls::accept(db, &call)
                    .map(drop)
                    .map_err(StoreError::failed)
            })
            .await
    }

    async fn call_progress(
        &self,
        account: &AccountSid,
        sid: &CallSid,
    ) -> Result<Option<CallProgress>, StoreError> {
        let (account, sid) = (account.clone(), sid.clone());
        self.read(move |db| calls::progress(db, &account, &sid))
            .await
    }

    async fn claim_callbacks(&self, claim: CallbackClaim) -> Result<ClaimedBatch, StoreError> {
        // Looking is left to a reader: the writer is not kept from its work by what waits for hosts without room.
        let (hosts, next_due) = claim.choose(self.read(callbacks::waiting_hosts).await?);
        if hosts.is_empty() {
            return Ok(ClaimedBatch {
                callbacks: Vec::new(),
                next_due,
            });
        }
        let callbacks = self
            .writer
            .write(move |db| callbacks::claim(db, &claim, &hosts).map_err(StoreError::failed))
            .await?;
        Ok(ClaimedBatch {
            callbacks,
            next_due,
        })
    }

    async fn record_attempts(&self, ended: Vec<EndedAttempt>) -> Result<Vec<CallSid>, StoreError> {
        self.writer
            .write(move |db| callbacks::record(db, &ended).map_err(StoreError::failed))
            .await
    }

    async fn release_callbacks(&self, leases: Vec<CallbackLease>) -> Result<(), StoreError> {
        self.writer
            .write(move |db| callbacks::release(db, &leases).map_err(StoreError::failed))
            .await
    }

    async fn reclaim_callbacks(&self, node: &str) -> Result<u64, StoreError> {
        let node = node.to_owned();
        self.writer
            .write(move |db| callbacks::reclaim(db, &node).map_err(StoreError::failed))
            .await
    }

    async fn callbacks(&self, filter: CallbackFilter) -> Result<Vec<Callback>, StoreError> {
        self.read(move |db| callbacks::list(db, &filter)).await
    }

    async fn callback(
        &self,
        sid: &CallSid,
    ) -> Result<Option<(Callback, Vec<CallbackAttempt>)>, StoreError> {
        let sid = sid.clone();
        self.read(move |db| callbacks::find(db, &sid)).await
    }

    async fn replay_callback(&self, sid: &CallSid, now: Timestamp) -> Result<(), StoreError> {
        let sid = sid.clone();
        self.writer
            .write(move |db| callbacks::replay(db, &sid, now))
            .await
    }

    async fn callback_backlog(&self) -> Result<CallbackBacklog, StoreError> {
        self.read(callbacks::backlog).await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.writer.write(|_| Ok(())).await
    }

    async fn close(&self) {
        self.writer.stop().await;
    }
}
