//! Group commit for what happens to calls that are under way: changes that arrive while another is being committed share the next commit. Where
//! they come so fast that they do, more gather in a short while after it.
//!
//! A change that the database refuses fails alone. Where the connection breaks or falls silent, all changes of the commit fail with what is
//! known of it; whoever made them tries again, as after a statement of its own. A panic outside a commit ends the process, by the supervisor.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use supervisor::{Supervisor, TaskGuard, Watch, panic_message};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_postgres::types::ToSql;

use super::accept::PATIENCE;
use super::claiming::UNPARK;
use super::session::{SessionPool, StatementError, TimeLimit, Values};
use crate::domain::call::CallSid;
use crate::store::StoreError;
use crate::store::statements::postgres;
use crate::telemetry::note_commit;

/// Beyond this a larger commit gains nothing any more, and other nodes wait for the rows that it holds.
const LARGEST: usize = 64;
const QUEUE: usize = 1024;
/// A task that has nothing to do shows this often that it is alive.
const IDLE: Duration = Duration::from_secs(1);
/// Longer than a commit may take.
const STUCK: Duration = Duration::from_secs(150);

/// Accounts are locked in one order, before the ends that charge them: two nodes then never wait for each other in a circle.
const LOCK_CHARGED: &str = postgres!(
    "SELECT 1 FROM accounts WHERE sid IN (SELECT account_sid FROM call_reservations WHERE call_sid = ANY($1)) \
     ORDER BY sid FOR NO KEY UPDATE"
);

/// A statement about one call that this node holds. It returns a row if the call was still its own.
pub struct Change {
    pub sid: CallSid,
    pub sql: &'static str,
    pub values: Vec<Box<dyn ToSql + Send + Sync>>,
    /// Nobody calls this callee any more after the change.
    pub frees: Option<String>,
}

/// Values of a change.
macro_rules! owned {
    ($($value:expr),* $(,)?) => {
        [$(Box::new($value) as Box<dyn tokio_postgres::types::ToSql + Send + Sync>),*]
    };
}
pub(super) use owned;

struct Pending {
    change: Change,
    until: Instant,
    reply: oneshot::Sender<Result<bool, StoreError>>,
}

#[derive(Debug)]
pub struct GroupCommit {
    inbox: mpsc::Sender<Pending>,
    pool: SessionPool,
    _task: TaskGuard,
}

impl GroupCommit {
    /// From the beginning of a commit of several changes to the beginning of the next there is a pause, so that more gather. One that comes
    /// alone makes nobody wait: its commit gains nothing by company that hardly ever comes.
    pub fn start(
        name: &'static str,
        pool: SessionPool,
        limit: TimeLimit,
        pause: Duration,
        supervisor: &Supervisor,
    ) -> Self {
        let (inbox, pending) = mpsc::channel(QUEUE);
        let committing = pool.clone();
        let task = supervisor.require(name, Some(STUCK), move |watch| {
            commit_until_closed(committing, limit, pause, pending, watch)
        });
        Self {
            inbox,
            pool,
            _task: task,
        }
    }

    /// False if the call is not this node's any more.
    pub async fn commit(&self, change: Change) -> Result<bool, StoreError> {
        let (reply, result) = oneshot::channel();
        let stopped = || StoreError::failed("the store is closed");
        if self.pool.is_closed() {
            return Err(stopped());
        }
        let until = Instant::now() + PATIENCE;
        let pending = Pending {
            change,
            until,
            reply,
        };
        tokio::time::timeout_at(until, self.inbox.send(pending))
            .await
            .map_err(|_| StoreError::failed("too many changes wait for the database"))?
            .map_err(|_| stopped())?;
        let broken_off = |_| StoreError::Unknown("the store was closed in the middle".into());
        result.await.map_err(broken_off)?
    }

    /// See `SessionPool::forget_plans`.
    pub fn forget_plans(&self) {
        self.pool.forget_plans();
    }

    pub fn close(&self) {
        self.pool.close();
    }
}

async fn commit_until_closed(
    pool: SessionPool,
    limit: TimeLimit,
    pause: Duration,
    mut inbox: mpsc::Receiver<Pending>,
    watch: Watch,
) {
    let mut group = Vec::with_capacity(LARGEST);
    let mut longest_commit = Duration::ZERO;
    loop {
        watch.heartbeat();
        let arrived = inbox.recv_many(&mut group, LARGEST);
        match tokio::time::timeout(IDLE, arrived).await {
            Err(_idle) => continue,
            Ok(0) => return watch.release(),
            Ok(_) => {}
        }
        let began = Instant::now();
        give_up_on_the_late(&mut group, began);
        let is_shared = group.len() > 1;
        commit_and_answer(&pool, limit, group.drain(..), &watch).await;
        note_commit(began.elapsed(), &mut longest_commit);
        if is_shared {
            tokio::time::sleep_until(began + pause).await;
        }
    }
}

