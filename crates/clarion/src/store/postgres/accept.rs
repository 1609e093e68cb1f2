//! Group commit for accepted calls: one statement carries everything that has arrived, and its commit answers all.
//!
//! The statement is idempotent (a callSid is made by us and never reused), so when the connection breaks during a commit and nobody
//! knows whether it took, the same batch is simply sent again on a new connection: nobody is told "no" about a call that will be made.
//!
//! A call whose commit panics fails alone; a panic elsewhere in this task ends the process, by the supervisor. Starting the task anew would
//! mean to tell "no" to those who wait for what may have been committed.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Pool};
use futures_util::FutureExt;
use supervisor::{Supervisor, TaskGuard, Watch, panic_message};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_postgres::{GenericClient, Statement};

use super::column;
use crate::domain::call::{NewCall, Queueing};
use crate::domain::callback::RespUrl;
use crate::store::StoreError;
use crate::store::binding::millis;
use crate::store::statements::postgres;
use crate::telemetry::note_commit;

/// Beyond this a larger batch gains nothing any more and only makes the first one in it wait.
const LARGEST_BATCH: usize = 256;
const QUEUE: usize = 4096;
/// From the beginning of a commit of several calls to the beginning of the next, at least. On a disk that syncs quickly commits would
/// otherwise follow each other so closely that each carries two or three calls, at many times the cost of a call in a large batch.
const BREATH: Duration = Duration::from_millis(1);
/// How long a request waits for a database that has gone away before it is told so.
const PATIENCE: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(200);
/// A task that has nothing to do shows this often that it is alive.
const IDLE: Duration = Duration::from_secs(1);
/// Longer than one batch may wait for a database that has gone away.
const STUCK: Duration = Duration::from_secs(30);

struct Pending {
    call: NewCall,
    queueing: Queueing,
    reply: oneshot::Sender<Result<(), StoreError>>,
}

#[derive(Debug)]
pub struct Accepter {
    inbox: mpsc::Sender<Pending>,
    pool: Pool,
    _task: TaskGuard,
}

impl Accepter {
    pub fn start(pool: Pool, supervisor: &Supervisor) -> Self {
        let (inbox, pending) = mpsc::channel(QUEUE);
        let accepting = pool.clone();
        let task = supervisor.require("store-accepter", Some(STUCK), move |watch| {
            accept_until_closed(accepting, pending, watch)
        });
        Self {
            inbox,
            pool,
            _task: task,
        }
    }

    pub async fn accept(&self, call: NewCall, queueing: Queueing) -> Result<(), StoreError> {
        let (reply, result) = oneshot::channel();
        let stopped = || StoreError::failed("the store is closed");
        if self.pool.is_closed() {
            return Err(stopped());
        }
        self.inbox
            .send(Pending {
                call,
                queueing,
                reply,
            })
            .await
            .map_err(|_| stopped())?;
        result.await.map_err(|_| stopped())?
    }

    pub fn close(&self) {
        self.pool.close();
    }
}

async fn accept_until_closed(pool: Pool, mut inbox: mpsc::Receiver<Pending>, watch: Watch) {
    let mut batch = Vec::with_capacity(LARGEST_BATCH);
    let mut longest_commit = Duration::ZERO;
    loop {
        watch.beat();
        let arrived = inbox.recv_many(&mut batch, LARGEST_BATCH);
        match tokio::time::timeout(IDLE, arrived).await {
            Err(_idle) => continue,
            Ok(0) => return watch.release(),
            Ok(_) => {}
        }
        metrics::histogram!("clarion_store_batch_size").record(batch.len() as f64);
        let (began, several) = (Instant::now(), batch.len() > 1);
        commit_and_answer(&pool, &mut batch).await;
        note_commit(began.elapsed(), &mut longest_commit);
        if several {
            tokio::time::sleep_until(began + BREATH).await;
        }
    }
}

async fn commit_and_answer(pool: &Pool, batch: &mut Vec<Pending>) {
    // Rows in key order: two nodes that touch the same rows then never wait for each other in a circle.
    batch.sort_by(|a, b| a.call.sid.cmp(&b.call.sid));
    let (calls, replies): (Vec<_>, Vec<_>) = batch
        .drain(..)
        .map(|pending| ((pending.call, pending.queueing), pending.reply))
        .unzip();
    match commit_or_fail(pool, &calls).await {
        Ok(()) => answer(replies, &Ok(())),
        Err(error) if calls.len() == 1 || !error.is_about_the_calls() => {
            answer(replies, &Err(error.log(calls.len())));
        }
        // One of them is bad: each alone, so that the others do not suffer for it.
        Err(_) => {
            for (call, reply) in calls.iter().zip(replies) {
                let result = commit_or_fail(pool, std::slice::from_ref(call)).await;
                let _ = reply.send(result.map_err(|error| error.log(1)));
            }
        }
    }
}

/// A panic is a failure like any other.
async fn commit_or_fail(pool: &Pool, calls: &[(NewCall, Queueing)]) -> Result<(), CommitError> {
    let committed = AssertUnwindSafe(commit(pool, calls)).catch_unwind().await;
    committed.unwrap_or_else(|panic| Err(CommitError::Panicked(panic_message(&*panic).to_owned())))
}

