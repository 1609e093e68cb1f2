//! TLS below a session: the driver asks the server for it and hands the socket over.

mod binding;
mod files;
mod names;
mod verifier;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use self::names::Verification;
use super::socket::Socket;
use crate::config::{PostgresAddress, PostgresHost, SslNegotiation};

/// The protocol's name within TLS, for servers that are spoken to without asking for TLS first.
const ALPN: &[u8] = b"postgresql";

/// What one connection needs for its TLS. The files are read anew each time, so that a renewed certificate is used.
pub(super) struct Handshake {
    /// `None`: TLS is not wanted, and the driver does not ask.
    config: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    verifies: bool,
    is_direct: bool,
    agreed: Arc<OnceLock<String>>,
}

impl Handshake {
    pub async fn prepare(
        address: &PostgresAddress,
        host: &PostgresHost,
        wanted: bool,
    ) -> Result<Self, String> {
        let mut handshake = Self {
            config: None,
            verifies: false,
            is_direct: address.tls.negotiation == SslNegotiation::Direct,
            agreed: Arc::default(),
        };
        if wanted {
            let tls = address.tls.clone();
            let loaded = tokio::task::spawn_blocking(move || files::load(&tls));
            let (mut config, verification) = loaded.await.map_err(|error| error.to_string())??;
            if handshake.is_direct {
                config.alpn_protocols = vec![ALPN.to_vec()];
            }
            handshake.verifies = verification != Verification::None;
            let name = names::server_name(host, verification)?;
            handshake.config = Some((Arc::new(config), name));
        }
        Ok(handshake)
    }

    /// Whether a server is refused that does not prove who it is.
    pub fn verifies(&self) -> bool {
        self.verifies
    }

    /// The version of TLS, once there is one.
    pub fn agreed(&self) -> Arc<OnceLock<String>> {
        Arc::clone(&self.agreed)
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = EncryptedSocket;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedSocket>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let (config, name) = self
                .config
                .ok_or_else(|| io::Error::other("TLS was not prepared"))?;
            let stream = TlsConnector::from(config).connect(name, socket).await?;
            let (_, session) = stream.get_ref();
            // Whoever answers without that name does not mean PostgreSQL.
            if self.is_direct && session.alpn_protocol() != Some(ALPN) {
                return Err(io::Error::other(
                    "the server does not speak PostgreSQL directly in TLS",
                ));
            }
            let version = session
                .protocol_version()
                .and_then(|version| version.as_str());
            let _ = self.agreed.set(version.unwrap_or("TLS").replace('_', "."));
            Ok(EncryptedSocket(stream))
        })
    }
}

pub(super) struct EncryptedSocket(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for EncryptedSocket {
    /// So that a password that is proven here cannot be proven on by somebody in between (SCRAM-SHA-256-PLUS).
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.0.get_ref().1.peer_certificates();
        let digest = certificates
            .and_then(|chain| chain.first())
            .and_then(binding::server_end_point);
        digest.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for EncryptedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for EncryptedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
