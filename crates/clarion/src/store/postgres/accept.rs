//! Group commit for accepted calls: one statement carries everything that has arrived, and its commit answers all.
//!
//! The statement is idempotent (a callSid is made by us and never reused), so when the connection breaks during a commit and nobody
//! knows whether it took, the same batch is simply sent again on a new connection: nobody is told "no" about a call that will be made.
//!
//! A call whose commit panics fails alone; a panic elsewhere in this task ends the process, by the supervisor. Starting the task anew would
//! mean to tell "no" to those who wait for what may have been committed.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Pool};
use futures_util::FutureExt;
use supervisor::{Supervisor, TaskGuard, Watch, panic_message};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_postgres::{GenericClient, Row, Statement};

use super::column;
use crate::domain::call::NewCall;
use crate::domain::callback::RespUrl;
use crate::domain::request_key::{Accepted, CallOrder};
use crate::store::StoreError;
use crate::store::binding::millis;
use crate::store::statements::{postgres, requests};
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
    order: CallOrder,
    reply: oneshot::Sender<Result<Accepted, StoreError>>,
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

    pub async fn accept(&self, order: CallOrder) -> Result<Accepted, StoreError> {
        let (reply, result) = oneshot::channel();
        let stopped = || StoreError::failed("the store is closed");
        if self.pool.is_closed() {
            return Err(stopped());
        }
        self.inbox
            .send(Pending { order, reply })
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
    batch.sort_by(|a, b| a.order.call.sid.cmp(&b.order.call.sid));
    let (orders, replies): (Vec<_>, Vec<_>) = batch
        .drain(..)
        .map(|pending| (pending.order, pending.reply))
        .unzip();
    match commit_or_fail(pool, &orders).await {
        Ok(accepted) => {
            for (accepted, reply) in accepted.into_iter().zip(replies) {
                // Whoever asked may have gone away; what was committed stands all the same.
                let _ = reply.send(Ok(accepted));
            }
        }
        Err(error) if orders.len() == 1 || !error.is_about_the_calls() => {
            let error = error.log(orders.len());
            for reply in replies {
                let _ = reply.send(Err(error.clone()));
            }
        }
        // One of them is bad: each alone, so that the others do not suffer for it.
        Err(_) => {
            for (order, reply) in orders.iter().zip(replies) {
                let result = commit_or_fail(pool, std::slice::from_ref(order)).await;
                let first = result.map(|mut accepted| accepted.remove(0));
                let _ = reply.send(first.map_err(|error| error.log(1)));
            }
        }
    }
}

