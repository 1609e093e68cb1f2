//! Status out: takes owed callbacks from the store, delivers them, records every attempt, and tries again or gives up visibly.
//!
//! The row is the queue entry: whoever ends a call writes it in the same commit and then wakes us. Nothing here decides what is owed or
//! what the body says (`domain::callback`), and no transaction is open while a receiver is being waited for.

pub mod delivery;
pub mod guard;
mod hosts;
pub mod resolver;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use self::delivery::WebhookSender;
use self::resolver::SystemResolver;
use self::worker::Worker;
use crate::clock::Clock;
use crate::config::CallbacksConfig;
use crate::store::Store;

/// Counting everything that waits is not for free.
const COUNTING: Duration = Duration::from_secs(15);

/// The delivery of callbacks, while it runs. Dropping it ends it at once; `stop` ends it in order.
#[derive(Debug)]
pub struct Callbacks {
    owed: Arc<Notify>,
    stop: watch::Sender<bool>,
    worker: JoinSet<()>,
    _counting: JoinSet<()>,
}

impl Callbacks {
    /// `node` names this life of this process.
    pub fn start(
        config: &CallbacksConfig,
        store: Arc<dyn Store>,
        clock: Clock,
        node: String,
    ) -> anyhow::Result<Self> {
        let courier = WebhookSender::new(config, Arc::new(SystemResolver::default()))?;
        let owed = Arc::new(Notify::new());
        let (stop, stopped) = watch::channel(false);
        let mut counting = JoinSet::new();
        counting.spawn(count(Arc::clone(&store), clock.clone()));
        let mut worker = JoinSet::new();
        worker.spawn(
            Worker::new(config, store, clock, courier, node).run(Arc::clone(&owed), stopped),
        );
        Ok(Self {
            owed,
            stop,
            worker,
            _counting: counting,
        })
    }

    /// To be notified after each commit that owes something. Without it, callbacks are found by polling.
    pub fn owed(&self) -> Arc<Notify> {
        Arc::clone(&self.owed)
    }

    /// Begins nothing new, lets what is under way finish within the limit, and gives the leases of the rest back.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        if let Some(Err(error)) = self.worker.join_next().await {
            tracing::error!(%error, "the delivery of callbacks did not end well");
        }
    }
}

async fn count(store: Arc<dyn Store>, clock: Clock) {
    loop {
        // A database that fails is reported by those who need it; the gauges just stay as they are.
        if let Ok(backlog) = store.callback_backlog().await {
            let age = backlog.oldest_owed_at.map_or(0.0, |oldest| {
                clock.now().duration_since(oldest).as_secs_f64().max(0.0)
            });
            metrics::gauge!("clarion_callbacks_waiting").set(backlog.waiting as f64);
            metrics::gauge!("clarion_callbacks_oldest_seconds").set(age);
        }
        tokio::time::sleep(COUNTING).await;
    }
}
