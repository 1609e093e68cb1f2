//! Where the INVITEs that are under way went. A CANCEL must take the same route (RFC 3261 section 9.1). The library, left alone, would look
//! up the host in the called address: another server where the trunk has a domain of its own, or several addresses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rsipstack::sip::Uri;
use rsipstack::transaction::endpoint::TargetLocator;
use rsipstack::transport::SipAddr;

use super::conversations::Conversation;
use super::route_guard::RouteGuard;

/// By the called address: how many INVITEs are under way, and where the last of them went.
#[derive(Debug, Default)]
pub(super) struct InviteRoutes(Mutex<HashMap<String, (usize, SipAddr)>>);

impl InviteRoutes {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (usize, SipAddr)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The route of one INVITE, remembered for as long as its leg exists.
#[derive(Debug)]
pub(super) struct InviteRoute {
    routes: Arc<InviteRoutes>,
    target: String,
    /// Whoever speaks about its leg is heard as long.
    _conversation: Arc<Conversation>,
}

impl InviteRoute {
    pub fn remember(
        routes: &Arc<InviteRoutes>,
        target: &Uri,
        address: SipAddr,
        conversation: Arc<Conversation>,
    ) -> Self {
        let target = target.to_string();
        let mut known = routes.lock();
        let (count, last) = known
            .entry(target.clone())
            .or_insert_with(|| (0, address.clone()));
        *count += 1;
        *last = address;
        drop(known);
        Self {
            routes: Arc::clone(routes),
            target,
            _conversation: conversation,
        }
    }
}

impl Drop for InviteRoute {
    fn drop(&mut self) {
        let mut known = self.routes.lock();
        if let Some((count, _)) = known.get_mut(&self.target) {
            *count -= 1;
            if *count == 0 {
                known.remove(&self.target);
            }
        }
    }
}

/// Tells the library where a request goes. Whatever transport an address names, it stays that of the trunk.
pub(super) struct InviteLocator {
    pub routes: Arc<InviteRoutes>,
    pub guard: RouteGuard,
}

#[async_trait]
impl TargetLocator for InviteLocator {
    async fn locate(&self, uri: &Uri) -> rsipstack::Result<SipAddr> {
        let known = self.routes.lock().get(&uri.to_string()).cloned();
        if let Some((_, address)) = known {
            return Ok(address);
        }
        let judged = self.guard.judge(uri.host_with_port.clone());
        judged.map_err(|error| rsipstack::Error::Error(error.to_string()))
    }
}
