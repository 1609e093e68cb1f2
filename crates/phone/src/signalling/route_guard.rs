//! Where the library may send to when a peer says by Contact or Route where it is: by the trunk's transport alone, and, over connections, to no
//! service of this machine or its network segment. Datagrams are judged later by `udp_filter`, when the trunk of each is known; a connection
//! would already have been opened then.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rsipstack::sip::HostWithPort;
use rsipstack::transport::SipAddr;
use rsipstack::transport::transport_layer::DomainResolver;

use super::address_kind::AddressKind;
use super::peers::KnownPeers;
use super::resolve::{Host, Resolver};
use super::{SignallingError, Transport, transport};

#[derive(Debug, Clone)]
pub(super) struct RouteGuard {
    pub transport: Transport,
    /// `None` for an endpoint that anybody may call.
    pub peers: Option<Arc<KnownPeers>>,
}

impl RouteGuard {
    /// The address by the trunk's transport, if the route is allowed.
    pub fn judge(&self, to: HostWithPort) -> Result<SipAddr, SignallingError> {
        let host = IpAddr::try_from(to.host.clone());
        if host.is_ok_and(|host| !self.allows(host)) {
            return Err(SignallingError::Address(to.to_string()));
        }
        Ok(SipAddr::new(self.transport.in_library(), to))
    }

    fn allows(&self, host: IpAddr) -> bool {
        let Some(peers) = &self.peers else {
            return true;
        };
        self.transport == Transport::Udp
            || AddressKind::of(host) == AddressKind::Ordinary
            || peers.contain(host, Instant::now())
    }
}

/// Resolves the names in Contact and Route.
pub(super) struct RouteResolver {
    pub resolver: Resolver,
    pub guard: RouteGuard,
}

#[async_trait]
impl DomainResolver for RouteResolver {
    async fn resolve(&self, target: &SipAddr) -> rsipstack::Result<SipAddr> {
        let unknown = |error: String| rsipstack::Error::DnsResolutionError(error);
        let host = Host {
            name: target.addr.host.to_string(),
            port: target.addr.port.map(u16::from),
        };
        let transport = self.guard.transport;
        let found = self.resolver.addresses(&host, transport).await;
        let found = found.map_err(unknown)?.into_iter().next();
        let address = found.ok_or_else(|| unknown(format!("{host} has no address")))?;
        let judged = self
            .guard
            .judge(transport::sip_address(transport, address).addr);
        judged.map_err(|error| unknown(error.to_string()))
    }
}
