//! Group commit for accepted calls: one statement carries everything that has arrived, and its commit answers all.
//!
//! The statement is idempotent (a callSid is made by us and never reused), so when the connection breaks or falls silent during a commit and
//! nobody knows whether it took, the same calls are simply sent again on a new connection: nobody is told "no" about a call that will be made.
//! Whoever has waited for long enough is told what is known by then: that the call was not accepted, or that it may have been.
//!
//! A call whose commit panics fails alone; a panic elsewhere in this task ends the process, by the supervisor. Starting the task anew would
//! mean to tell "no" to those who wait for what may have been committed.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use supervisor::{Supervisor, TaskGuard, Watch, panic_message};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;
use tokio_postgres::Row;

use super::session::{Session, SessionPool, StatementError, TimeLimit};
use super::{callbacks, column};
use crate::domain::call::NewCall;
use crate::domain::callback::{EventSubscription, RespUrl};
use crate::domain::request_key::{Accepted, AcceptedCall};
use crate::seldom::Seldom;
use crate::store::StoreError;
use crate::store::binding::millis;
use crate::store::statements::queue::stored_notice;
use crate::store::statements::{postgres, requests};
use crate::telemetry::note_commit;

/// Beyond this a larger batch gains nothing any more and only makes the first one in it wait.
const LARGEST_BATCH: usize = 256;
const QUEUE: usize = 4096;
/// From the beginning of a commit of several calls to the beginning of the next, at least. On a disk that syncs quickly commits would
/// otherwise follow each other so closely that each carries two or three calls, at many times the cost of a call in a large batch.
const BREATH: Duration = Duration::from_millis(1);
/// How long a request waits for a database that has gone away before it is told so.
pub(super) const PATIENCE: Duration = Duration::from_secs(8);
pub(super) const PAUSE: Duration = Duration::from_millis(200);
/// A task that has nothing to do shows this often that it is alive.
const IDLE: Duration = Duration::from_secs(1);
/// Longer than one batch may wait for a database that has gone away.
const STUCK: Duration = Duration::from_secs(30);

struct Pending {
    order: AcceptedCall,
    waiting: Waiting,
}

impl Pending {
    /// The name of its request, where it has one. A callSid is our own.
    fn name(&self) -> (Option<(&str, &str)>, &str) {
        let (call, request) = (&self.order.call, self.order.request.as_ref());
        let name = request.map(|key| (call.app.as_str(), key.id.as_str()));
        (name, call.sid.as_str())
    }
}

/// Whoever waits for a call to be accepted.
struct Waiting {
    reply: oneshot::Sender<Result<Accepted, StoreError>>,
    until: Instant,
    /// A try got no answer: it may have been committed.
    in_doubt: bool,
}

impl Waiting {
    /// Whoever asked may have gone away; what was committed stands all the same.
    fn answer(self, result: Result<Accepted, StoreError>) {
        let _ = self.reply.send(result);
    }

    /// What is known when it is not tried again.
    fn give_up(self, problem: StoreError) {
        let error = if self.in_doubt {
            StoreError::Unknown(problem.to_string())
        } else {
            problem
        };
        self.answer(Err(error));
    }
}

#[derive(Debug)]
pub struct Accepter {
    inbox: mpsc::Sender<Pending>,
    pool: SessionPool,
    _task: TaskGuard,
}

impl Accepter {
    /// `queued` is notified when calls have been accepted.
    pub(super) fn start(
        pool: SessionPool,
        limit: TimeLimit,
        queued: Arc<Notify>,
        supervisor: &Supervisor,
    ) -> Self {
        let (inbox, pending) = mpsc::channel(QUEUE);
        let accepting = pool.clone();
        let task = supervisor.require("store-accepter", Some(STUCK), move |watch| {
            accept_until_closed(accepting, limit, pending, queued, watch)
        });
        Self {
            inbox,
            pool,
            _task: task,
        }
    }

