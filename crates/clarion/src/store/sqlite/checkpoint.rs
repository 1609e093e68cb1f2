//! Moves the write-ahead log back into the database file without stalling the writer, in many small steps.
//!
//! SQLite's own way is to let the committer that crosses a threshold do the copying, which makes some requests wait for it. Here a
//! thread of its own copies while the writer goes on. It can never catch up wholly under a steady load, and the log starts again from
//! its beginning only when it has: so when the log is long, the writer copies the few frames that are left (`relieve`).
//!
//! A commit syncs the log, and it waits for whatever else is being synced on the same disk. Before a log is started anew, SQLite syncs the
//! database file. So little may be left to sync at any time: the thread copies and syncs whenever a few hundred frames have come in, and the
//! log is short. The figures are in `docs/decisions/0023-the-log-is-copied-in-small-steps.md`.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use supervisor::Supervisor;

use super::BUSY_TIMEOUT;
use super::failure::{stop_if_lost, stop_the_disk_failed};
use super::reserve::{GivenUp, Reserve};
use crate::seldom::Seldom;

/// Frames (4 KiB each) that come in before they are copied.
const STEP: u32 = 500;
/// How long a few frames wait to be copied.
const PAUSE: Duration = Duration::from_millis(250);
const PAGE_BYTES: f64 = 4096.0;
/// Frames in the log above which the writer starts it anew as soon as little is left to copy: 8 MiB.
const LONG_LOG: u32 = 2_000;
/// Above this the log is started anew whatever it costs: it must stay bounded. 256 MiB.
const OVERLONG_LOG: u32 = 65_536;
/// How long the writer waits for a reader that holds the log.
const MOMENT: Duration = Duration::from_millis(2);
/// One pass over a long log on a slow disk may take seconds. A thread that takes longer than this is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the writer and the thread that copies know of the log.
#[derive(Debug, Default)]
pub struct Backlog {
    state: Mutex<LogState>,
    wanted: Condvar,
    pub reserve: Reserve,
}

#[derive(Debug, Default)]
struct LogState {
    frames: u32,
    /// How many of them are in the database file.
    copied: u32,
    pass: Pass,
    is_closed: bool,
}

/// How far the thread is that copies.
#[derive(Debug, Default, PartialEq, Eq)]
enum Pass {
    #[default]
    None,
    Wanted,
    Running,
    /// The writer may start the log anew: one try for each pass, because a reader may hold the log.
    Done,
}

impl LogState {
    fn rest(&self) -> u32 {
        self.frames.saturating_sub(self.copied)
    }

    fn is_to_be_restarted(&self, long: u32) -> bool {
        let little = self.rest() < STEP || self.frames > OVERLONG_LOG;
        self.pass == Pass::Done && self.frames > long && little
    }
}

impl Backlog {
    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees every commit of the connection that writes.
    pub fn watch(self: &Arc<Self>, writing: &mut Connection) -> rusqlite::Result<()> {
        let backlog = Arc::clone(self);
        writing.wal_hook(Some(move |_: &mut _, frames| {
            let mut state = backlog.state();
            let frames = u32::try_from(frames).unwrap_or(0);
            // Otherwise it would have more: the log was started anew.
            if frames <= state.frames {
                state.copied = 0;
            }
            state.frames = frames;
            Ok(())
        }))
    }

    /// Called by the writer between two transactions: has the log copied, and starts it anew when it is long and little is left to copy.
    pub fn relieve(&self, writing: &Connection) {
        // A log that stays as long as it is takes no more of a full disk.
        let long = match self.reserve.given_up() {
            GivenUp::Nothing => LONG_LOG,
            GivenUp::Half | GivenUp::All => 0,
        };
        let mut state = self.state();
        if state.is_to_be_restarted(long) {
            state.pass = Pass::None;
            drop(state);
            self.restart(writing);
        } else if state.rest() >= STEP && matches!(state.pass, Pass::None | Pass::Done) {
            state.pass = Pass::Wanted;
            self.wanted.notify_one();
        }
    }

