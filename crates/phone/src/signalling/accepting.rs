//! Connections that peers open to us. They are accepted here and not by the library, which would take any number of them from anybody, wait
//! for a handshake for ever, and try again without a pause while the process has no file left.

use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rsipstack::transaction::endpoint::EndpointInnerRef;
use rsipstack::transport::tcp::TcpConnection;
use rsipstack::transport::tls::TlsConnection;
use rsipstack::transport::{SipAddr, SipConnection};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use socket2::{SockRef, Socket};
use supervisor::Watch;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::doorkeeper::{ConnectionPlace, Doorkeeper, HANDSHAKE_TIME};
use super::{SignallingError, Transport, transport};

/// The process may have no file left; one that is closed meanwhile makes room.
const PAUSE_AFTER_AN_ERROR: Duration = Duration::from_millis(100);

/// What connections come in by.
pub(super) struct Entrance {
    pub listener: TcpListener,
    pub tls: Option<TlsAcceptor>,
    /// The address at which we are reached.
    pub contact: SocketAddr,
}

impl Entrance {
    fn transport(&self) -> Transport {
        match self.tls {
            Some(_) => Transport::Tls,
            None => Transport::Tcp,
        }
    }
}

/// For peers that connect to us over TLS.
pub(super) fn tls_acceptor(
    (certificate, key): &(Vec<u8>, Vec<u8>),
) -> Result<TlsAcceptor, SignallingError> {
    let wrong = |error: String| SignallingError::Library(format!("our certificate: {error}"));
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| wrong(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| wrong(error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| wrong(error.to_string()))?;
    let config = config.with_no_client_auth().with_single_cert(chain, key);
    let config = config.map_err(|error| wrong(error.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Accepts connections until it is dropped.
pub(super) async fn accept(
    entrance: Entrance,
    endpoint: EndpointInnerRef,
    doorkeeper: Arc<Doorkeeper>,
    stop: CancellationToken,
    watch: Watch,
) {
    let entrance = Arc::new(entrance);
    loop {
        let (stream, peer) = match entrance.listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        watch.heartbeat();
        let Some(place) = doorkeeper.admit(peer) else {
            continue;
        };
        let guest = Guest {
            entrance: Arc::clone(&entrance),
            endpoint: endpoint.clone(),
            place,
            peer,
            gone: stop.child_token(),
        };
        tokio::spawn(guest.serve(stream));
    }
}

/// A peer that has gone again meanwhile is nobody's trouble.
async fn pause_after(error: &io::Error) {
    if !matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted
    ) {
        tracing::warn!(%error, "a SIP connection cannot be accepted; it is tried again");
        tokio::time::sleep(PAUSE_AFTER_AN_ERROR).await;
    }
}

/// A connection that has been let in.
struct Guest {
    entrance: Arc<Entrance>,
    endpoint: EndpointInnerRef,
    place: ConnectionPlace,
    peer: SocketAddr,
    /// The library cancels it when the connection has ended.
    gone: CancellationToken,
}

impl Guest {
    /// Its place is taken until the connection has ended.
    async fn serve(self, stream: TcpStream) {
        // The library reads until nothing has come for a while; a socket of our own ends that sooner.
        let Ok(socket) = SockRef::from(&stream).try_clone() else {
            return;
        };
        let connection = match self.connection(stream).await {
            Ok(connection) => connection,
            Err(error) => {
                return tracing::debug!(peer = %self.peer, %error, "a SIP connection failed");
            }
        };
        self.endpoint.transport_layer.add_connection(connection);
        self.wait_for_a_message(socket).await;
        self.gone.cancelled().await;
    }

    async fn connection(&self, stream: TcpStream) -> Result<SipConnection, SignallingError> {
        let local = self.address(self.entrance.contact);
        let gone = Some(self.gone.clone());
        let Some(acceptor) = &self.entrance.tls else {
            return Ok(TcpConnection::from_stream(stream, local, gone)?.into());
        };
        let silent = |_| SignallingError::Unreachable(self.peer, "no handshake".to_owned());
        let broken = |error: io::Error| SignallingError::Unreachable(self.peer, error.to_string());
        let handshake = tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream)).await;
        let stream = handshake.map_err(silent)?.map_err(broken)?;
        let peer = self.address(self.peer);
        let connection = TlsConnection::from_server_stream(stream, local, peer, gone).await?;
        Ok(connection.into())
    }

    fn address(&self, address: SocketAddr) -> SipAddr {
        transport::sip_address(self.entrance.transport(), address)
    }

    async fn wait_for_a_message(&self, socket: Socket) {
        let heard = self.gone.run_until_cancelled(self.place.is_heard()).await;
        if heard == Some(false) {
            self.place.refuse();
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}
