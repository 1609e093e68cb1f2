//! Sessions that are lent out one by one. One that has gone bad is not lent again; when one falls silent, those that lie idle are not
//! trusted either.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;

use super::connect::{ConnectError, Connector};
use super::{Session, TimeLimit};

/// How long somebody waits while all sessions are lent out.
const WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct SessionPool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    connector: Arc<Connector>,
    /// Sessions that have not yet forgotten plans of an earlier number do so before they are lent again.
    plans: AtomicU32,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Session>>,
}

impl SessionPool {
    pub fn new(connector: Arc<Connector>, size: usize) -> Self {
        Self(Arc::new(Shared {
            connector,
            plans: AtomicU32::new(0),
            permits: Arc::new(Semaphore::new(size)),
            idle: Mutex::default(),
        }))
    }

    /// A session whose statements have this limit. The wait for it has one of its own, and so has a new connection.
    pub async fn get(&self, limit: TimeLimit) -> Result<PooledSession, ConnectError> {
        let shared = &self.0;
        let permit = Arc::clone(&shared.permits).acquire_owned();
        let permit = timeout_at(limit.end_of(limit.statement.min(WAIT)), permit)
            .await
            .map_err(|_| ConnectError::new("all connections to PostgreSQL are in use"))?
            .map_err(|_| ConnectError::new("the store is closed"))?;
        let idle = shared.take_idle();
        let mut session = match idle {
            Some(session) => session,
            None => shared.connector.connect(limit.until).boxed().await?,
        };
        session.limit = limit;
        let plans = shared.plans.load(Ordering::Relaxed);
        if session.plans != plans {
            session.plans = plans;
            session.forget_plans().await;
        }
        Ok(PooledSession {
            session: Some(session),
            shared: Arc::clone(shared),
            _permit: permit,
        })
    }

    /// The tables have changed so much that every statement is better planned anew.
    pub fn forget_plans(&self) {
        self.0.plans.fetch_add(1, Ordering::Relaxed);
    }

    pub fn close(&self) {
        self.0.permits.close();
        self.0.idle().clear();
    }

    pub fn is_closed(&self) -> bool {
        self.0.permits.is_closed()
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one that was used last is most likely to live.
    fn take_idle(&self) -> Option<Session> {
        let mut idle = self.idle();
        std::iter::from_fn(|| idle.pop()).find(Session::is_sound)
    }
}

/// A session out of the pool, which goes back where it came from.
#[derive(Debug)]
pub struct PooledSession {
    /// There until it is dropped.
    session: Option<Session>,
    shared: Arc<Shared>,
    _permit: OwnedSemaphorePermit,
}

impl Deref for PooledSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session.as_ref().expect("there until it is dropped")
    }
}

impl DerefMut for PooledSession {
    fn deref_mut(&mut self) -> &mut Session {
        self.session.as_mut().expect("there until it is dropped")
    }
}

impl Drop for PooledSession {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        let mut idle = self.shared.idle();
        if session.silent.load(Ordering::Relaxed) {
            idle.clear();
        }
        if session.is_sound() && !self.shared.permits.is_closed() {
            idle.push(session);
        }
    }
}