fn answer(replies: Vec<oneshot::Sender<Result<(), StoreError>>>, result: &Result<(), StoreError>) {
    for reply in replies {
        // Whoever asked may have gone away; what was committed stands all the same.
        let _ = reply.send(result.clone());
    }
}

enum CommitError {
    /// The database said no to what is in the batch.
    Refused(tokio_postgres::Error),
    /// Making the batch ready, or sending it, panicked.
    Panicked(String),
    /// It could not be reached for as long as we are willing to wait.
    Unreachable(String),
}

impl CommitError {
    fn is_about_the_calls(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Panicked(_))
    }

    fn log(self, calls: usize) -> StoreError {
        let error = match self {
            Self::Refused(error) => super::describe(&error),
            Self::Panicked(message) => format!("the commit panicked: {message}"),
            Self::Unreachable(error) => error,
        };
        tracing::error!(%error, calls, "calls could not be accepted");
        StoreError::failed(error)
    }
}

/// Commits the calls, on as many connections as it takes.
async fn commit(pool: &Pool, calls: &[(NewCall, Queueing)]) -> Result<(), CommitError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let problem = match pool.get().await {
            Err(error) => error.to_string(),
            Ok(client) => match insert(&client, calls).await {
                Ok(()) => return Ok(()),
                Err(error) if is_final(&error) => return Err(CommitError::Refused(error)),
                Err(error) => super::describe(&error),
            },
        };
        if Instant::now() + PAUSE > deadline {
            return Err(CommitError::Unreachable(problem));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// An answer about the data. Everything else (a lost connection, a server that is shutting down or starting, a deadlock) may pass.
fn is_final(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| !matches!(&code.code()[..2], "08" | "40" | "53" | "57" | "58"))
}

/// A call that is there already is left as it is, and is not queued again.
pub const INSERT: &str = postgres!(
    "WITH batch AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], \
    $8::text[], $9::text[], $10::integer[], $11::text[], $12::text[], $13::text[], $14::text[], $15::smallint[], $16::bigint[], $17::bigint[]) \
    AS batch (call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, prompt, max_talk, resp_url, user_data, \
    callee, route, priority, pause, valid_for)), \
  accepted AS (INSERT INTO calls (call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, \
    prompt, max_talk, resp_url, user_data) \
    SELECT call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, prompt, max_talk, \
    resp_url, user_data FROM batch ON CONFLICT (call_sid) DO NOTHING RETURNING call_sid) \
  INSERT INTO call_queue (call_sid, account_sid, app_id, callee, route, priority, due_at, expires_at, state) \
    SELECT call_sid, account_sid, app_id, callee, route, priority, {now} + pause, {now} + valid_for, {queued} FROM batch JOIN accepted USING (call_sid)"
);

/// A statement alone is its own transaction: one round trip carries the batch and its commit.
pub async fn insert(
    client: &ClientWrapper,
    calls: &[(NewCall, Queueing)],
) -> Result<(), tokio_postgres::Error> {
    let statement = client.prepare_cached(INSERT).await?;
    let calls: Vec<_> = calls
        .iter()
        .map(|(call, queueing)| (call, queueing))
        .collect();
    insert_with(&**client, &statement, &calls).await.map(drop)
}

/// How many of them were new.
pub async fn insert_with<C: GenericClient>(
    client: &C,
    statement: &Statement,
    batch: &[(&NewCall, &Queueing)],
) -> Result<u64, tokio_postgres::Error> {
    let prompts: Vec<_> = batch
        .iter()
        .map(|(call, _)| serde_json::to_string(&call.prompt).expect("a prompt has only text keys"))
        .collect();
    let max_talk = |call: &NewCall| {
        call.max_talk
            .and_then(|seconds| i32::try_from(seconds).ok())
    };
    client
        .execute(
            statement,
            &[
                &column(batch, |(call, _)| call.sid.as_str()),
                &column(batch, |(call, _)| call.account.as_str()),
                &column(batch, |(call, _)| call.app.as_str()),
                &column(batch, |(call, _)| call.accepted_at.as_millisecond()),
                &column(batch, |(call, _)| call.called.as_str()),
                &column(batch, |(call, _)| call.number.digits()),
                &column(batch, |(call, _)| call.number.extension()),
                &column(batch, |(call, _)| call.caller.as_deref()),
                &prompts,
                &column(batch, |(call, _)| max_talk(call)),
                &column(batch, |(call, _)| {
                    call.resp_url.as_ref().map(RespUrl::as_str)
                }),
                &column(batch, |(call, _)| call.user_data.as_deref()),
                &column(batch, |(call, _)| call.number.callee()),
                &column(batch, |(_, queueing)| queueing.route.as_str()),
                &column(batch, |(_, queueing)| i16::from(queueing.priority.number())),
                &column(batch, |(_, queueing)| millis(queueing.pause)),
                &column(batch, |(_, queueing)| millis(queueing.valid_for)),
            ],
        )
        .await
}