    pub async fn accept(&self, order: AcceptedCall) -> Result<Accepted, StoreError> {
        let (reply, result) = oneshot::channel();
        let stopped = || StoreError::failed("the store is closed");
        if self.pool.is_closed() {
            return Err(stopped());
        }
        let until = Instant::now() + PATIENCE;
        let waiting = Waiting {
            reply,
            until,
            in_doubt: false,
        };
        tokio::time::timeout_at(until, self.inbox.send(Pending { order, waiting }))
            .await
            .map_err(|_| StoreError::failed("too many calls wait for the database"))?
            .map_err(|_| stopped())?;
        let broken_off = |_| StoreError::Unknown("the store was closed in the middle".into());
        result.await.map_err(broken_off)?
    }

    pub fn close(&self) {
        self.pool.close();
    }
}

async fn accept_until_closed(
    pool: SessionPool,
    limit: TimeLimit,
    mut inbox: mpsc::Receiver<Pending>,
    queued: Arc<Notify>,
    watch: Watch,
) {
    let mut batch = Vec::with_capacity(LARGEST_BATCH);
    let mut longest_commit = Duration::ZERO;
    loop {
        watch.heartbeat();
        if batch.is_empty() {
            let arrived = inbox.recv_many(&mut batch, LARGEST_BATCH);
            match tokio::time::timeout(IDLE, arrived).await {
                Err(_idle) => continue,
                Ok(0) => return watch.release(),
                Ok(_) => {}
            }
        } else {
            // What is tried again takes along what has come since.
            tokio::time::sleep(PAUSE).await;
            while batch.len() < LARGEST_BATCH
                && let Ok(pending) = inbox.try_recv()
            {
                batch.push(pending);
            }
        }
        metrics::histogram!("clarion_store_batch_size").record(batch.len() as f64);
        let (began, several) = (Instant::now(), batch.len() > 1);
        commit_and_answer(&pool, limit, &mut batch).await;
        queued.notify_one();
        note_commit(began.elapsed(), &mut longest_commit);
        if several && batch.is_empty() {
            tokio::time::sleep_until(began + BREATH).await;
        }
    }
}

/// Leaves in the batch what shall be tried again.
async fn commit_and_answer(pool: &SessionPool, limit: TimeLimit, batch: &mut Vec<Pending>) {
    give_up_on_the_late(batch);
    // In the order of what two nodes may both insert: then they never wait for each other in a circle.
    batch.sort_by(|a, b| a.name().cmp(&b.name()));
    let (orders, waiting): (Vec<_>, Vec<_>) = batch
        .drain(..)
        .map(|pending| (pending.order, pending.waiting))
        .unzip();
    let Some(until) = waiting.iter().map(|waiting| waiting.until).min() else {
        return;
    };
    match commit_or_fail(pool, limit.until(until), &orders).await {
        Ok(accepted) => {
            for (accepted, waiting) in accepted.into_iter().zip(waiting) {
                waiting.answer(Ok(accepted));
            }
        }
        Err(error) if error.is_about_the_calls() && orders.len() > 1 => {
            // One of them is bad: each alone, so that the others do not suffer for it.
            for (order, waiting) in orders.into_iter().zip(waiting) {
                let limit = limit.until(waiting.until);
                match commit_or_fail(pool, limit, std::slice::from_ref(&order)).await {
                    Ok(mut accepted) => waiting.answer(Ok(accepted.remove(0))),
                    Err(error) => error.settle(pool, vec![(order, waiting)], batch),
                }
            }
        }
        Err(error) => error.settle(pool, orders.into_iter().zip(waiting).collect(), batch),
    }
}

/// Those who have waited for their turn as long as they may.
fn give_up_on_the_late(batch: &mut Vec<Pending>) {
    let now = Instant::now();
    for late in batch.extract_if(.., |pending| pending.waiting.until <= now) {
        let problem = StoreError::failed("the database was away for too long");
        late.waiting.give_up(problem);
    }
}

/// A panic is a failure like any other.
async fn commit_or_fail(
    pool: &SessionPool,
    limit: TimeLimit,
    orders: &[AcceptedCall],
) -> Result<Vec<Accepted>, CommitError> {
    let committed = AssertUnwindSafe(commit(pool, limit, orders))
        .catch_unwind()
        .await;
    committed.unwrap_or_else(|panic| Err(CommitError::Panicked(panic_message(&*panic).to_owned())))
}

