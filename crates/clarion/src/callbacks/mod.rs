//! Delivers callbacks: takes owed callbacks from the store, delivers them, records every attempt, and tries again or gives up visibly.
//!
//! A callback's row is its queue entry: the code that ends a call writes the row in the same commit and then wakes the worker.
//! `domain::callback` decides what is owed and what the body says. No transaction is open during a delivery.

pub mod delivery;
mod owed;
mod quiet;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use supervisor::{Supervisor, TaskGuard, Watch};
use tokio::sync::watch;

use self::delivery::WebhookSender;
pub use self::owed::OwedSignal;
use self::worker::Worker;
use crate::clock::Clock;
use crate::config::CallbacksConfig;
use crate::domain::claim::NodeId;
use crate::outgoing::resolver::SystemResolver;
use crate::store::Store;

/// Time between two counts of the backlog, because counting it is not free.
const COUNTING: Duration = Duration::from_secs(15);
/// Limit of one round of the worker, which includes the pause until the next poll and the waits for the database.
const PATIENCE: Duration = Duration::from_secs(60);

/// The running delivery of callbacks. Dropping this value ends it at once; `stop` ends it in order.
#[derive(Debug)]
pub struct Callbacks {
    owed: Arc<OwedSignal>,
    stop: watch::Sender<bool>,
    worker: TaskGuard,
    _counting: TaskGuard,
}

impl Callbacks {
    /// Starts the delivery. `node` names this life of this process.
    pub fn start(
        config: &CallbacksConfig,
        store: &Arc<dyn Store>,
        clock: &Clock,
        node: &NodeId,
        supervisor: &Supervisor,
    ) -> anyhow::Result<Self> {
        let sender = WebhookSender::new(config, Arc::new(SystemResolver::default()))?;
        let sender = Arc::new(sender);
        let owed = Arc::new(OwedSignal::default());
        let (stop, stopped) = watch::channel(false);
        let (counted, counting_clock) = (Arc::clone(store), clock.clone());
        let counting = supervisor.restart("callback-gauges", None, move |watch| {
            count(Arc::clone(&counted), counting_clock.clone(), watch)
        });
        let (config, node, waking) = (config.clone(), node.clone(), Arc::clone(&owed));
        let (store, clock) = (Arc::clone(store), clock.clone());
        let mut starts = 0;
        let worker = supervisor.restart("callbacks", Some(PATIENCE), move |watch| {
            // A restarted worker is a new holder of leases, so the callbacks of the worker before it are reclaimed.
            starts += 1;
            let holder = format!("{node}-{starts}");
            let (store, clock) = (Arc::clone(&store), clock.clone());
            Worker::new(&config, store, clock, Arc::clone(&sender), holder).run(
                watch,
                Arc::clone(&waking),
                stopped.clone(),
            )
        });
        Ok(Self {
            owed,
            stop,
            worker,
            _counting: counting,
        })
    }

    /// Returns what is told after each commit that owes a callback. What nobody tells is found by polling.
    pub fn owed(&self) -> Arc<OwedSignal> {
        Arc::clone(&self.owed)
    }

    /// Begins no new delivery, lets deliveries under way finish within the limit, and gives back the leases of the rest. The supervisor
    /// must already know that everything stops.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.worker.ended().await;
    }
}

async fn count(store: Arc<dyn Store>, clock: Clock, watch: Watch) {
    loop {
        watch.heartbeat();
        // A database failure is reported by the code that needs the database. The gauges just stay as they are.
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
