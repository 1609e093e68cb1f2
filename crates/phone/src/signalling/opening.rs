//! The sockets of an endpoint. We open them ourselves, and the library reads and writes on them.

use std::net::SocketAddr;
use std::sync::Arc;

use rsipstack::transport::SipConnection;
use rsipstack::transport::tcp_listener::TcpListenerConnection;
use rsipstack::transport::tls::TlsListenerConnection;
use rsipstack::transport::udp::UdpConnection;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, UdpSocket};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::accepting::{Entrance, tls_acceptor};
use super::transport::{Transport, own_address, tls_config};
use super::udp_filter::UdpFilter;
use super::{SignallingConfig, SignallingError};

/// Room for a burst of thousands of messages while the receiving task is busy elsewhere.
const SOCKET_BUFFER: usize = 4 << 20;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
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
