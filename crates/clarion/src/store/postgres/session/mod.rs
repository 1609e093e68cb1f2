//! The only way to PostgreSQL: a session, every statement of which has a deadline of ours.
//!
//! Where the deadline passes, the connection is closed and never used again. The statement is not cancelled: a cancelled commit may report a
//! success that no standby has. So it is not known whether it was done, and that is what the caller is told, unless it only reads. The same
//! holds for a connection that breaks, and for a caller that stops waiting.
//!
//! Nothing outside this module sees the driver's client, so nothing goes around the deadline.

mod connect;
mod error;
mod limit;
mod pool;
mod transaction;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

pub use self::connect::{ConnectError, Connector};
pub use self::error::StatementError;
use self::error::spoils;
use self::limit::Effect;
pub use self::limit::TimeLimit;
pub use self::pool::{PooledSession, SessionPool};
pub use self::transaction::{Bound, Transaction};
use crate::random;
use crate::store::DatabaseRoute;

pub type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What other sessions tell, where this one listens.
#[derive(Debug)]
struct ToldByOthers {
    signature: String,
    notify: Notify,
}

impl Default for ToldByOthers {
    fn default() -> Self {
        Self {
            signature: hex::encode(random::bytes::<8>()),
            notify: Notify::new(),
        }
    }
}

impl ToldByOthers {
    fn record(&self, signature: &str) {
        if signature != self.signature {
            self.notify.notify_one();
        }
    }
}

/// A connection that is logged in.
#[derive(Debug)]
pub struct Session {
    client: Client,
    connection: AbortHandle,
    told: Arc<ToldByOthers>,
    prepared: Mutex<HashMap<String, Statement>>,
    limit: TimeLimit,
    /// See `SessionPool::forget_plans`.
    plans: u32,
    in_transaction: AtomicBool,
    /// Statements whose answers nobody has seen.
    unanswered: AtomicU32,
    /// The server did not answer in time.
    silent: AtomicBool,
    /// What came from the server means that it is better asked anew.
    spoilt: AtomicBool,
    route: DatabaseRoute,
}

impl Session {
    fn new(
        client: Client,
        connection: AbortHandle,
        told: Arc<ToldByOthers>,
        route: DatabaseRoute,
    ) -> Self {
        Self {
            client,
            connection,
            told,
            prepared: Mutex::default(),
            limit: TimeLimit::each(Duration::ZERO),
            plans: 0,
            in_transaction: AtomicBool::new(false),
            unanswered: AtomicU32::new(0),
            silent: AtomicBool::new(false),
            spoilt: AtomicBool::new(false),
            route,
        }
    }

    /// Comes back when another session has told something that this one listens to.
    pub async fn told(&self) {
        self.told.notify.notified().await;
    }

    /// What this session says with what it tells (`NOTIFY`), so that it does not listen to itself.
    pub fn signature(&self) -> &str {
        &self.told.signature
    }

    pub fn route(&self) -> &DatabaseRoute {
        &self.route
    }

