//! The transports of messages: UDP, TCP or TLS.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use rsipstack::sip::{Host, HostWithPort};
use rsipstack::transport::SipAddr;
use rsipstack::transport::tls::TlsConfig;

/// A connection that is not up after this time has failed.
pub const CONNECT_TIME: Duration = Duration::from_secs(4);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Transport {
    #[default]
    Udp,
    Tcp,
    Tls,
}

impl Transport {
    pub const ALL: [Transport; 3] = [Transport::Udp, Transport::Tcp, Transport::Tls];

    pub fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
        }
    }

    pub fn default_port(self) -> u16 {
        match self {
            Transport::Udp | Transport::Tcp => 5060,
            Transport::Tls => 5061,
        }
    }

    pub(super) fn in_library(self) -> rsipstack::sip::Transport {
        match self {
            Transport::Udp => rsipstack::sip::Transport::Udp,
            Transport::Tcp => rsipstack::sip::Transport::Tcp,
            Transport::Tls => rsipstack::sip::Transport::Tls,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Transport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|transport| transport.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("not a transport: {text:?}; udp, tcp and tls are"))
    }
}

/// Certificates in PEM. A peer's certificate is always checked; that cannot be turned off.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct TlsFiles {
    /// The authorities that we trust. Without any, no peer is trusted.
    pub authorities: Vec<u8>,
    /// The name in the peer's certificate, where the peer is not told to have another one (`Signalling::expect_host`).
    pub peer_name: Option<String>,
    /// Our certificate and key, for peers that connect to us or want to see one.
    pub own: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for TlsFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsFiles")
            .field("peer_name", &self.peer_name)
            .field("own", &self.own.is_some())
            .finish_non_exhaustive()
    }
}

/// The address that this machine has towards the outside. No packet is sent to find out.
pub fn own_address(like: IpAddr) -> IpAddr {
    let (any, outside) = match like {
        IpAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
        IpAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
    };
    let routed = std::net::UdpSocket::bind(any).and_then(|socket| {
        socket.connect(outside)?;
        socket.local_addr()
    });
    match (routed, like) {
        (Ok(address), _) => address.ip(),
        // A machine without a route to the outside is reached only by itself.
        (Err(_), IpAddr::V4(_)) => Ipv4Addr::LOCALHOST.into(),
        (Err(_), IpAddr::V6(_)) => Ipv6Addr::LOCALHOST.into(),
    }
}

pub(super) fn tls_config(files: &TlsFiles) -> TlsConfig {
    let (cert, key) = files.own.clone().unzip();
    TlsConfig {
        cert: cert.clone(),
        key: key.clone(),
        client_cert: cert,
        client_key: key,
        ca_certs: Some(files.authorities.clone()),
        sni_hostname: files.peer_name.clone(),
    }
}

pub(super) fn sip_address(transport: Transport, address: SocketAddr) -> SipAddr {
    SipAddr::new(
        transport.in_library(),
        HostWithPort {
            host: Host::IpAddr(address.ip()),
            port: Some(address.port().into()),
        },
    )
}