enum CommitError {
    /// The database said no to what is in the batch.
    Refused(String),
    /// Making the batch ready, or sending it, panicked.
    Panicked(String),
    /// The disk of the database is full.
    NoRoom,
    /// There was no answer, or no database to ask.
    Unanswered { problem: String, in_doubt: bool },
}

impl CommitError {
    fn is_about_the_calls(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Panicked(_))
    }

    /// Answers those who need not wait any longer, and puts the others back.
    fn settle(
        self,
        pool: &SessionPool,
        orders: Vec<(AcceptedCall, Waiting)>,
        batch: &mut Vec<Pending>,
    ) {
        static FAILURES: Seldom = Seldom::new();
        let (problem, may_pass, in_doubt) = match self {
            Self::Refused(problem) => (StoreError::Failed(problem), false, false),
            Self::Panicked(message) => {
                let problem = format!("the commit panicked: {message}");
                (StoreError::Failed(problem), false, true)
            }
            Self::NoRoom => (StoreError::NoRoom, false, false),
            Self::Unanswered { problem, in_doubt } => {
                (StoreError::Failed(problem), !pool.is_closed(), in_doubt)
            }
        };
        let mut given_up = 0;
        for (order, mut waiting) in orders {
            waiting.in_doubt |= in_doubt;
            if may_pass && Instant::now() + PAUSE < waiting.until {
                batch.push(Pending { order, waiting });
            } else {
                given_up += 1;
                waiting.give_up(problem.clone());
            }
        }
        if given_up > 0
            && let Some(unsaid) = FAILURES.say()
        {
            tracing::error!(error = %problem, calls = given_up, unsaid, "calls could not be accepted");
        }
    }
}

async fn commit(
    pool: &SessionPool,
    limit: TimeLimit,
    orders: &[AcceptedCall],
) -> Result<Vec<Accepted>, CommitError> {
    let session = pool.get(limit).await;
    let session = session.map_err(|error| CommitError::Unanswered {
        problem: error.to_string(),
        in_doubt: false,
    })?;
    let new = match insert_new(&session, orders).await {
        Ok(new) => new,
        Err(error) if error.is_full() => return Err(CommitError::NoRoom),
        Err(error) if error.is_final() => {
            return Err(CommitError::Refused(error.text().to_owned()));
        }
        Err(error) => {
            return Err(CommitError::Unanswered {
                problem: error.text().to_owned(),
                in_doubt: error.is_unknown(),
            });
        }
    };
    // From here on those that were new are there, whatever happens.
    let judged = judge(&session, orders, &new).await;
    judged.map_err(|error| CommitError::Unanswered {
        problem: error.text().to_owned(),
        in_doubt: true,
    })
}

/// A call that is there already is left as it is, and is not queued again; nor is one whose request has a name that was used before.
pub const INSERT: &str = postgres!(
    "WITH batch AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], \
    $8::text[], $9::text[], $10::integer[], $11::text[], $12::text[], $13::text[], $14::text[], $15::smallint[], $16::bigint[], $17::bigint[], \
    $18::text[], $19::text[], $20::smallint[], $21::text[], $22::text[], $32::bigint[]) \
    AS batch (call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, prompt, max_talk, resp_url, user_data, \
    callee, route, priority, pause, valid_for, request_id, digest, type, notice, events, patience)), \
  named AS (INSERT INTO request_keys (app_id, request_id, call_sid, accepted_at, digest) \
    SELECT app_id, request_id, call_sid, accepted_at, digest FROM batch WHERE request_id IS NOT NULL \
    ON CONFLICT DO NOTHING RETURNING call_sid), \
  accepted AS (INSERT INTO calls (call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, \
    prompt, max_talk, resp_url, user_data, type, notice, events) \
    SELECT call_sid, account_sid, app_id, accepted_at, called, number, extension, caller, prompt, max_talk, \
    resp_url, user_data, type, notice, events FROM batch WHERE request_id IS NULL OR call_sid IN (SELECT call_sid FROM named) \
    ON CONFLICT (call_sid) DO NOTHING RETURNING call_sid), \
  owed AS (INSERT INTO callbacks (call_sid, seq, app_id, webhook_id, host, url, body, state, owed_at, due_at, expires_at) \
    SELECT call_sid, seq, app_id, webhook_id, host, url, body, {waiting}, owed_at, {now}, {now} + valid_for \
    FROM unnest($23::text[], $24::integer[], $25::text[], $26::text[], $27::text[], $28::text[], $29::text[], $30::bigint[], $31::bigint[]) \
      AS event (call_sid, seq, app_id, webhook_id, host, url, body, owed_at, valid_for) JOIN accepted USING (call_sid)) \
  INSERT INTO call_queue (call_sid, account_sid, app_id, callee, route, priority, due_at, expires_at, state, patience) \
    SELECT call_sid, account_sid, app_id, callee, route, priority, {now} + pause, {now} + valid_for, {queued}, patience \
    FROM batch JOIN accepted USING (call_sid) RETURNING call_sid"
);
/// The calls that requests of these names became.
const KNOWN: &str = postgres!(
    "SELECT call_sid, accepted_at, digest, app_id, request_id FROM request_keys \
     JOIN unnest($1::text[], $2::text[]) AS wanted (app_id, request_id) USING (app_id, request_id)"
);

