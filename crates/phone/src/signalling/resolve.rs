//! The addresses of a trunk by A, AAAA and SRV records (RFC 3263 without NAPTR), in the order in which they are to be tried.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use rsipstack::resolver::SipResolver;
use rsipstack::resolver::sip_resolver::resolve_logic;
pub use rsipstack::resolver::sip_resolver::{LookupSource, SrvRecord};
use rsipstack::sip::Domain;

use super::Transport;

/// A host as people write it: a name or an address, with a port or without.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host {
    pub name: String,
    pub port: Option<u16>,
}

impl Host {
    pub fn address(&self) -> Option<IpAddr> {
        self.name.parse().ok()
    }
}

impl From<SocketAddr> for Host {
    fn from(address: SocketAddr) -> Self {
        Self {
            name: address.ip().to_string(),
            port: Some(address.port()),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address() {
            Some(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            _ => f.write_str(&self.name)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        let bare = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(text).parse::<IpAddr>() {
            return Ok(Self {
                name: address.to_string(),
                port: None,
            });
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (
                name,
                Some(
                    port.parse()
                        .map_err(|_| format!("not a port: {port:?} in {text:?}"))?,
                ),
            ),
            None => (text, None),
        };
        let of_letters = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_')
        };
        if name.len() > 253 || !name.split('.').all(of_letters) {
            return Err(format!("not a host name or address: {text:?}"));
        }
        Ok(Self {
            name: name.to_owned(),
            port,
        })
    }
}

/// Finds the addresses of hosts.
#[derive(Clone)]
pub enum Resolver {
    /// By the machine's name servers.
    NameServers(SipResolver),
    /// By another source.
    Records(Arc<dyn LookupSource>),
}

impl Resolver {
    pub fn of(source: impl LookupSource + 'static) -> Self {
        Self::Records(Arc::new(source))
    }

    /// All addresses of a host, in the order in which they are to be tried. SRV records are not asked for where a port or an address is
    /// given (RFC 3263 section 4.2).
    pub async fn addresses(
        &self,
        host: &Host,
        transport: Transport,
    ) -> Result<Vec<SocketAddr>, String> {
        if let Some(address) = host.address() {
            let port = host.port.unwrap_or(transport.default_port());
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let (domain, port) = (Domain(host.name.clone()), host.port.map(Into::into));
        let (by, secure) = (Some(transport.in_library()), transport == Transport::Tls);
        let targets = match self {
            Resolver::NameServers(servers) => servers.lookup(&domain, port, by, secure).await?,
            Resolver::Records(source) => {
                resolve_logic(source.as_ref(), &domain, port, by, secure).await?
            }
        };
        let mut addresses: Vec<SocketAddr> = Vec::with_capacity(targets.len());
        for target in targets {
            if !addresses.contains(&target.addr) {
                addresses.push(target.addr);
            }
        }
        Ok(addresses)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

impl Default for Resolver {
    /// The name servers of the machine.
    fn default() -> Self {
        Self::NameServers(SipResolver::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_people_write_them() {
        for (text, name, port, written) in [
            (
                "sip.example.com",
                "sip.example.com",
                None,
                "sip.example.com",
            ),
            (
                "sip.example.com:5080",
                "sip.example.com",
                Some(5080),
                "sip.example.com:5080",
            ),
            ("192.0.2.1", "192.0.2.1", None, "192.0.2.1"),
            ("192.0.2.1:5061", "192.0.2.1", Some(5061), "192.0.2.1:5061"),
            ("2001:db8::1", "2001:db8::1", None, "[2001:db8::1]"),
            ("[2001:db8::1]", "2001:db8::1", None, "[2001:db8::1]"),
            (
                "[2001:db8::1]:5060",
                "2001:db8::1",
                Some(5060),
                "[2001:db8::1]:5060",
            ),
        ] {
            let host: Host = text.parse().unwrap();
            assert_eq!((host.name.as_str(), host.port), (name, port), "{text}");
            assert_eq!(host.to_string(), written);
        }
        for text in [
            "",
            "a b",
            "host:port",
            "a..b",
            "sip:host",
            "host:99999",
            "<x>",
        ] {
            assert!(text.parse::<Host>().is_err(), "{text}");
        }
    }

    struct Records;

    #[async_trait::async_trait]
    impl LookupSource for Records {
        async fn lookup_srv(&self, name: &str) -> Result<Vec<SrvRecord>, String> {
            let record = |target: &str, port, priority| SrvRecord {
                target: target.to_owned(),
                port,
                priority,
                weight: 0,
            };
            match name {
                "_sip._udp.trunk.example" => Ok(vec![
                    record("second.example", 5062, 20),
                    record("first.example", 5061, 10),
                ]),
                _ => Err("no such name".to_owned()),
            }
        }

        async fn lookup_a_aaaa(&self, name: &str) -> Result<Vec<IpAddr>, String> {
            match name {
                "first.example" => Ok(vec![
                    "192.0.2.1".parse().unwrap(),
                    "2001:db8::1".parse().unwrap(),
                ]),
                "second.example" | "trunk.example" => Ok(vec!["192.0.2.2".parse().unwrap()]),
                _ => Err("no such name".to_owned()),
            }
        }
    }

    #[tokio::test]
    async fn addresses_come_in_the_order_of_their_priority() {
        let resolver = Resolver::of(Records);
        let addresses = async |host: &str, transport| {
            let found = resolver.addresses(&host.parse().unwrap(), transport).await;
            found.map(|found| {
                found
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        assert_eq!(
            addresses("trunk.example", Transport::Udp).await.unwrap(),
            "192.0.2.1:5061 [2001:db8::1]:5061 192.0.2.2:5062"
        );
        // No SRV records for TCP, or a port: the name's own address.
        assert_eq!(
            addresses("trunk.example", Transport::Tcp).await.unwrap(),
            "192.0.2.2:5060"
        );
        assert_eq!(
            addresses("trunk.example:5099", Transport::Udp)
                .await
                .unwrap(),
            "192.0.2.2:5099"
        );
        assert_eq!(
            addresses("192.0.2.9", Transport::Tls).await.unwrap(),
            "192.0.2.9:5061"
        );
        assert!(addresses("nowhere.example", Transport::Udp).await.is_err());
    }
}