    /// The statement is prepared once a connection: one round trip instead of two, and no planning.
    pub async fn query(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, StatementError> {
        let until = self.deadline();
        let statement = self.prepare(until, sql).await?;
        let answer = self.client.query(&statement, values);
        self.answered(until, self.effect(sql), answer).await
    }

    pub async fn query_one(&self, sql: &str, values: Values<'_>) -> Result<Row, StatementError> {
        one(self.query(sql, values).await?)
    }

    pub async fn query_opt(
        &self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, StatementError> {
        at_most_one(self.query(sql, values).await?)
    }

    pub async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, StatementError> {
        let until = self.deadline();
        let statement = self.prepare(until, sql).await?;
        let answer = self.client.execute(&statement, values);
        self.answered(until, self.effect(sql), answer).await
    }

    /// Like `query`, but planned anew each time, for its values and for the rows that are there now.
    pub async fn query_once(
        &self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StatementError> {
        let answer = self.client.query(sql, values);
        self.answered(self.deadline(), self.effect(sql), answer)
            .await
    }

    pub async fn query_one_once(
        &self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Row, StatementError> {
        one(self.query_once(sql, values).await?)
    }

    pub async fn query_opt_once(
        &self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, StatementError> {
        at_most_one(self.query_once(sql, values).await?)
    }

    pub async fn execute_once(&self, sql: &str, values: Values<'_>) -> Result<u64, StatementError> {
        let answer = self.client.execute(sql, values);
        self.answered(self.deadline(), self.effect(sql), answer)
            .await
    }

    /// Statements without values, separated by `;`.
    pub async fn batch_execute(&self, sql: &str) -> Result<(), StatementError> {
        let answer = self.client.batch_execute(sql);
        self.answered(self.deadline(), self.effect(sql), answer)
            .await
    }

    /// Statements stay prepared and are planned anew. If it fails, the old plans are only slower, or the next statement fails too.
    async fn forget_plans(&self) {
        let answer = self.client.batch_execute("DISCARD PLANS");
        let _ = self
            .answered(self.deadline(), Effect::Nothing, answer)
            .await;
    }

    async fn prepare(&self, until: Instant, sql: &str) -> Result<Statement, StatementError> {
        let known = self.cache().get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let answer = self.client.prepare(sql);
        let statement = self.answered(until, Effect::Nothing, answer).await?;
        self.cache().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, HashMap<String, Statement>> {
        let cache = self.prepared.lock();
        cache.unwrap_or_else(PoisonError::into_inner)
    }

    fn deadline(&self) -> Instant {
        self.limit.end_of(self.limit.statement)
    }

    fn effect(&self, sql: &str) -> Effect {
        if self.in_transaction.load(Ordering::Relaxed) {
            Effect::Nothing
        } else {
            Effect::of(sql)
        }
    }

    /// Every statement goes through here.
    async fn answered<T>(
        &self,
        until: Instant,
        effect: Effect,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StatementError> {
        if self.client.is_closed() {
            return Err(StatementError::NotDone("the connection is closed".into()));
        }
        // What is polled is sent.
        if Instant::now() >= until {
            return Err(StatementError::NotDone("no time was left for it".into()));
        }
        // Whoever stops waiting leaves this behind, and with it a session that is not used again.
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let Ok(answer) = timeout_at(until, answer).await else {
            self.silent.store(true, Ordering::Relaxed);
            let host = &self.route.host;
            let text = format!("{host} has not answered within {:.1?}", began.elapsed());
            tracing::warn!("{text}: its connection is closed");
            return Err(StatementError::unanswered(effect, text));
        };
        self.unanswered.fetch_sub(1, Ordering::Relaxed);
        answer.map_err(|error| {
            if spoils(&error) {
                self.spoilt.store(true, Ordering::Relaxed);
            }
            StatementError::new(effect, &error)
        })
    }

    /// It can be lent again.
    fn is_sound(&self) -> bool {
        !self.client.is_closed()
            && self.unanswered.load(Ordering::Relaxed) == 0
            && !self.in_transaction.load(Ordering::Relaxed)
            && !self.spoilt.load(Ordering::Relaxed)
    }
}

impl Drop for Session {
    /// A sound session says good-bye by itself. One that waits for an answer would wait for it first, perhaps for ever.
    fn drop(&mut self) {
        if !self.is_sound() {
            self.connection.abort();
        }
    }
}

fn at_most_one(rows: Vec<Row>) -> Result<Option<Row>, StatementError> {
    match rows.len() {
        0 | 1 => Ok(rows.into_iter().next()),
        more => Err(StatementError::Refused {
            code: None,
            text: format!("the database gave {more} rows where one was asked for"),
        }),
    }
}

fn one(rows: Vec<Row>) -> Result<Row, StatementError> {
    at_most_one(rows)?.ok_or_else(|| StatementError::Refused {
        code: None,
        text: "the database gave no row where one was asked for".into(),
    })
}
