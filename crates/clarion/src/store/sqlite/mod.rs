//! The embedded store: one SQLite file in WAL mode, `synchronous=FULL`.
//!
//! One thread writes (`writer`), committing everything that has arrived in one transaction; readers go beside it on connections of
//! their own; a third thread moves the log back into the file (`checkpoint`) so that the writer rarely has to.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use async_trait::async_trait;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use supervisor::Supervisor;
use tokio::sync::{Notify, Semaphore};

use self::checkpoint::{Backlog, Checkpointer};
use self::query::Query;
use self::queue_clock::QueueClock;
use self::reserve::GivenUp;
use self::writer::Writer;
use super::incident_room::IncidentRoom;
use super::migrations::{SchemaRight, WANTED};
use super::statements::PROBE;
use super::{Inspection, Store, StoreError, WriteProbe};

mod accounts;
mod audio_files;
mod audit_trail;
#[cfg(test)]
mod backlog_tests;
mod bills;
mod call_lists;
#[cfg(test)]
mod callback_backlog_tests;
pub mod callbacks;
pub mod calls;
pub mod checkpoint;
mod claiming;
mod do_not_call;
mod ending;
mod failure;
mod held_call;
mod inbox;
mod intakes;
mod legs;
mod operators;
mod query;
mod queue;
pub mod queue_clock;
mod records;
mod reserve;
#[cfg(test)]
mod reserve_tests;
mod schema;
mod views;
mod writer;

/// Another process (the command line beside a server) may hold the write lock for a moment; nobody holds it for seconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// A check reads pages for this long at most.
const TIME_FOR_PAGES: Duration = Duration::from_secs(30);
/// More readers at once would only wait for the same disk, each with a connection and a cache of its own.
const READERS: usize = 8;
/// In KiB. The writer's: the upper levels of every index stay in memory also after ten million calls.
const WRITER_CACHE: i32 = 32_768;
const READER_CACHE: i32 = 4_096;

#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    clock: QueueClock,
    writer: Writer,
    readers: Arc<Mutex<Vec<Connection>>>,
    turns: Semaphore,
    /// One readiness probe at a time.
    probe: Arc<Semaphore>,
    backlog: Arc<Backlog>,
    incident_room: Arc<IncidentRoom>,
    _checkpointer: Checkpointer,
}

impl SqliteStore {
    pub(super) async fn open(
        path: &Path,
        right: SchemaRight,
        supervisor: &Supervisor,
    ) -> anyhow::Result<Self> {
        let (path, supervisor) = (path.to_owned(), supervisor.clone());
        let opened =
            tokio::task::spawn_blocking(move || Self::open_blocking(path, right, &supervisor));
        opened
            .await?
            .inspect_err(failure::stop_if_it_comes_from_damage)
    }

    fn open_blocking(
        path: PathBuf,
        right: SchemaRight,
        supervisor: &Supervisor,
    ) -> anyhow::Result<Self> {
        let mut connection = connect(&path)
            .with_context(|| format!("cannot open the database {}", path.display()))?;
        schema::migrate(&mut connection, right)
            .with_context(|| format!("cannot use the database {}", path.display()))?;
        let clock = QueueClock::read(&connection)?;
        let checkpointer = Checkpointer::start(connect(&path)?, &path, supervisor)?;
        let backlog = checkpointer.backlog();
        backlog.watch(&mut connection)?;
        let writer = Writer::start(connection, Arc::clone(&backlog), supervisor)?;
        Ok(Self {
            path,
            clock,
            writer,
            readers: Arc::default(),
            turns: Semaphore::new(READERS),
            probe: Arc::new(Semaphore::new(1)),
            backlog,
            incident_room: Arc::default(),
            _checkpointer: checkpointer,
        })
    }

    /// Like `write`, for what begins something: it leaves the reserve to what has begun.
    async fn begin<T, F>(&self, change: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        self.write_until(GivenUp::Half, change).await
    }

    /// Like `write`, for what begins nothing and yet is neither the end of a call nor its progress: it leaves the last half of the reserve to those.
    async fn write_beside<T, F>(&self, change: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        self.write_until(GivenUp::All, change).await
    }

    /// Makes a change unless so much of the reserve was given up.
    async fn write_until<T, F>(&self, too_much: GivenUp, change: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let backlog = Arc::clone(&self.backlog);
        let has_room = move || {
            if backlog.reserve.given_up() >= too_much {
                return Err(StoreError::NoRoom);
            }
            Ok(())
        };
        has_room()?;
        self.write(move |db| {
            // The disk may have become full since it was handed in, by this very change perhaps.
            has_room()?;
            change(db)
        })
        .await
    }

    /// Hands a change to the writer and waits until it is durable.
    async fn write<T, F>(&self, change: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        self.writer.write(change).await
    }

    /// Runs a read on a connection of its own, off the async threads.
    async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
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
        tokio::task::spawn_blocking(work)
            .await
            .map_err(StoreError::failed)?
    }
}

/// Two that open an empty file in the same moment get in each other's way here, and SQLite itself does not wait for this lock.
fn use_a_log(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update(None, "journal_mode", "wal") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < deadline =>
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
    // Or an INSERT OR REPLACE would delete what it replaces without asking the trigger that keeps it.
    connection.pragma_update(None, "recursive_triggers", true)?;
    // What is written over is not left in the file: a code that was said is forgotten.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE)?;
    prepare_once(&connection)?;
    Ok(connection)
}

/// More than there are statements.
const MAX_STATEMENTS: usize = 256;

/// A statement is prepared once and keeps its plan. Otherwise SQLite looks at the values that are bound, a limit for instance, and prepares the statement
/// anew for every other one: that was six times for each call.
fn prepare_once(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(MAX_STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Looks at the file without making or changing anything.
pub fn inspect(path: &Path) -> anyhow::Result<Inspection> {
    let mut found = Inspection {
        version: 0,
        is_usable: true,
        wanted: WANTED,
        now: None,
        dangers: Vec::new(),
        damage: None,
        route: None,
    };
    if !path.exists() {
        return Ok(found);
    }
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let schema = schema::find(&connection)?;
    found.version = schema.version;
    found.is_usable = schema.is_usable();
    connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
    found.damage = damage(&mut connection)?;
    Ok(found)
}

/// Reads every page, as far as the time allows.
fn damage(connection: &mut Connection) -> anyhow::Result<Option<String>> {
    let began = Instant::now();
    connection.progress_handler(100_000, Some(move || began.elapsed() > TIME_FOR_PAGES))?;
    let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    connection.progress_handler(0, None::<fn() -> bool>)?;
    match found {
        Ok(said) if said == "ok" => Ok(None),
        Ok(said) => Ok(Some(said)),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Ok(None)
        }
        Err(error) => Ok(Some(error.to_string())),
    }
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
impl WriteProbe for SqliteStore {
    async fn ready(&self) -> Result<(), StoreError> {
        // The turn goes along with the change: whoever asks again waits for this one, also when nobody waits for its answer any more.
        let turn = Arc::clone(&self.probe).acquire_owned().await;
        let turn = turn.map_err(StoreError::failed)?;
        self.begin(move |db| {
            let _turn = &turn;
            match db.run(PROBE.sqlite, [])? {
                1 => Ok(()),
                _ => Err(StoreError::failed("the row for probing is missing")),
            }
        })
        .await
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn keep_reserve(&self, bytes: u64) {
        self.backlog.reserve.keep(bytes);
    }

    fn wake_up(&self, _supervisor: &Supervisor) -> Arc<Notify> {
        Arc::default()
    }

    async fn close(&self) {
        self.writer.stop().await;
    }
}
