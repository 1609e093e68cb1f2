//! Statements that take effect together, at the commit. One that is dropped before is rolled back.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use futures_util::future::{MaybeDone, maybe_done};
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

    /// The rows of each of some statements that take effect together. They are sent at once with the commit: one round trip for all. Each
    /// sees what was committed by others until the one before it was done. One alone is its own transaction.
    pub async fn commit_all(
        &mut self,
        statements: &[(&str, Values<'_>)],
    ) -> Result<Vec<Vec<Row>>, StatementError> {
        if let [(sql, values)] = statements {
            return Ok(vec![self.query(sql, values).await?]);
        }
        let until = self.deadline();
        let mut prepared = Vec::with_capacity(statements.len());
        for (sql, _) in statements {
            prepared.push(self.prepare(until, sql).await?);
        }
        let client = &self.client;
        let answer = async {
            let begun = sent(client.batch_execute("BEGIN"));
            let mut rows = Vec::with_capacity(statements.len());
            for (statement, (_, values)) in prepared.iter().zip(statements) {
                rows.push(sent(client.query(statement, values)));
            }
            // One that the driver could not write has not been sent, and the others must not take effect without it.
            let is_refused = |sent: &mut Sent<_>| matches!(sent.output(), Some(Err(_)));
            let all_are_sent = !rows.iter_mut().any(is_refused);
            let end = if all_are_sent { "COMMIT" } else { "ROLLBACK" };
            let ended = sent(client.batch_execute(end));
            // Without a transaction each statement has taken effect by itself, or not.
            if let Err(error) = begun.answer().await {
                return Ok(Err(error.to_string()));
            }
            let mut answers = Vec::with_capacity(rows.len());
            for rows in rows {
                answers.push(rows.answer().await?);
            }
            // After a failure it rolls back, and that is no failure of its own.
            ended.answer().await?;
            Ok(Ok(answers))
        };
        let answer = self.answered(until, Effect::Lasting, answer).await?;
        answer.map_err(StatementError::Unknown)
    }
}

/// A statement that is on its way: the first poll has sent it.
struct Sent<F: Future>(Pin<Box<MaybeDone<F>>>);

fn sent<F: Future>(statement: F) -> Sent<F> {
    let mut statement = Box::pin(maybe_done(statement));
    let _ = statement.as_mut().now_or_never();
    Sent(statement)
}

impl<F: Future> Sent<F> {
    /// What is known of it without waiting.
    fn output(&mut self) -> Option<&mut F::Output> {
        self.0.as_mut().output_mut()
    }

    async fn answer(mut self) -> F::Output {
        self.0.as_mut().await;
        let output = self.0.as_mut().take_output();
        output.expect("it is done and was not taken before")
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
