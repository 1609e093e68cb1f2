//! This node, as every part of dispatch needs to know it.

use std::sync::Arc;

use jiff::SignedDuration;

use crate::clock::Clock;
use crate::domain::claim::{NodeId, NodeStanding};
use crate::store::{Store, StoreError};

/// The name of this process's life, its clock, the store that it shares with others, and how long its leases last.
#[derive(Debug, Clone)]
pub struct Node {
    pub id: NodeId,
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub lease: SignedDuration,
}

impl Node {
    /// Shows that this node lives.
    pub async fn beat(&self) -> Result<NodeStanding, StoreError> {
        let now = self.clock.now();
        self.store.heartbeat(&self.id, now, self.lease).await
    }
}
