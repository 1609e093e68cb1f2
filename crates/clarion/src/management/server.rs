//! The running server, as whoever manages it from within sees it.

use std::sync::Arc;

use super::overview::OverviewMemory;
use super::{Management, ManagementError};
use crate::callbacks::OwedSignal;
use crate::clock::Clock;
use crate::config::Config;
use crate::disk_room::DiskRoom;
use crate::dispatch::trunk_pool::PooledTrunk;
use crate::dispatch::{RecentPackets, RenderedPrompts};
use crate::domain::audit::Actor;
use crate::domain::call::CallSid;
use crate::domain::claim::NodeId;
use crate::placing::CallPlacing;
use crate::readiness::{NotReady, Readiness};
use crate::sip_trace::{KeptMessage, TraceFilter, TraceRing};
use crate::store::Store;

#[derive(Debug)]
pub struct ManagedServer {
    pub node: NodeId,
    pub placing: Arc<CallPlacing>,
    /// To be told when something is owed to an application.
    pub callback_owed: Arc<OwedSignal>,
    pub trunks: Vec<Arc<PooledTrunk>>,
    /// How well the packets of all calls leave.
    pub packets: Arc<RecentPackets>,
    pub disk: Arc<DiskRoom>,
    pub readiness: Arc<Readiness>,
    /// `None` where no messages are kept.
    pub trace: Option<Arc<TraceRing>>,
    pub prompts: Arc<RenderedPrompts>,
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

    /// Why this node is not ready; `None` where it is, or where this is no node.
    pub async fn not_ready(&self) -> Option<NotReady> {
        let server = self.server.as_ref()?;
        server.readiness.check().await.err()
    }

    /// The SIP messages of a call that this node still has, in order.
    pub fn messages_of(&self, sid: &CallSid) -> Vec<Arc<KeptMessage>> {
        let ring = self
            .server
            .as_ref()
            .and_then(|server| server.trace.as_ref());
        let Some(ring) = ring else {
            return Vec::new();
        };
        TraceFilter::CallSid(sid.to_string()).select(ring.messages(), &[])
    }

    /// Something is owed to an application now. A server elsewhere finds it by itself.
    pub(super) fn callback_is_owed(&self) {
        if let Some(server) = &self.server {
            server.callback_owed.something_is_owed();
        }
    }
}
