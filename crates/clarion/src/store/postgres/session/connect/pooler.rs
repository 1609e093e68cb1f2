//! Whether what stands between us and PostgreSQL gives us sessions. A pooler in transaction mode, such as PgBouncer, gives each transaction
//! whichever backend is free: what was prepared, set or locked before is then somewhere else.
//!
//! Two sessions that are open at the same time never have the same backend, and a session never changes its own. A pooler in transaction mode
//! breaks one rule or the other as soon as several of its clients take turns: it hands out either the backend that was used last, then they
//! share it, or the one that has rested longest, then it changes. There are more sessions here than a pooler usually has processes, so that
//! some of them meet in one.

use tokio::time::{Instant, timeout_at};

use super::greeting::Greeting;
use super::startup::LoggedIn;
use super::{Connector, HostError, Place};

const SESSIONS: usize = 8;
const REFUSAL: &str = "a connection pooler in transaction mode (such as PgBouncer with pool_mode = transaction) stands before PostgreSQL, \
     and Clarion needs sessions of its own: set pool_mode = session for this database, or name the server itself";

impl Connector {
    /// Asked once for each host: `first` is a session with it, and what it was greeted with.
    pub(super) async fn prove_sessions(
        &self,
        host: usize,
        place: &Place,
        first: &LoggedIn,
        greeting: &Greeting,
        until: Option<Instant>,
    ) -> Result<(), HostError> {
        let proven = timeout_at(self.end_of_attempt(until), self.proven.lock()).await;
        let mut proven = proven.map_err(|_| self.too_late())?;
        if proven.contains(&host) {
            return Ok(());
        }
        let mut backends = vec![greeting.backend];
        let mut others = Vec::new();
        // A pooler in session mode has its limits, too: those that it gives are enough.
        while others.len() + 1 < SESSIONS
            && let Ok((other, greeting)) = self.log_in(host, place, until).await
        {
            if backends.contains(&greeting.backend) {
                return Err(HostError::Refused(REFUSAL.to_owned()));
            }
            backends.push(greeting.backend);
            others.push(other);
        }
        let asked = std::iter::once(first).chain(&others);
        for (logged_in, backend) in asked.zip(backends) {
            let again = logged_in.session.greet().await?;
            if again.backend != backend {
                return Err(HostError::Refused(REFUSAL.to_owned()));
            }
        }
        proven.push(host);
        Ok(())
    }
}
