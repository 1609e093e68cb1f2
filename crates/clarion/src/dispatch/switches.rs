//! The operator's switches: all dialling stopped, a trunk drained.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::trunk_pool::TrunkPool;
use crate::store::{DispatchStore, StoreError};

/// The switch that stops all dialling. What is under way goes on; what is queued waits.
pub const STOP_ALL: &str = "stop-all";

/// The switch that lets a trunk run empty.
pub fn drained_switch(trunk: &str) -> String {
    format!("drained:{trunk}")
}

#[derive(Debug)]
pub struct Switches {
    store: Arc<dyn DispatchStore>,
    pool: Arc<TrunkPool>,
    stopped: AtomicBool,
}

impl Switches {
    pub fn new(store: Arc<dyn DispatchStore>, pool: Arc<TrunkPool>) -> Self {
        Self {
            store,
            pool,
            stopped: AtomicBool::new(false),
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Obeys the switches as they are in the store now.
    pub async fn read(&self) -> Result<(), StoreError> {
        let switches = self.store.operator_switches().await?;
        let set = |name: &str| switches.iter().any(|(known, _)| known == name);
        let stop = set(STOP_ALL);
        metrics::gauge!("clarion_dialling_stopped").set(f64::from(u8::from(stop)));
        if self.stopped.swap(stop, Ordering::Relaxed) != stop {
            tracing::warn!(stop, "the operator has switched dialling");
        }
        for trunk in self.pool.trunks() {
            let drained = set(&drained_switch(trunk.name()));
            if trunk.set_drained(drained) {
                tracing::warn!(
                    trunk = trunk.name(),
                    drained,
                    "the operator has switched a trunk"
                );
            }
        }
        Ok(())
    }
}
