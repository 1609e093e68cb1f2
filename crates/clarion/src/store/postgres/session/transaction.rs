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

/// A statement with its values.
pub type Bound<'a> = (&'a str, Values<'a>);

impl Session {
    pub async fn transaction(&mut self) -> Result<Transaction<'_>, StatementError> {
        Ok(self.begin_with(&[]).await?.0)
    }

    /// Begins a transaction with some statements and gives the rows of each: one round trip for all.
    pub async fn begin_with(
        &mut self,
        statements: &[Bound<'_>],
    ) -> Result<(Transaction<'_>, Vec<Vec<Row>>), StatementError> {
        self.in_transaction.store(true, Ordering::Relaxed);
        let transaction = Transaction { session: self };
        let rows = transaction
            .send_all(Some("BEGIN"), statements, None)
            .await?;
        Ok((transaction, rows))
    }

    /// The rows of each of some statements that take effect together. They are sent at once with the commit: one round trip for all. Each
    /// sees what was committed by others until the one before it was done. One alone is its own transaction.
    pub async fn commit_all(
        &mut self,
        statements: &[Bound<'_>],
    ) -> Result<Vec<Vec<Row>>, StatementError> {
        if let [(sql, values)] = statements {
            return Ok(vec![self.query(sql, values).await?]);
        }
        self.send_all(Some("BEGIN"), statements, Some("COMMIT"))
            .await
    }

    /// Sends all before the first answer is waited for.
    async fn send_all(
        &self,
        opening: Option<&str>,
        statements: &[Bound<'_>],
        closing: Option<&str>,
    ) -> Result<Vec<Vec<Row>>, StatementError> {
        let until = self.deadline();
        let mut prepared = Vec::with_capacity(statements.len());
        for (sql, _) in statements {
            prepared.push(self.prepare(until, sql).await?);
        }
        let client = &self.client;
        let answer = async {
            let begun = opening.map(|word| sent(client.batch_execute(word)));
            let mut rows = Vec::with_capacity(statements.len());
            for (statement, (_, values)) in prepared.iter().zip(statements) {
                rows.push(sent(client.query(statement, values)));
            }
            // One that the driver could not write has not been sent, and the others must not take effect without it.
            let is_refused = |sent: &mut Sent<_>| matches!(sent.output(), Some(Err(_)));
            let all_are_sent = !rows.iter_mut().any(is_refused);
            let closing = closing.map(|word| if all_are_sent { word } else { "ROLLBACK" });
            let ended = closing.map(|word| sent(client.batch_execute(word)));
            // Without a transaction each statement has taken effect by itself, or not.
            if let Some(begun) = begun
                && let Err(error) = begun.answer().await
            {
                return Ok(Err(error.to_string()));
            }
            let mut answers = Vec::with_capacity(rows.len());
            for rows in rows {
                answers.push(rows.answer().await?);
            }
            // After a failure it rolls back, and that is no failure of its own.
            if let Some(ended) = ended {
                ended.answer().await?;
            }
            Ok(Ok(answers))
        };
        let effect = match closing {
            Some("COMMIT") => Effect::Lasting,
            _ => Effect::Nothing,
        };
        let answer = self.answered(until, effect, answer).await?;
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
    /// The rows of each of some statements, sent at once: one round trip for all.
    pub async fn query_all(
        &self,
        statements: &[Bound<'_>],
    ) -> Result<Vec<Vec<Row>>, StatementError> {
        self.session.send_all(None, statements, None).await
    }

    /// Without an answer, nobody knows whether it is committed.
    pub async fn commit(self) -> Result<(), StatementError> {
        self.commit_with(&[]).await.map(drop)
    }

    /// Some last statements, and the commit with them: one round trip for all. If one of them fails, nothing is committed.
    pub async fn commit_with(
        self,
        statements: &[Bound<'_>],
    ) -> Result<Vec<Vec<Row>>, StatementError> {
        let session = self.session;
        let rows = session.send_all(None, statements, Some("COMMIT")).await?;
        session.in_transaction.store(false, Ordering::Relaxed);
        Ok(rows)
    }

    /// When this returns, its locks are free. One that is dropped frees them a moment later.
    pub async fn roll_back(self) -> Result<(), StatementError> {
        let session = self.session;
        session.send_all(None, &[], Some("ROLLBACK")).await?;
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
