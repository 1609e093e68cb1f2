//! Where a 3xx may lead: to numbers that may be called, at hosts that the operator knows.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;

use super::Trunk;
use crate::signalling::{Host, unescaped_text};

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

/// The number and the host of `sip:number@host:port;parameters`. A `tel:` address has no host.
pub(crate) fn split_target(target: &str) -> Result<(String, Option<Host>), String> {
    // It is going to stand in the first line of a request.
    if target.contains(|letter: char| letter.is_control() || letter.is_whitespace()) {
        return Err("it has blanks or control characters".to_owned());
    }
    let (scheme, rest) = target.split_once(':').unwrap_or_default();
    let scheme = scheme.to_ascii_lowercase();
    let end = |text: &str, ends: &[char]| text.find(ends).unwrap_or(text.len());
    match scheme.as_str() {
        "tel" => Ok((rest[..end(rest, &[';'])].to_owned(), None)),
        "sip" | "sips" => {
            let (user, host) = rest.rsplit_once('@').ok_or("it names no number")?;
            let host = &host[..end(host, &[';', '?', '>'])];
            // Neither a password nor parameters belong to the number.
            let user = &user[..end(user, &[';', ':'])];
            Ok((unescaped_text(user), Some(host.parse()?)))
        }
        _ => Err("it is no address of a telephone".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_host_of_a_target_are_found() {
        for (target, number, host) in [
            (
                "sip:100@192.0.2.1:5070;transport=tcp",
                "100",
                Some("192.0.2.1:5070"),
            ),
            ("sips:+861@b.example?x=y", "+861", Some("b.example")),
            (
                "SIP:%2B861;x=y:pw@[2001:db8::1]:5060",
                "+861",
                Some("[2001:db8::1]:5060"),
            ),
            ("sip:*21%23@h", "*21#", Some("h")),
            ("tel:+123;phone-context=x", "+123", None),
        ] {
            let (found, at) = split_target(target).unwrap();
            let at = at.map(|host| host.to_string());
            assert_eq!((found.as_str(), at.as_deref()), (number, host), "{target}");
        }
        for target in [
            "",
            "sip:host.example",
            "mailto:a@b",
            "sip:1@a b",
            "tel:+861;p\r\0=x",
            "sip:1@h;x=\nVia: y",
        ] {
            assert!(split_target(target).is_err(), "{target}");
        }
    }
}