/// Those who have gone away, and those who have waited for as long as they may.
fn give_up_on_the_late(group: &mut Vec<Pending>, now: Instant) {
    group.retain(|pending| !pending.reply.is_closed());
    for late in group.extract_if(.., |pending| pending.until <= now) {
        let error = StoreError::failed("the database was away for too long");
        let _ = late.reply.send(Err(error));
    }
}

async fn commit_and_answer(
    pool: &SessionPool,
    limit: TimeLimit,
    group: impl Iterator<Item = Pending>,
    watch: &Watch,
) {
    let (changes, replies): (Vec<_>, Vec<_>) =
        group.map(|pending| (pending.change, pending.reply)).unzip();
    if changes.is_empty() {
        return;
    }
    let results = match commit_or_fail(pool, limit, &changes).await {
        Ok(ours) => ours.into_iter().map(Ok).collect(),
        Err(error) if error.is_of_one() && changes.len() > 1 => {
            each_alone(pool, limit, &changes, watch).await
        }
        Err(error) => vec![Err(StatementError::from(error)); replies.len()],
    };
    for (result, reply) in results.into_iter().zip(replies) {
        // Whoever asked may have gone away; what was committed stands all the same.
        let _ = reply.send(result.map_err(StoreError::from));
    }
}

/// One of them is bad, or they met another node's in the wrong order. When the database has gone away meanwhile, the rest is not tried.
async fn each_alone(
    pool: &SessionPool,
    limit: TimeLimit,
    changes: &[Change],
    watch: &Watch,
) -> Vec<Result<bool, StatementError>> {
    let mut results = Vec::with_capacity(changes.len());
    let mut gone = false;
    for change in changes {
        if gone {
            let text = "the database has gone away".to_owned();
            results.push(Err(StatementError::NotDone(text)));
            continue;
        }
        watch.heartbeat();
        let alone = commit_or_fail(pool, limit, std::slice::from_ref(change)).await;
        gone = alone.as_ref().is_err_and(|error| !error.is_of_one());
        results.push(alone.map(|ours| ours[0]).map_err(StatementError::from));
    }
    results
}

#[derive(Debug)]
enum GroupError {
    Statement(StatementError),
    /// Making the statements ready, or sending them, panicked.
    Panicked(String),
}

impl GroupError {
    /// Others may go through without the one that it is about.
    fn is_of_one(&self) -> bool {
        matches!(
            self,
            Self::Panicked(_) | Self::Statement(StatementError::Refused { .. })
        )
    }
}

impl From<GroupError> for StatementError {
    fn from(error: GroupError) -> Self {
        match error {
            GroupError::Statement(error) => error,
            GroupError::Panicked(text) => Self::Unknown(format!("the commit panicked: {text}")),
        }
    }
}

/// A panic is a failure like any other.
async fn commit_or_fail(
    pool: &SessionPool,
    limit: TimeLimit,
    changes: &[Change],
) -> Result<Vec<bool>, GroupError> {
    let committed = AssertUnwindSafe(commit(pool, limit, changes)).catch_unwind();
    match committed.await {
        Ok(committed) => committed.map_err(GroupError::Statement),
        Err(panic) => Err(GroupError::Panicked(panic_message(&*panic).to_owned())),
    }
}

async fn commit(
    pool: &SessionPool,
    limit: TimeLimit,
    changes: &[Change],
) -> Result<Vec<bool>, StatementError> {
    let session = pool.get(limit).await;
    let mut session = session.map_err(|error| StatementError::NotDone(error.to_string()))?;
    // Two nodes that free the same callees take them in one order.
    let mut order: Vec<usize> = (0..changes.len()).collect();
    order.sort_by_key(|place| &changes[*place].frees);
    let values: Vec<Vec<&(dyn ToSql + Sync)>> = order
        .iter()
        .map(|place| changes[*place].values.iter().map(|value| &**value as _))
        .map(Iterator::collect)
        .collect();
    let sids: Vec<&str> = changes.iter().map(|change| change.sid.as_str()).collect();
    let freed: Vec<&str> = changes.iter().filter_map(|c| c.frees.as_deref()).collect();
    let (charged, unpark): (Values<'_>, Values<'_>) = (&[&sids], &[&freed]);
    let mut statements = Vec::with_capacity(changes.len() + 2);
    let locks = usize::from(changes.len() > 1 && !freed.is_empty());
    if locks > 0 {
        statements.push((LOCK_CHARGED, charged));
    }
    for (place, values) in order.iter().zip(&values) {
        statements.push((changes[*place].sql, values.as_slice()));
    }
    if !freed.is_empty() {
        // If a call was not ours, what is unparked finds its callee busy and is parked again.
        statements.push((UNPARK, unpark));
    }
    let rows = session.commit_all(&statements).await?;
    let mut ours = vec![false; changes.len()];
    for (place, rows) in order.iter().zip(&rows[locks..]) {
        ours[*place] = rows.len() == 1;
    }
    Ok(ours)
}
