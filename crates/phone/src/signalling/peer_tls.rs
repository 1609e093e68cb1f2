//! TLS to trunks: each peer has to prove the name of the host that we meant. A trunk may have several hosts, each with a name of its own.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{SignallingError, TlsFiles};

/// So many names are remembered at most. Trunks tell theirs time and again.
const MAX_NAMES: usize = 1000;

pub(super) struct PeerTls {
    connector: TlsConnector,
    /// The name of a peer of which no other is known.
    usual_name: Option<String>,
    names: Mutex<HashMap<SocketAddr, String>>,
}

impl PeerTls {
    pub fn new(files: &TlsFiles) -> Result<Self, SignallingError> {
        Ok(Self {
            connector: TlsConnector::from(Arc::new(client_config(files)?)),
            usual_name: files.peer_name.clone(),
            names: Mutex::default(),
        })
    }

    /// From now on the certificate of this peer must be for this name.
    pub fn expect(&self, peer: SocketAddr, name: &str) {
        let mut names = self.names();
        if names.len() >= MAX_NAMES && !names.contains_key(&peer) {
            names.clear();
        }
        names.insert(peer, name.to_owned());
    }

    pub async fn connect(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(self.name_of(peer));
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.connector.connect(name, stream).await
    }

    /// A host that is known by its address alone proves the name of the trunk, where that has one.
    fn name_of(&self, peer: SocketAddr) -> String {
        let known = self.names().get(&peer).cloned();
        let is_name = |name: &String| name.parse::<IpAddr>().is_err();
        known
            .or_else(|| self.usual_name.clone().filter(is_name))
            .unwrap_or_else(|| peer.ip().to_string())
    }

    fn names(&self) -> MutexGuard<'_, HashMap<SocketAddr, String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn client_config(files: &TlsFiles) -> Result<ClientConfig, SignallingError> {
    let wrong = |what: &str, error: String| SignallingError::Library(format!("{what}: {error}"));
    let certificates = |pem: &[u8], what: &str| {
        let read = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        read.map_err(|error| wrong(what, error.to_string()))
    };
    let mut authorities = RootCertStore::empty();
    authorities.add_parsable_certificates(certificates(&files.authorities, "the authorities")?);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| wrong("TLS", error.to_string()))?;
    let config = config.with_root_certificates(authorities);
    let Some((certificate, key)) = &files.own else {
        return Ok(config.with_no_client_auth());
    };
    let ours = "our certificate";
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| wrong(ours, error.to_string()))?;
    let config = config.with_client_auth_cert(certificates(certificate, ours)?, key);
    config.map_err(|error| wrong(ours, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_peer_is_known_by_its_own_name_or_that_of_the_trunk_or_its_address() {
        let named = |name: &str| {
            let files = TlsFiles {
                peer_name: Some(name.to_owned()),
                ..TlsFiles::default()
            };
            PeerTls::new(&files).unwrap()
        };
        let tls = named("one.example");
        let (one, two) = (peer("192.0.2.1:5061"), peer("192.0.2.2:5061"));
        tls.expect(two, "two.example");
        assert_eq!(tls.name_of(one), "one.example");
        assert_eq!(tls.name_of(two), "two.example");
        let tls = named("192.0.2.1");
        assert_eq!(tls.name_of(one), "192.0.2.1");
        assert_eq!(tls.name_of(two), "192.0.2.2");
    }
}
