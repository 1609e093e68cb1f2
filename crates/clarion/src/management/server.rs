//! The running server, as whoever manages it from within sees it.

use std::sync::Arc;

use phone::media::pacer::PaceCounts;
use tokio::sync::Notify;

use super::overview::OverviewMemory;
use super::{Management, ManagementError};
use crate::clock::Clock;
use crate::config::Config;
use crate::disk_room::DiskRoom;
use crate::dispatch::trunk_pool::PooledTrunk;
use crate::domain::audit::Actor;
use crate::placing::CallPlacing;
use crate::store::Store;

#[derive(Debug)]
pub struct ManagedServer {
    pub placing: Arc<CallPlacing>,
    /// To be notified when something is owed to an application.
    pub callback_owed: Arc<Notify>,
    pub trunks: Vec<Arc<PooledTrunk>>,
    /// How well the packets of all calls leave.
    pub pace: Arc<PaceCounts>,
    pub disk: Arc<DiskRoom>,
    pub overview: OverviewMemory,
}

impl ManagedServer {
    /// Manages the server that these belong to, as nobody yet.
    pub fn manage(self, store: &Arc<dyn Store>, config: &Arc<Config>, clock: &Clock) -> Management {
        let (store, config) = (Arc::clone(store), Arc::clone(config));
        Management {
            server: Some(Arc::new(self)),
            ..Management::new(store, config, clock.clone(), Actor::default())
        }
    }
}

impl Management {
    /// The server's, or one of our own.
    pub(super) async fn placing(&self) -> Result<Arc<CallPlacing>, ManagementError> {
        if let Some(server) = &self.server {
            return Ok(Arc::clone(&server.placing));
        }
        let (store, config) = (Arc::clone(&self.store), Arc::clone(&self.config));
        let placing = CallPlacing::beside_server(store, config, self.clock.clone());
        Ok(Arc::new(placing.await?))
    }

    /// Something is owed to an application now. A server elsewhere finds it by itself.
    pub(super) fn callback_is_owed(&self) {
        if let Some(server) = &self.server {
            server.callback_owed.notify_one();
        }
    }
}
