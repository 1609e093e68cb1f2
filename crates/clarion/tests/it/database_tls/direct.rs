//! TLS without asking for it first.

use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;

use super::{Expected, authority, issued, judge, named, reach};
use crate::support::cluster::write_private;
use crate::support::postgres;

/// A server that begins with TLS, without being asked for it first.
#[tokio::test]
async fn tls_begins_at_once_where_that_is_agreed() {
    let ours = authority("ours");
    let (certificate, key) = issued(&named("db", &["localhost"]), &ours);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("ours.pem");
    write_private(&root, &ours.pem());
    let mut direct = url::Url::parse(&postgres::empty_database().await).unwrap();
    let upstream = format!("127.0.0.1:{}", direct.port().unwrap());
    let front = direct_front(&certificate, &key, upstream, b"postgresql").await;
    let other = direct_front(&certificate, &key, String::new(), b"http/1.1").await;
    let query = format!(
        "sslmode=verify-full&sslnegotiation=direct&sslrootcert={}",
        root.display()
    );
    direct.set_host(Some("localhost")).unwrap();
    direct.set_query(Some(&query));
    direct.set_port(Some(front)).unwrap();
    judge(
        "PostgreSQL",
        &reach(direct.as_str()).await,
        Expected::Verified,
    );
    direct.set_port(Some(other)).unwrap();
    let reached = reach(direct.as_str()).await;
    judge("something else", &reached, Expected::Refused("TLS"));
}

/// Speaks TLS at its port, and hands on what is inside.
async fn direct_front(certificate: &str, key: &str, upstream: String, protocol: &[u8]) -> u16 {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    let acceptor = TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let (acceptor, upstream) = (acceptor.clone(), upstream.clone());
            tokio::spawn(async move {
                let Ok(mut client) = acceptor.accept(client).await else {
                    return;
                };
                let mut server = tokio::net::TcpStream::connect(upstream).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                let _ = client.shutdown().await;
            });
        }
    });
    port
}
