//! Connections to trunks: opened when they are needed, one at a time to each address, and shared by all calls. We open them and not the library,
//! which would check every certificate by one name, and go on sending for minutes to a peer that has vanished.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rsipstack::transaction::endpoint::EndpointInnerRef;
use rsipstack::transport::SipConnection;
use rsipstack::transport::tcp::TcpConnection;
use rsipstack::transport::tls::TlsConnection;
use socket2::{SockRef, Socket};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::peer_tls::PeerTls;
use super::trace::MessageTap;
use super::transport::{self, Transport};
use super::{SILENCE, SignallingError};

/// So many addresses are remembered at most beyond those that are connected.
const MAX_ADDRESSES: usize = 1000;

pub(super) struct TrunkConnector {
    pub endpoint: EndpointInnerRef,
    pub transport: Transport,
    pub tap: Arc<MessageTap>,
    /// Where the transport is TLS.
    pub tls: Option<PeerTls>,
    pub opened: Arc<OpenedConnections>,
    /// Connections end with it.
    pub stop: CancellationToken,
}

/// The connections that we have opened, by the address of the peer.
#[derive(Default)]
pub(super) struct OpenedConnections(Mutex<HashMap<SocketAddr, Arc<ConnectionSlot>>>);

/// The connection to one address.
#[derive(Default)]
struct ConnectionSlot {
    /// Locked while it is opened, so that a burst of calls shares it.
    connection: tokio::sync::Mutex<Option<SipConnection>>,
    /// When a message came on it last.
    heard: Mutex<Option<Instant>>,
}

impl OpenedConnections {
    /// A message has come from this address.
    pub fn heard(&self, peer: SocketAddr) {
        let slot = self.slots().get(&peer).cloned();
        if let Some(slot) = slot {
            *slot.heard() = Some(Instant::now());
        }
    }

    fn slot(&self, peer: SocketAddr) -> Arc<ConnectionSlot> {
        let mut slots = self.slots();
        if slots.len() >= MAX_ADDRESSES {
            slots.retain(|_, slot| slot.is_in_use());
        }
        Arc::clone(slots.entry(peer).or_default())
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<SocketAddr, Arc<ConnectionSlot>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    fn is_in_use(&self) -> bool {
        // Locked is being opened.
        let Ok(known) = self.connection.try_lock() else {
            return true;
        };
        known.as_ref().is_some_and(is_up)
    }

    fn heard(&self) -> MutexGuard<'_, Option<Instant>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TrunkConnector {
    /// The connection to a peer, opened if there is none; `None` where the transport has no connections. The library would go on trying in
    /// silence and report a closed port or a bad certificate like a peer that says nothing.
    pub async fn connection(
        &self,
        destination: SocketAddr,
    ) -> Result<Option<SipConnection>, SignallingError> {
        if self.transport == Transport::Udp {
            return Ok(None);
        }
        let slot = self.opened.slot(destination);
        let mut known = slot.connection.lock().await;
        if let Some(connection) = known.as_ref().filter(|connection| is_up(connection)) {
            return Ok(Some(connection.clone()));
        }
        let unreachable = |reason: String| SignallingError::Unreachable(destination, reason);
        let opening = tokio::time::timeout(transport::CONNECT_TIME, self.open(destination));
        let opened = opening.await.map_err(|_| {
            let limit = transport::CONNECT_TIME.as_secs();
            unreachable(format!("no connection within {limit} s"))
        })?;
        let connection = opened.map_err(|error| unreachable(error.to_string()))?;
        *slot.heard() = None;
        self.tap.connected(&connection, destination);
        let layer = &self.endpoint.transport_layer;
        layer.add_connection(connection.clone());
        *known = Some(connection.clone());
        Ok(Some(connection))
    }

    async fn open(&self, peer: SocketAddr) -> io::Result<SipConnection> {
        let stream = TcpStream::connect(peer).await?;
        // No message waits for the peer's word about the one before it.
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&stream).try_clone()?;
        // A host that has vanished says no goodbye. What is sent to it and never arrives ends the connection.
        socket.set_tcp_user_timeout(Some(SILENCE))?;
        let gone = self.stop.child_token();
        let connection = match &self.tls {
            None => {
                let local = transport::sip_address(self.transport, stream.local_addr()?);
                let opened = TcpConnection::from_stream(stream, local, Some(gone.clone()));
                opened.map(SipConnection::from)
            }
            Some(tls) => {
                let stream = tls.connect(stream, peer).await?;
                let peer = transport::sip_address(self.transport, peer);
                let opened = TlsConnection::from_client_stream(stream, peer, Some(gone.clone()));
                opened.await.map(SipConnection::from)
            }
        };
        let connection = connection.map_err(io::Error::other)?;
        tokio::spawn(shut_when_gone(gone, socket));
        Ok(connection)
    }

    /// Closes the connection to a peer that has said nothing on it since that moment, although it was asked.
    pub async fn close_if_silent(&self, peer: SocketAddr, since: Instant) {
        let slot = self.opened.slot(peer);
        let mut known = slot.connection.lock().await;
        let has_spoken = slot.heard().is_some_and(|heard| heard >= since);
        let Some(connection) = known.take_if(|_| !has_spoken) else {
            return;
        };
        tracing::info!(%peer, "a connection on which questions get no answer is closed");
        let layer = &self.endpoint.transport_layer;
        layer.remove_connection(&connection);
    }
}

/// The library cancels the token of a connection that has ended.
fn is_up(connection: &SipConnection) -> bool {
    let gone = connection.cancel_token();
    gone.is_none_or(|gone| !gone.is_cancelled())
}

/// The library reads until nothing has come for a while; a socket of our own ends that sooner.
async fn shut_when_gone(gone: CancellationToken, socket: Socket) {
    gone.cancelled().await;
    let _ = socket.shutdown(Shutdown::Both);
}
