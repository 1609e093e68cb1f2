//! Where the INVITEs that are under way went. A CANCEL must go the same way (RFC 3261 section 9.1), and the library, left alone, would look up
//! whatever host is in the called address: another server where the trunk has a domain of its own, or several addresses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rsipstack::sip::Uri;
use rsipstack::transaction::endpoint::TargetLocator;
use rsipstack::transport::SipAddr;

/// By what they are addressed to; how many INVITEs, and where the last of them went.
#[derive(Debug, Default)]
pub(super) struct InviteRoutes(Mutex<HashMap<String, (usize, SipAddr)>>);

impl InviteRoutes {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (usize, SipAddr)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Remembered for as long as the leg is there.
#[derive(Debug)]
pub(super) struct InviteRoute {
    ways: Arc<InviteRoutes>,
    target: String,
}

impl InviteRoute {
    pub fn remember(ways: &Arc<InviteRoutes>, target: &Uri, address: SipAddr) -> Self {
        let target = target.to_string();
        let mut known = ways.lock();
        let (count, last) = known
            .entry(target.clone())
            .or_insert_with(|| (0, address.clone()));
        *count += 1;
        *last = address;
        drop(known);
        Self {
            ways: Arc::clone(ways),
            target,
        }
    }
}

impl Drop for InviteRoute {
    fn drop(&mut self) {
        let mut known = self.ways.lock();
        if let Some((count, _)) = known.get_mut(&self.target) {
            *count -= 1;
            if *count == 0 {
                known.remove(&self.target);
            }
        }
    }
}

pub(super) struct Located(pub Arc<InviteRoutes>);

#[async_trait]
impl TargetLocator for Located {
    async fn locate(&self, uri: &Uri) -> rsipstack::Result<SipAddr> {
        let known = self.0.lock().get(&uri.to_string()).cloned();
        match known {
            Some((_, address)) => Ok(address),
            None => SipAddr::try_from(uri),
        }
    }
}
