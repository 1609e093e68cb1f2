//! Nodes wake each other: whoever has queued calls tells the others, on a connection of its own, so that they need not ask all the time. What
//! is told may be lost; every node still looks at the queue by itself now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use supervisor::{Supervisor, TaskGuard, Watch};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::session::{PooledSession, SessionPool, StatementError, TimeLimit};
use crate::store::StoreError;

const CHANNEL_LISTEN: &str = "LISTEN clarion_queue";
const TELL: &str = "SELECT pg_notify('clarion_queue', $1)";
const ASK: &str = "SELECT 1";
/// Twenty times a second at most: what is queued in between is told with the next.
const DISTANCE: Duration = Duration::from_millis(50);
/// A connection on which nothing happens is asked this often whether it lives.
const QUIET: Duration = Duration::from_secs(5);
/// After a failure.
const PAUSE: Duration = Duration::from_secs(1);
/// Longer than a connection may take, and a statement on it.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Default)]
pub struct NodeSignals {
    /// This node has queued calls.
    pub queued: Arc<Notify>,
    /// Another node has.
    pub woken: Arc<Notify>,
    /// The last heartbeat saw no other node: there is nobody to tell. Who has just started looks by itself.
    alone: Arc<AtomicBool>,
    /// What the last heartbeat saw; 0 before the first.
    oldest: Arc<AtomicUsize>,
}

impl NodeSignals {
    /// So many nodes live, this one included, and the oldest was made for this schema.
    pub fn note_nodes(&self, nodes: u32, oldest: usize) {
        self.alone.store(nodes <= 1, Ordering::Relaxed);
        self.oldest.store(oldest, Ordering::Relaxed);
    }

    pub fn oldest_node(&self) -> usize {
        self.oldest.load(Ordering::Relaxed)
    }

    /// Listens and tells until the guard is dropped.
    pub fn start(&self, pool: SessionPool, limit: TimeLimit, supervisor: &Supervisor) -> TaskGuard {
        let signals = self.clone();
        supervisor.restart("store-signals", Some(PATIENCE), move |watch| {
            let (signals, pool) = (signals.clone(), pool.clone());
            async move {
                while !pool.is_closed() {
                    watch.heartbeat();
                    if let Err(error) = signals.listen(&pool, limit, &watch).await
                        && !pool.is_closed()
                    {
                        tracing::warn!(%error, "nodes cannot wake each other for a moment");
                    }
                    // What was told meanwhile is lost.
                    signals.woken.notify_one();
                    sleep(PAUSE).await;
                }
                watch.release();
            }
        })
    }

    async fn listen(
        &self,
        pool: &SessionPool,
        limit: TimeLimit,
        watch: &Watch,
    ) -> Result<(), StoreError> {
        let session = pool.get(limit).await?;
        session.batch_execute(CHANNEL_LISTEN).await?;
        let mut next_tell = Instant::now();
        loop {
            watch.heartbeat();
            tokio::select! {
                () = session.told() => self.woken.notify_one(),
                () = self.queued.notified() => {
                    if self.alone.load(Ordering::Relaxed) {
                        continue;
                    }
                    sleep_until(next_tell).await;
                    session.query(TELL, &[&session.signature()]).await?;
                    next_tell = Instant::now() + DISTANCE;
                }
                () = sleep(QUIET) => ask(&session).await?,
            }
        }
    }
}

async fn ask(session: &PooledSession) -> Result<(), StatementError> {
    session.query(ASK, &[]).await.map(drop)
}