/// A panic is a failure like any other.
async fn commit_or_fail(pool: &Pool, orders: &[CallOrder]) -> Result<Vec<Accepted>, CommitError> {
    let committed = AssertUnwindSafe(commit(pool, orders)).catch_unwind().await;
    committed.unwrap_or_else(|panic| Err(CommitError::Panicked(panic_message(&*panic).to_owned())))
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
async fn commit(pool: &Pool, orders: &[CallOrder]) -> Result<Vec<Accepted>, CommitError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let problem = match pool.get().await {
            Err(error) => error.to_string(),
            Ok(client) => match insert(&client, orders).await {
                Ok(accepted) => return Ok(accepted),
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

/// A call that is there already is left as it is, and is not queued again; nor is one whose request has a name that was used before.
pub const INSERT: &str = postgres!(
    "WITH batch AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], \
    $8::text[], $9::text[], $10::integer[], $11::text[], $12::text[], $13::text[], $14::text[], $15::smallint[], $16::bigint[], $17::bigint[], \
    $18::text[], $19::text[]) \
    AS batch (call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, prompt, max_talk, resp_url, user_data, \
    callee, route, priority, pause, valid_for, request_id, digest)), \
  named AS (INSERT INTO request_keys (app_id, request_id, call_sid, accepted_at, digest) \
    SELECT app_id, request_id, call_sid, accepted_at, digest FROM batch WHERE request_id IS NOT NULL \
    ON CONFLICT DO NOTHING RETURNING call_sid), \
  accepted AS (INSERT INTO calls (call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, \
    prompt, max_talk, resp_url, user_data) \
    SELECT call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, prompt, max_talk, \
    resp_url, user_data FROM batch WHERE request_id IS NULL OR call_sid IN (SELECT call_sid FROM named) \
    ON CONFLICT (call_sid) DO NOTHING RETURNING call_sid) \
  INSERT INTO call_queue (call_sid, account_sid, app_id, callee, route, priority, due_at, expires_at, state) \
    SELECT call_sid, account_sid, app_id, callee, route, priority, {now} + pause, {now} + valid_for, {queued} \
    FROM batch JOIN accepted USING (call_sid) RETURNING call_sid"
);
/// The calls that requests of these names became.
const KNOWN: &str = postgres!(
    "SELECT call_sid, accepted_at, digest, app_id, request_id FROM request_keys \
     JOIN unnest($1::text[], $2::text[]) AS wanted (app_id, request_id) USING (app_id, request_id)"
);

/// A statement alone is its own transaction: one round trip carries the batch and its commit.
pub async fn insert(
    client: &ClientWrapper,
    orders: &[CallOrder],
) -> Result<Vec<Accepted>, tokio_postgres::Error> {
    let statement = client.prepare_cached(INSERT).await?;
    let new = insert_with(&**client, &statement, orders).await?;
    judge(&**client, orders, &new).await
}

/// What became of each, given those that were new.
pub async fn judge<C: GenericClient>(
    client: &C,
    orders: &[CallOrder],
    new: &HashSet<String>,
) -> Result<Vec<Accepted>, tokio_postgres::Error> {
    // Only a request with a name can be one that was accepted before.
    let named =
        |order: &&CallOrder| order.request.is_some() && !new.contains(order.call.sid.as_str());
    let named: Vec<_> = orders.iter().filter(named).collect();
    let known = if named.is_empty() {
        Vec::new()
    } else {
        let names = column(&named, |order| {
            order.request.as_ref().map(|key| key.id.as_str())
        });
        let apps = column(&named, |order| order.call.app.as_str());
        client.query(KNOWN, &[&apps, &names]).await?
    };
    Ok(orders.iter().map(|order| accepted(order, &known)).collect())
}

fn accepted(order: &CallOrder, known: &[Row]) -> Accepted {
    let is_of = |row: &&Row| {
        let (app, id): (&str, &str) = (row.get(3), row.get(4));
        let key = order.request.as_ref();
        app == order.call.app.as_str() && key.is_some_and(|key| key.id.as_str() == id)
    };
    let known = known
        .iter()
        .find(is_of)
        .and_then(|row| requests::known(row).ok());
    match known {
        Some(known) if known.call != order.call.sid => Accepted::Before(known),
        _ => Accepted::New,
    }
}

/// The callSids of those that were new.
pub async fn insert_with<C: GenericClient>(
    client: &C,
    statement: &Statement,
    orders: &[CallOrder],
) -> Result<HashSet<String>, tokio_postgres::Error> {
    let prompts: Vec<_> = orders
        .iter()
        .map(|order| {
            serde_json::to_string(&order.call.prompt).expect("a prompt has only text keys")
        })
        .collect();
    let max_talk = |call: &NewCall| {
        call.max_talk
            .and_then(|seconds| i32::try_from(seconds).ok())
    };
    let rows = client
        .query(
            statement,
            &[
                &column(orders, |order| order.call.sid.as_str()),
                &column(orders, |order| order.call.account.as_str()),
                &column(orders, |order| order.call.app.as_str()),
                &column(orders, |order| order.call.accepted_at.as_millisecond()),
                &column(orders, |order| order.call.called.as_str()),
                &column(orders, |order| order.call.number.digits()),
                &column(orders, |order| order.call.number.extension()),
                &column(orders, |order| order.call.caller.as_deref()),
                &prompts,
                &column(orders, |order| max_talk(&order.call)),
                &column(orders, |order| {
                    order.call.resp_url.as_ref().map(RespUrl::as_str)
                }),
                &column(orders, |order| order.call.user_data.as_deref()),
                &column(orders, |order| order.call.number.callee()),
                &column(orders, |order| order.queueing.route.as_str()),
                &column(orders, |order| i16::from(order.queueing.priority.number())),
                &column(orders, |order| millis(order.queueing.pause)),
                &column(orders, |order| millis(order.queueing.valid_for)),
                &column(orders, |order| {
                    order.request.as_ref().map(|key| key.id.as_str())
                }),
                &column(orders, |order| {
                    order.request.as_ref().map(|key| key.digest.as_str())
                }),
            ],
        )
        .await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
