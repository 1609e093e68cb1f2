//! Group commit: one thread owns the writing connection and commits everything that has arrived in one transaction, then answers all.
//!
//! One durable commit costs a disk sync whatever is in it, so under load the batch grows by itself and the cost per change falls. A lone
//! change is committed at once. Where changes come together, commits keep a millisecond apart (`BREATH`): on a disk that syncs quickly
//! they would otherwise follow each other so closely that each carries two or three changes, and at half load the writer alone would
//! use up a core.
//!
//! A bad change fails alone. Savepoints would see to that, but SQLite then copies every page before it is changed, once per change. So
//! the changes go in bare, and only when one fails is everything undone and done again, each change behind a savepoint. That is why a
//! change can be run twice (`Fn`). A change that panics has failed like any other; a panic elsewhere in this thread ends the process, by the
//! supervisor.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

use rusqlite::Connection;
use supervisor::{Supervisor, Watch, panic_message};
use tokio::sync::{mpsc, oneshot};

use super::super::StoreError;
use super::checkpoint::Backlog;
use super::failure::{is_disk_full, stop_if_lost};
use super::inbox::{Inbox, Received};
use crate::seldom::Seldom;
use crate::telemetry::note_commit;

/// Beyond this a larger batch gains nothing any more and only makes the first one in it wait.
const LARGEST_BATCH: usize = 256;
/// From the beginning of a commit of several changes to the beginning of the next, at least.
const BREATH: Duration = Duration::from_millis(1);
/// Changes that may wait before those who hand them in have to wait too.
const QUEUE: usize = 4096;
/// A thread that has nothing to do shows this often that it is alive.
const IDLE: Duration = Duration::from_secs(1);
/// A commit may have to wait for another process that holds the lock (`BUSY_TIMEOUT`), and for a slow disk after that.
const PATIENCE: Duration = Duration::from_secs(20);

/// A change that has been handed in: runs inside the transaction, twice if it must, and is answered when the commit is known.
trait Job: Send {
    /// False if the change failed and must be undone.
    fn run(&mut self, db: &Connection) -> bool;
    fn answer(self: Box<Self>, commit: Result<(), StoreError>);
}

struct Change<T, F> {
    work: F,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Change<T, F>
where
    T: Send,
    F: Fn(&Connection) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, db: &Connection) -> bool {
        let result = catch_unwind(AssertUnwindSafe(|| (self.work)(db))).unwrap_or_else(|panic| {
            let message = panic_message(&*panic);
            tracing::error!(
                message,
                "a change of the database panicked; it was not made"
            );
            Err(StoreError::failed(format!(
                "the change panicked: {message}"
            )))
        });
        let good = result.is_ok();
        self.result = Some(result);
        good
    }

    fn answer(self: Box<Self>, commit: Result<(), StoreError>) {
        let result = match (self.result, commit) {
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(StoreError::failed("the change was not carried out")),
        };
        // Whoever asked may have gone away; the change stands all the same.
        let _ = self.reply.send(result);
    }
}

enum Message {
    Job(Box<dyn Job>),
    Stop(oneshot::Sender<()>),
}

#[derive(Debug)]
pub struct Writer {
    inbox: mpsc::Sender<Message>,
}

impl Writer {
    pub fn start(
        connection: Connection,
        backlog: Arc<Backlog>,
        supervisor: &Supervisor,
    ) -> io::Result<Self> {
        let (inbox, messages) = mpsc::channel(QUEUE);
        supervisor.require_thread("store-writer", Some(PATIENCE), move |watch| {
            write_until_stopped(&connection, messages, &backlog, &watch);
        })?;
        Ok(Self { inbox })
    }

    /// Hands in a change and waits until it is durable.
    pub async fn write<T, F>(&self, change: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, result) = oneshot::channel();
        let job = Change {
            work: change,
            result: None,
            reply,
        };
        let stopped = || StoreError::failed("the store is closed");
        self.inbox
            .send(Message::Job(Box::new(job)))
            .await
            .map_err(|_| stopped())?;
        result.await.map_err(|_| stopped())?
    }

    /// Commits what has been handed in so far, then ends the thread.
    pub async fn stop(&self) {
        let (done, finished) = oneshot::channel();
        if self.inbox.send(Message::Stop(done)).await.is_ok() {
            let _ = finished.await;
        }
    }
}

