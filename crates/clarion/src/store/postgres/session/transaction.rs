//! Statements that take effect together, at the commit. One that is dropped before is rolled back.

use std::ops::Deref;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;

use super::{Effect, Session, StatementError};

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