/// Writes something of no account. A row can be seen that no standby has: whoever committed it was cut off while it waited for the standby. A
/// transaction that changes nothing waits for nobody.
const WRITE: &str = "SELECT pg_logical_emit_message(TRUE, 'clarion', '')";

/// After the commit that follows, everything that can be seen now is where the server promises to have it, on its standbys too.
pub(super) async fn make_durable(session: &Session) -> Result<(), StatementError> {
    session.execute(WRITE, &[]).await?;
    Ok(())
}

/// A statement alone is its own transaction: one round trip carries the batch and its commit.
pub async fn insert(
    session: &Session,
    orders: &[AcceptedCall],
) -> Result<Vec<Accepted>, StatementError> {
    let new = insert_new(session, orders).await?;
    judge(session, orders, &new).await
}

/// What became of each, given those that were new.
pub(super) async fn judge(
    session: &Session,
    orders: &[AcceptedCall],
    new: &HashSet<String>,
) -> Result<Vec<Accepted>, StatementError> {
    if new.is_empty() {
        make_durable(session).await?;
    }
    // Only a request with a name can be one that was accepted before.
    let named =
        |order: &&AcceptedCall| order.request.is_some() && !new.contains(order.call.sid.as_str());
    let named: Vec<_> = orders.iter().filter(named).collect();
    let known = if named.is_empty() {
        Vec::new()
    } else {
        let names = column(&named, |order| {
            order.request.as_ref().map(|key| key.id.as_str())
        });
        let apps = column(&named, |order| order.call.app.as_str());
        session.query(KNOWN, &[&apps, &names]).await?
    };
    Ok(orders.iter().map(|order| accepted(order, &known)).collect())
}

fn accepted(order: &AcceptedCall, known: &[Row]) -> Accepted {
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
pub(super) async fn insert_new(
    session: &Session,
    orders: &[AcceptedCall],
) -> Result<HashSet<String>, StatementError> {
    let prompts: Vec<_> = orders
        .iter()
        .map(|order| {
            serde_json::to_string(&order.call.prompt).expect("a prompt has only text keys")
        })
        .collect();
    let owed = orders.iter().filter_map(|order| order.event.as_ref());
    let owed: Vec<_> = owed.map(|event| event.numbered(1)).collect();
    let [sids, seqs, apps, ids, hosts, urls, bodies, times, limits] = callbacks::columns(&owed);
    let max_talk = |call: &NewCall| {
        call.max_talk
            .and_then(|seconds| i32::try_from(seconds).ok())
    };
    let rows = session
        .query(
            INSERT,
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
                &column(orders, |order| order.call.callee.clone()),
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
                &column(orders, |order| order.call.kind.call_type().code()),
                &column(orders, |order| stored_notice(&order.call)),
                &column(orders, |order| {
                    order.call.events.as_ref().map(EventSubscription::to_stored)
                }),
                &*sids,
                &*seqs,
                &*apps,
                &*ids,
                &*hosts,
                &*urls,
                &*bodies,
                &*times,
                &*limits,
                &column(orders, |order| order.queueing.patience.map(millis)),
            ],
        )
        .await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
