//! Statements that take effect together, at the commit. One that is dropped before is rolled back.

use std::ops::Deref;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use futures_util::future::join4;
use tokio_postgres::Row;

use super::{Effect, Session, StatementError, Values};

#[derive(Debug)]
pub struct Transaction<'a> {
    session: &'a Session,
}

impl Session {
    pub async fn transaction(&mut self) -> Result<Transaction<'_>, StatementError> {
        self.in_transaction.store(true, Ordering::Relaxed);
        let begun = self.client.batch_execute("BEGIN");
        self.answered(self.deadline(), Effect::Nothing, begun)
            .await?;
        Ok(Transaction { session: self })
    }

    /// The rows of the first of two statements that take effect together. They are sent at once with the commit: one round trip instead of
    /// four. The second sees what was committed by others until the first was done, and is carried out whatever the first has found.
    pub async fn commit_both(
        &mut self,
        first: (&str, Values<'_>),
        second: (&str, Values<'_>),
    ) -> Result<Vec<Row>, StatementError> {
        let until = self.deadline();
        let one = self.prepare(until, first.0).await?;
        let other = self.prepare(until, second.0).await?;
        let client = &self.client;
        // What is polled is sent, and they are polled in this order.
        let all = join4(
            client.batch_execute("BEGIN"),
            client.query(&one, first.1),
            client.query(&other, second.1),
            client.batch_execute("COMMIT"),
        );
        let answer = async {
            let (begun, rows, others, committed) = all.await;
            begun?;
            let rows = rows?;
            others?;
            // After a failure it rolls back, and that is no failure of its own.
            committed.map(|()| rows)
        };
        self.answered(until, Effect::Lasting, answer).await
    }
}

impl Transaction<'_> {
    /// Without an answer, nobody knows whether it is committed.
    pub async fn commit(self) -> Result<(), StatementError> {
        let session = self.session;
        let committed = session.client.batch_execute("COMMIT");
        let answer = session.answered(session.deadline(), Effect::Lasting, committed);
        answer.await?;
        session.in_transaction.store(false, Ordering::Relaxed);
        Ok(())
    }
}

/// Its statements are the session's.
impl Deref for Transaction<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session
    }
}

impl Drop for Transaction<'_> {
    /// The first poll sends it. Whoever uses the session next waits behind it, under a deadline of their own.
    fn drop(&mut self) {
        let session = self.session;
        let is_open = session.in_transaction.load(Ordering::Relaxed);
        if is_open && session.unanswered.load(Ordering::Relaxed) == 0 {
            let _ = session.client.batch_execute("ROLLBACK").now_or_never();
            session.in_transaction.store(false, Ordering::Relaxed);
        }
    }
}
