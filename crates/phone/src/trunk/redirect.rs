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

impl Trunk {
    /// The address to which a redirected call goes, if it may go there. `from` is where the redirect came from.
    pub(crate) async fn locate(
        &self,
        target: &str,
        guard: Option<&dyn RedirectGuard>,
        from: SocketAddr,
    ) -> Result<SocketAddr, String> {
        let (number, host) = split_target(target)?;
        (self.config.redirect_check.0)(&number)?;
        if let Some(guard) = guard {
            guard.may_lead_to(&number).await?;
        }
        let Some(host) = host else {
            return Ok(from);
        };
        self.check_host(&host).await?;
        // The proxy finds the way.
        if self.config.proxy.is_some() {
            return Ok(from);
        }
        let found = self.resolver.addresses(&host, self.signalling.transport());
        let found = found.await?.into_iter().next();
        found.ok_or_else(|| format!("{host} has no address"))
    }

    async fn check_host(&self, host: &Host) -> Result<(), String> {
        let RedirectHosts::These(others) = &self.config.redirect_hosts else {
            return Ok(());
        };
        let domain = self.config.domain_name().parse().ok();
        let own = [Some(&self.config.host), self.config.proxy.as_ref()];
        let own = own.into_iter().flatten().chain(&self.config.more_hosts);
        let mut named = own.chain(&domain).chain(others);
        if named.any(|known| known.name.eq_ignore_ascii_case(&host.name)) {
            return Ok(());
        }
        let addresses = self.addresses().await.unwrap_or_default();
        if addresses
            .iter()
            .any(|address| Some(address.ip()) == host.address())
        {
            return Ok(());
        }
        Err(format!("{} is no host of the trunk", host.name))
    }
}
