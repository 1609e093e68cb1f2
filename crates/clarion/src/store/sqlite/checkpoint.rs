//! Moves the write-ahead log back into the database file without stalling the writer.
//!
//! SQLite's own way is to let the committer that crosses a threshold do the copying, which makes some requests wait for it. Here a
//! thread of its own copies while the writer goes on. It can never catch up wholly under a steady load, and the log starts again from
//! its beginning only when it has: so when the log has grown large, the writer copies the few frames that are left (`relieve`).
//!
//! Before a log is started anew, SQLite syncs the database file, and it does so in the thread that starts it: with everything that was copied since
//! the last time still to be written, commits stood for 60 to 100 ms. So this thread syncs the file after each pass, and the writer finds
//! it clean.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::Connection;
use supervisor::Supervisor;

use super::BUSY_TIMEOUT;
use super::failure::{stop_if_lost, stop_the_disk_failed};

const PAUSE: Duration = Duration::from_millis(250);
const PAGE_BYTES: f64 = 4096.0;
/// Frames in the log (4 KiB each) above which the writer helps to start it anew: 64 MiB.
const LONGEST_LOG: u32 = 16_384;
/// So few frames left to copy that the writer does it in a few milliseconds.
const SMALL_REST: u32 = 256;
/// How often a long log is copied again at most.
const PASSES: usize = 5;
/// How long the writer waits for a reader that holds the log.
const MOMENT: Duration = Duration::from_millis(10);
/// Above this the log is started anew whatever it costs: it must stay bounded. 512 MiB.
const OVERLONG_LOG: u32 = 131_072;
/// One pass over a long log on a slow disk may take seconds. A thread that takes longer than this is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the log was at the last look, and how much of it was not yet copied.
#[derive(Debug, Default)]
pub struct Backlog {
    frames: AtomicU32,
    rest: AtomicU32,
    fresh: AtomicBool,
}

impl Backlog {
    fn look(&self, (frames, copied): (u32, u32)) {
        self.frames.store(frames, Ordering::Relaxed);
        self.rest
            .store(frames.saturating_sub(copied), Ordering::Relaxed);
        self.fresh.store(true, Ordering::Release);
        metrics::gauge!("clarion_store_wal_bytes").set(f64::from(frames) * PAGE_BYTES);
    }

    /// Called by the writer between two transactions: starts the log anew when it is long and little is left to copy.
    pub fn relieve(&self, connection: &Connection) {
        let frames = self.frames.load(Ordering::Relaxed);
        let small = self.rest.load(Ordering::Relaxed) <= SMALL_REST;
        let worth_it = frames > LONGEST_LOG && (small || frames > OVERLONG_LOG);
        // One try for each look: a long reader may hold the log, and then trying at every commit would only cost time.
        if worth_it && self.fresh.swap(false, Ordering::Acquire) {
            match restart(connection) {
                Ok(_) => self.frames.store(0, Ordering::Relaxed),
                Err(error) => failed(&error),
            }
        }
    }
}

/// Frames in the log, and how many of them are in the database file now.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<(u32, u32)> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        // -1 where there is no log yet.
        let count = |index| {
            row.get::<_, i64>(index)
                .map(|n| u32::try_from(n).unwrap_or(0))
        };
        Ok((count(1)?, count(2)?))
    })
}

/// Starts the log anew. A reader that holds the old one is waited for only for a moment: commits are waiting behind us.
fn restart(connection: &Connection) -> rusqlite::Result<(u32, u32)> {
    connection.busy_timeout(MOMENT)?;
    let result = checkpoint(connection, "RESTART");
    connection.busy_timeout(BUSY_TIMEOUT)?;
    result
}

fn failed(error: &rusqlite::Error) {
    // What was not synced into the database file is still in the log, but the next try might believe that it was.
    stop_if_lost(error);
    tracing::warn!(%error, "the write-ahead log could not be copied");
}

/// Copies what is in the log. What was written meanwhile is not in the count, so a long log is copied again and again, each time in
/// less time, until so little came in between that the writer's share will be small.
fn copy(connection: &Connection) -> rusqlite::Result<(u32, u32)> {
    let mut counts = checkpoint(connection, "PASSIVE")?;
    for _ in 0..PASSES {
        let before = counts.0;
        if before <= LONGEST_LOG {
            break;
        }
        counts = checkpoint(connection, "PASSIVE")?;
        if counts.0.saturating_sub(before) <= SMALL_REST {
            break;
        }
    }
    Ok(counts)
}

/// Stops its thread when it is dropped.
#[derive(Debug)]
pub struct Checkpointer {
    backlog: Arc<Backlog>,
    _stop: mpsc::Sender<()>,
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
        let (stop, stopped) = mpsc::channel::<()>();
        let backlog = Arc::new(Backlog::default());
        let seen = Arc::clone(&backlog);
        supervisor.restart_thread("store-checkpoint", Some(PATIENCE), move |watch| {
            while stopped.recv_timeout(PAUSE) == Err(mpsc::RecvTimeoutError::Timeout) {
                watch.beat();
                match copy(&connection) {
                    Ok(counts) => {
                        if let Err(error) = file.sync_data() {
                            stop_the_disk_failed(&error);
                        }
                        seen.look(counts);
                    }
                    Err(error) => failed(&error),
                }
            }
            watch.release();
        })?;
        Ok(Self {
            backlog,
            _stop: stop,
        })
    }

    pub fn backlog(&self) -> Arc<Backlog> {
        Arc::clone(&self.backlog)
    }
}