fn write_until_stopped(
    connection: &Connection,
    messages: mpsc::Receiver<Message>,
    backlog: &Backlog,
    watch: &Watch,
) {
    let mut inbox = Inbox::new(messages);
    let mut batch = Vec::with_capacity(LARGEST_BATCH);
    let mut longest_commit = Duration::ZERO;
    let mut stop = None;
    while stop.is_none() {
        watch.heartbeat();
        let mut next = match inbox.receive(IDLE) {
            Received::Message(message) => Some(message),
            Received::Nothing => continue,
            Received::Closed => return watch.release(),
        };
        while let Some(message) = next {
            match message {
                Message::Job(job) => batch.push(job),
                Message::Stop(done) => stop = Some(done),
            }
            let full = batch.len() == LARGEST_BATCH || stop.is_some();
            next = if full { None } else { inbox.receive_now() };
        }
        let (began, changes) = (Instant::now(), batch.len());
        commit(connection, &mut batch, backlog);
        backlog.relieve(connection);
        let time = began.elapsed();
        note_commit(time, &mut longest_commit);
        tracing::trace!(commit_micros = micros(time), changes, "committed");
        if changes > 1 {
            thread::sleep(BREATH.saturating_sub(began.elapsed()));
        }
    }
    inbox.close();
    let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
    watch.release();
    if let Some(done) = stop {
        let _ = done.send(());
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn commit(connection: &Connection, batch: &mut Vec<Box<dyn Job>>, backlog: &Backlog) {
    static FAILURES: Seldom = Seldom::new();
    if batch.is_empty() {
        return;
    }
    metrics::histogram!("clarion_store_batch_size").record(batch.len() as f64);
    let mut result = transaction(connection, batch);
    // The reserve has two halves.
    for _ in 0..2 {
        if !result.as_ref().is_err_and(is_disk_full) {
            break;
        }
        backlog.make_room(connection);
        result = transaction(connection, batch);
    }
    let result = result.map_err(|error| {
        stop_if_lost(&error);
        if let Some(unsaid) = FAILURES.say() {
            tracing::error!(%error, changes = batch.len(), unsaid, "a commit failed; its changes were not made");
        }
        StoreError::failed(error)
    });
    for job in batch.drain(..) {
        job.answer(result.clone());
    }
}

fn transaction(connection: &Connection, batch: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
    let good = in_transaction(connection, || {
        Ok(batch.iter_mut().all(|job| job.run(connection)))
    })?;
    if !good && batch.len() > 1 {
        in_transaction(connection, || one_by_one(connection, batch))?;
    }
    Ok(())
}

fn one_by_one(connection: &Connection, batch: &mut [Box<dyn Job>]) -> rusqlite::Result<bool> {
    for job in batch {
        execute(connection, "SAVEPOINT change")?;
        if !job.run(connection) {
            execute(connection, "ROLLBACK TO change")?;
        }
        execute(connection, "RELEASE change")?;
    }
    Ok(true)
}

/// Commits if the work says that it is good.
fn in_transaction(
    connection: &Connection,
    work: impl FnOnce() -> rusqlite::Result<bool>,
) -> rusqlite::Result<bool> {
    execute(connection, "BEGIN IMMEDIATE")?;
    let result = work().and_then(|good| {
        if good {
            execute(connection, "COMMIT")?;
        }
        Ok(good)
    });
    // Some errors have rolled back by themselves.
    if !connection.is_autocommit() {
        execute(connection, "ROLLBACK")?;
    }
    result
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[tokio::test]
    async fn a_change_that_panics_or_fails_costs_only_itself() {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE kept (number INTEGER)")
            .unwrap();
        let supervisor = Supervisor::new();
        let writer = Writer::start(connection, Arc::default(), &supervisor).unwrap();
        let writer = Arc::new(writer);
        // The writer is kept busy until all the others wait: they become one batch.
        let gate = Arc::new(Barrier::new(2));
        let blocked = spawn(&writer, {
            let gate = Arc::clone(&gate);
            move |_| {
                gate.wait();
                gate.wait();
                Ok(())
            }
        });
        let begun = Arc::clone(&gate);
        tokio::task::spawn_blocking(move || begun.wait())
            .await
            .unwrap();
        let keep = |number: i64| {
            move |db: &Connection| {
                db.execute("INSERT INTO kept VALUES (?1)", [number])?;
                match number {
                    2 => panic!("two"),
                    3 => Err(StoreError::failed("three")),
                    _ => Ok(()),
                }
            }
        };
        let changes: Vec<_> = (1..=4).map(|number| spawn(&writer, keep(number))).collect();
        while writer.inbox.capacity() > QUEUE - 4 {
            tokio::task::yield_now().await;
        }
        gate.wait();
        blocked.await.unwrap().unwrap();
        let mut answers = Vec::new();
        for change in changes {
            answers.push(change.await.unwrap().map_err(|error| error.to_string()));
        }
        let failed = |why: &str| Err(format!("the database failed: {why}"));
        let panicked = failed("the change panicked: two");
        assert_eq!(answers, [Ok(()), panicked, failed("three"), Ok(())]);
        let kept = writer.write(|db| {
            let all = "SELECT string_agg(number, ' ' ORDER BY number) FROM kept";
            Ok(db.query_row(all, [], |row| row.get::<_, String>(0))?)
        });
        assert_eq!(kept.await.unwrap(), "1 4");
        assert_eq!(supervisor.down(), Vec::<String>::new());
        writer.stop().await;
    }

    fn spawn<T: Send + 'static>(
        writer: &Arc<Writer>,
        change: impl Fn(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> tokio::task::JoinHandle<Result<T, StoreError>> {
        let writer = Arc::clone(writer);
        tokio::spawn(async move { writer.write(change).await })
    }
}
