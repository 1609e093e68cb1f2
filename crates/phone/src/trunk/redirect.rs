//! Where a 3xx may lead: to numbers that may be called, at hosts that the operator knows.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;

use super::Trunk;
use crate::signalling::{Host, split_target};

type Check = dyn Fn(&str) -> Result<(), String> + Send + Sync;

/// Whether a number may be called. The error says why not.
#[derive(Clone)]
pub struct NumberCheck(Arc<Check>);

impl NumberCheck {
    /// The check gets the number as the trunk writes it.
    pub fn new(check: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }
}

impl Default for NumberCheck {
    /// Every number.
    fn default() -> Self {
        Self::new(|_| Ok(()))
    }
}

impl fmt::Debug for NumberCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NumberCheck")
    }
}

/// What only whoever places a call knows about the numbers that it may be led to.
#[async_trait]
pub trait RedirectGuard: fmt::Debug + Send + Sync {
    /// The number is as the trunk writes it. The error says why it is not called.
    async fn may_lead_to(&self, number: &str) -> Result<(), String>;
}

/// Hosts beside those of the trunk to which a redirect may lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectHosts {
    These(Vec<Host>),
    Any,
}

impl Default for RedirectHosts {
    fn default() -> Self {
        Self::These(Vec::new())
    }
}

impl RedirectHosts {
    fn allow(&self, host: &Host) -> bool {
        match self {
            Self::These(hosts) => hosts.iter().any(|known| is_same(known, host)),
            Self::Any => true,
        }
    }
}

fn is_same(known: &Host, host: &Host) -> bool {
    known.name.eq_ignore_ascii_case(&host.name)
}

/// Where a redirect leads.
#[derive(Debug, Clone)]
pub(crate) struct RedirectTarget {
    /// As it is written in the request.
    pub uri: String,
    pub address: SocketAddr,
    /// It is at a host of the trunk itself, which may ask for our password.
    pub is_own: bool,
}

impl Trunk {
    /// Where a redirected call goes, if it may go there. The redirect came from `address`, a host of the trunk or not.
    pub(crate) async fn locate(
        &self,
        uri: &str,
        guard: Option<&dyn RedirectGuard>,
        (address, is_own): (SocketAddr, bool),
    ) -> Result<RedirectTarget, String> {
        let target = |address, is_own| RedirectTarget {
            uri: uri.to_owned(),
            address,
            is_own,
        };
        let (number, host) = split_target(uri)?;
        (self.config.redirect_check.0)(&number)?;
        if let Some(guard) = guard {
            guard.may_lead_to(&number).await?;
        }
        let Some(host) = host else {
            return Ok(target(address, is_own));
        };
        let is_own = self.is_own_host(&host).await;
        if !is_own && !self.config.redirect_hosts.allow(&host) {
            return Err(format!("{} is no host of the trunk", host.name));
        }
        // The proxy finds the way.
        if self.config.proxy.is_some() {
            return Ok(target(address, is_own));
        }
        let found = self.resolver.addresses(&host, self.signalling.transport());
        let found = found.await?.into_iter().next();
        let found = found.ok_or_else(|| format!("{host} has no address"))?;
        if !self.known_addresses().contains(&found) {
            self.signalling.expect_host(found, &host);
        }
        Ok(target(found, is_own))
    }

    async fn is_own_host(&self, host: &Host) -> bool {
        let domain = self.config.domain_name().parse().ok();
        let own = [Some(&self.config.host), self.config.proxy.as_ref()];
        let own = own.into_iter().flatten().chain(&self.config.more_hosts);
        if own.chain(&domain).any(|known| is_same(known, host)) {
            return true;
        }
        let addresses = self.addresses().await.unwrap_or_default();
        let mut addresses = addresses.iter();
        addresses.any(|address| Some(address.ip()) == host.address())
    }
}
