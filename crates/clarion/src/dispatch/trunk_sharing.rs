//! Keeps this node's part of each trunk up to date: asks for more when calls find nothing left, gives back what others wait for.

use std::sync::Arc;
use std::time::Duration;

use supervisor::Watch;

use super::node::Node;
use super::trunk_pool::TrunkPool;
use crate::store::StoreError;

/// The parts are looked at this often at least: others may want more.
const INTERVAL: Duration = Duration::from_secs(1);
/// And no more often than this, however much is wanted.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct TrunkSharing {
    pub node: Node,
    pub pool: Arc<TrunkPool>,
}

impl TrunkSharing {
    pub async fn run(self: Arc<Self>, watch: Watch) {
        loop {
            watch.beat();
            tokio::time::sleep(SHORTEST_PAUSE).await;
            let wanted = self.pool.share_changed.notified();
            let _ = tokio::time::timeout(INTERVAL, wanted).await;
            if let Err(error) = self.step().await {
                tracing::error!(%error, "the parts of the trunks could not be agreed upon");
            }
        }
    }

    /// Asks for this node's part of every trunk. A node whose leases are over must show first that it lives.
    pub async fn step(&self) -> Result<(), StoreError> {
        let Some(lease) = self.node.lease_watch.current() else {
            return Ok(());
        };
        let requests = self.pool.grant_requests();
        let grants = self
            .node
            .store
            .share_trunks(&self.node.id, requests)
            .await?;
        self.pool.grant(&grants, &lease);
        Ok(())
    }
}