    /// Called by the writer when a commit has found the disk full. What the reserve took is for the database file: the log is copied there and
    /// starts anew in the room that it has.
    pub fn make_room(&self, writing: &Connection) {
        metrics::counter!("clarion_store_disk_full_total").increment(1);
        self.reserve.give_up();
        self.restart(writing);
    }

    fn restart(&self, writing: &Connection) {
        match restart(writing) {
            Ok(counts) => self.record(&counts),
            Err(error) => failed(&error),
        }
    }

    fn record(&self, counts: &LogCounts) {
        let mut state = self.state();
        // Otherwise the log was started anew meanwhile.
        if state.frames >= counts.frames {
            state.copied = counts.copied;
        }
    }

    /// Comes back when there is something to copy. False at the end.
    fn wait(&self) -> bool {
        let idle = |state: &mut LogState| state.pass != Pass::Wanted && !state.is_closed;
        let waited = self.wanted.wait_timeout_while(self.state(), PAUSE, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        metrics::gauge!("clarion_store_wal_bytes").set(f64::from(state.frames) * PAGE_BYTES);
        if state.rest() > 0 {
            state.pass = Pass::Running;
        }
        !state.is_closed
    }

    fn copy_if_wanted(&self, connection: &Connection, file: &File) {
        if self.state().pass != Pass::Running {
            return;
        }
        match checkpoint(connection, "PASSIVE") {
            Ok(counts) => {
                if let Err(error) = file.sync_data() {
                    stop_the_disk_failed(&error);
                }
                self.record(&counts);
            }
            Err(error) => failed(&error),
        }
        self.state().pass = Pass::Done;
    }

    fn close(&self) {
        self.state().is_closed = true;
        self.wanted.notify_one();
    }
}

struct LogCounts {
    frames: u32,
    copied: u32,
}

fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<LogCounts> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        // -1 where there is no log yet.
        let count = |index| {
            row.get::<_, i64>(index)
                .map(|n| u32::try_from(n).unwrap_or(0))
        };
        Ok(LogCounts {
            frames: count(1)?,
            copied: count(2)?,
        })
    })
}

/// Starts the log anew. A reader that holds the old one is waited for only for a moment: commits are waiting behind us.
fn restart(connection: &Connection) -> rusqlite::Result<LogCounts> {
    connection.busy_timeout(MOMENT)?;
    let result = checkpoint(connection, "RESTART");
    connection.busy_timeout(BUSY_TIMEOUT)?;
    result
}

fn failed(error: &rusqlite::Error) {
    static FAILURES: Seldom = Seldom::new();
    // What was not synced into the database file is still in the log, but the next try might believe that it was.
    stop_if_lost(error);
    if let Some(unsaid) = FAILURES.say() {
        tracing::warn!(%error, unsaid, "the write-ahead log could not be copied");
    }
}

/// Stops its thread when it is dropped.
#[derive(Debug)]
pub struct Checkpointer {
    backlog: Arc<Backlog>,
}

impl Checkpointer {
    /// Its thread may be started anew at any moment: what a pass has left undone is still in the log.
    pub fn start(
        connection: Connection,
        path: &Path,
        supervisor: &Supervisor,
    ) -> std::io::Result<Self> {
        // Never closed: closing any descriptor of the file would drop the locks that SQLite holds on it (POSIX).
        let file = ManuallyDrop::new(File::open(path)?);
        let backlog = Arc::new(Backlog {
            reserve: Reserve::beside(path),
            ..Backlog::default()
        });
        let seen = Arc::clone(&backlog);
        supervisor.restart_thread("store-checkpoint", Some(PATIENCE), move |watch| {
            while seen.wait() {
                watch.heartbeat();
                seen.copy_if_wanted(&connection, &file);
                seen.reserve.look_after();
            }
            watch.release();
        })?;
        Ok(Self { backlog })
    }

