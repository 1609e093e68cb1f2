//! The transports of messages: UDP, TCP or TLS, on sockets that we open ourselves.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rsipstack::sip::{Host, HostWithPort};
use rsipstack::transport::tcp_listener::TcpListenerConnection;
use rsipstack::transport::tls::{TlsConfig, TlsListenerConnection};
use rsipstack::transport::udp::UdpConnection;
use rsipstack::transport::{SipAddr, SipConnection};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, UdpSocket};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::accepting::{Entrance, tls_acceptor};
use super::udp_filter::UdpFilter;
use super::{SignallingConfig, SignallingError};

/// Room for a burst of thousands of messages while the receiving task is busy elsewhere.
const SOCKET_BUFFER: usize = 4 << 20;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
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

/// What an endpoint listens on.
pub(super) struct Opened {
    pub local: SocketAddr,
    /// The address at which we are reached.
    pub contact: SocketAddr,
    /// The library does not know it yet, and would read from it by itself (`listeners`).
    pub listener: SipConnection,
    /// Where peers can connect to us.
    pub entrance: Option<Entrance>,
}

impl Opened {
    /// The address of this machine that our packets come from.
    pub fn own(&self) -> SocketAddr {
        match self.local.ip() {
            any if any.is_unspecified() => SocketAddr::new(own_address(any), self.local.port()),
            one => SocketAddr::new(one, self.local.port()),
        }
    }

    /// Peers can begin to talk to us.
    pub fn is_reachable(&self) -> bool {
        self.entrance.is_some() || matches!(self.listener, SipConnection::Udp(_))
    }
}

/// Opens what the endpoint listens on. `filtered` puts a filter in front of a UDP socket.
pub(super) async fn open(
    config: &SignallingConfig,
    is_called: bool,
    filtered: impl FnOnce(UdpSocket) -> UdpFilter,
    stop: &CancellationToken,
) -> Result<Opened, SignallingError> {
    let bind = |error| SignallingError::Bind(config.bind, error);
    if config.transport == Transport::Udp {
        let socket = udp_socket(config.bind).map_err(bind)?;
        let local = socket.local_addr().map_err(bind)?;
        let reached = reached(config, local);
        let (filter, token) = (Arc::new(filtered(socket)), Some(stop.child_token()));
        return Ok(Opened {
            local,
            contact: reached.unwrap_or(local),
            listener: UdpConnection::from_socket(filter, reached, token)
                .await?
                .into(),
            entrance: None,
        });
    }
    let (socket, local) = stream_socket(config.bind).map_err(bind)?;
    let reached = reached(config, local);
    let contact = reached.unwrap_or(local);
    let listener = match config.transport {
        Transport::Tls => {
            let tls = tls_config(&config.tls);
            TlsListenerConnection::new(local, reached, tls)
                .await?
                .into()
        }
        _ => TcpListenerConnection::new(local, reached).await?.into(),
    };
    let entrance = if is_to_be_connected_to(config, is_called) {
        Some(Entrance {
            listener: listen(socket).map_err(bind)?,
            tls: own_acceptor(config)?,
            contact,
        })
    } else {
        None
    };
    Ok(Opened {
        local,
        contact,
        listener,
        entrance,
    })
}

fn own_acceptor(config: &SignallingConfig) -> Result<Option<TlsAcceptor>, SignallingError> {
    match (config.transport, &config.tls.own) {
        (Transport::Tls, Some(own)) => tls_acceptor(own).map(Some),
        _ => Ok(None),
    }
}

/// Whether peers connect to us. Over TLS nobody connects to somebody without a certificate. And nobody can be told, or let through a
/// firewall, to a port that is another one at every start: there everything comes on the connections that we open (RFC 5923).
fn is_to_be_connected_to(config: &SignallingConfig, is_called: bool) -> bool {
    let has_certificate = config.transport != Transport::Tls || config.tls.own.is_some();
    let has_port = config.bind.port() != 0 || config.advertised.is_some();
    has_certificate && (has_port || is_called)
}

/// The address at which we are reached, where it is not the one that we are bound to. Bound to every address of the machine, we are still
/// reached at one of them.
fn reached(config: &SignallingConfig, local: SocketAddr) -> Option<SocketAddr> {
    let own = local.ip().is_unspecified().then(|| own_address(local.ip()));
    config
        .advertised
        .or_else(|| Some(SocketAddr::new(own?, local.port())))
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

/// The port is known even where nobody listens at it.
fn stream_socket(bind: SocketAddr) -> std::io::Result<(Socket, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(bind), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&bind.into())?;
    let local = socket.local_addr()?.as_socket();
    let local = local.ok_or_else(|| std::io::Error::other("not an IP address"))?;
    Ok((socket, local))
}

fn listen(socket: Socket) -> std::io::Result<TcpListener> {
    socket.set_nonblocking(true)?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

fn udp_socket(bind: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(bind), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    // The kernel gives what it is allowed to; less is no reason to stop.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    socket.bind(&bind.into())?;
    UdpSocket::from_std(socket.into())
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
