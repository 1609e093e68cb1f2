//! Keeps this node's part of each trunk up to date: asks for more when calls find nothing left, gives back what others wait for. One node
//! registers a trunk that wants that: it has the duty under a lease.

use std::sync::Arc;
use std::time::Duration;

use supervisor::Watch;
use tokio::time::Instant;

use super::node::Node;
use super::trunk_pool::TrunkPool;
use crate::store::StoreError;

/// The parts are looked at this often at least: others may want more.
const INTERVAL: Duration = Duration::from_secs(1);
/// And no more often than this, however much is wanted.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// The duty to register is renewed this often within its lease.
const RENEWALS_PER_LEASE: u32 = 5;

#[derive(Debug)]
pub struct TrunkSharing {
    pub node: Node,
    pub pool: Arc<TrunkPool>,
}

impl TrunkSharing {
    pub async fn run(self: Arc<Self>, watch: Watch) {
        let pause = self.node.lease.unsigned_abs() / RENEWALS_PER_LEASE;
        let mut renew_at = Instant::now();
        loop {
            watch.heartbeat();
            if Instant::now() >= renew_at {
                self.share_registrations().await;
                renew_at = Instant::now() + pause;
            }
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

    /// Takes or keeps the duty to register each trunk that wants that, where no other node has it. A node that does not know keeps what it
    /// has for as long as its leases are certain.
    async fn share_registrations(&self) {
        let node = &self.node;
        for trunk in self.pool.trunks() {
            let Some(duty) = trunk.line.registration_duty() else {
                continue;
            };
            let taken = node
                .store
                .registration_duty(trunk.name(), &node.id, node.lease);
            let is_ours = taken.await.unwrap_or_else(|error| {
                tracing::warn!(%error, trunk = trunk.name(), "who registers could not be agreed upon");
                *duty.borrow() && node.lease_watch.current().is_some()
            });
            if duty.send_replace(is_ours) != is_ours {
                tracing::info!(
                    trunk = trunk.name(),
                    is_ours,
                    "the duty to register has moved"
                );
            }
        }
    }
}