    pub fn backlog(&self) -> Arc<Backlog> {
        Arc::clone(&self.backlog)
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.backlog.close();
    }
}

#[cfg(test)]
mod tests {
    use super::super::connect;
    use super::*;

    /// A database, and both sides of its log without a thread.
    struct Site {
        _folder: tempfile::TempDir,
        writing: Connection,
        copying: Connection,
        file: ManuallyDrop<File>,
        backlog: Arc<Backlog>,
    }

    impl Site {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log.db");
            let mut writing = connect(&path).unwrap();
            let backlog = Arc::new(Backlog::default());
            backlog.watch(&mut writing).unwrap();
            let table = "CREATE TABLE kept (bytes BLOB)";
            writing.execute_batch(table).unwrap();
            Self {
                _folder: folder,
                copying: connect(&path).unwrap(),
                file: ManuallyDrop::new(File::open(&path).unwrap()),
                writing,
                backlog,
            }
        }

        fn frames(&self) -> u32 {
            self.backlog.state().frames
        }

        /// Commits about so many frames.
        fn commit(&self, frames: u32) {
            let keep = "INSERT INTO kept VALUES (zeroblob(?1))";
            self.writing.execute(keep, [frames * 4096]).unwrap();
        }

        /// Holds the log as it is now.
        fn reader(&self) -> Connection {
            let reader = connect(Path::new(self.writing.path().unwrap())).unwrap();
            let read = "BEGIN; SELECT count(*) FROM kept";
            reader.execute_batch(read).unwrap();
            reader
        }

        /// A long log of which a pass has copied all but a little that came in meanwhile.
        fn fill(&self) -> Connection {
            self.commit(LONG_LOG);
            self.backlog.relieve(&self.writing);
            assert_eq!(self.backlog.state().pass, Pass::Wanted);
            let reader = self.reader();
            self.commit(20);
            self.copy();
            let rest = self.backlog.state().rest();
            assert!((20..STEP).contains(&rest), "{rest} frames");
            reader
        }

        fn copy(&self) {
            assert!(self.backlog.wait());
            self.backlog.copy_if_wanted(&self.copying, &self.file);
            assert_eq!(self.backlog.state().pass, Pass::Done);
        }
    }

    #[test]
    fn a_long_log_is_started_anew_by_the_writer_when_little_is_left() {
        let site = Site::new();
        site.commit(10);
        site.backlog.relieve(&site.writing);
        assert_eq!(site.backlog.state().pass, Pass::None, "it is not worth it");
        drop(site.fill());
        site.backlog.relieve(&site.writing);
        site.commit(1);
        assert!(site.frames() < 20, "{} frames", site.frames());
        assert_eq!(site.backlog.state().copied, 0);
    }

    #[test]
    fn a_log_that_a_reader_holds_is_tried_once_a_pass() {
        let site = Site::new();
        let reader = site.fill();
        for _ in 0..3 {
            site.backlog.relieve(&site.writing);
            assert_eq!(site.backlog.state().pass, Pass::None);
            site.commit(1);
        }
        assert!(site.frames() > LONG_LOG);
        drop(reader);
        site.commit(STEP);
        site.backlog.relieve(&site.writing);
        site.copy();
        site.backlog.relieve(&site.writing);
        site.commit(1);
        assert!(site.frames() < 20, "{} frames", site.frames());
    }

    #[test]
    fn little_is_copied_after_a_pause_and_nothing_is_copied_twice() {
        let site = Site::new();
        site.commit(10);
        site.copy();
        assert_eq!(site.backlog.state().rest(), 0);
        site.backlog.state().pass = Pass::None;
        assert!(site.backlog.wait());
        assert_eq!(site.backlog.state().pass, Pass::None);
        site.backlog.close();
        assert!(!site.backlog.wait());
    }
}
