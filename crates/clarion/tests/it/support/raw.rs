//! Sends and reads raw bytes, for requests that no decent client sends.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{PATIENCE, TestServer};

/// The address of a server and its CA file, whether it runs in this process or in one of its own.
#[derive(Debug, Clone)]
pub struct Door {
    pub address: SocketAddr,
    pub ca: PathBuf,
}

impl Door {
    /// Opens a TLS connection and verifies the certificate with the server's CA file.
    pub async fn tls(&self, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        self.tls_over(stream, protocols).await
    }

    /// The same over a connection that is there.
    pub async fn tls_over(&self, stream: TcpStream, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(&self.ca).unwrap())
            .unwrap();
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap()
    }

    /// Sends bytes as they are and reads one whole HTTP/1.1 answer, or the part that came before the connection closed.
    pub async fn send_raw(&self, request: &[u8]) -> String {
        let mut stream = self.tls(&[]).await;
        // A server may close the connection while we are still writing.
        let _ = stream.write_all(request).await;
        let _ = stream.flush().await;
        read_answer(&mut stream).await
    }

    /// Asks some times on one connection. Returns the last answer, and the shortest time that one has taken.
    pub async fn shortest_answer(&self, request: &str) -> (String, Duration) {
        let mut stream = self.tls(&[]).await;
        let (mut answer, mut shortest) = (String::new(), Duration::MAX);
        for _ in 0..5 {
            let sent = Instant::now();
            stream.write_all(request.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            answer = read_answer(&mut stream).await;
            shortest = shortest.min(sent.elapsed());
        }
        (answer, shortest)
    }
}

impl TestServer {
    pub fn door(&self) -> Door {
        Door {
            address: self.address,
            ca: self.ca.clone(),
        }
    }

    pub async fn send_raw(&self, request: &[u8]) -> String {
        self.door().send_raw(request).await
    }
}

/// Waits until the server closes the connection, and returns everything that it sent before.
pub async fn read_to_close(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut answer = Vec::new();
    let read = async {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            answer.extend_from_slice(&chunk[..count]);
        }
    };
    tokio::time::timeout(PATIENCE, read)
        .await
        .expect("a closed connection");
    String::from_utf8_lossy(&answer).into_owned()
}

pub async fn read_answer(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut answer = Vec::new();
    let read = async {
        let mut chunk = [0; 4096];
        while !is_whole(&answer) {
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => break,
                Ok(count) => answer.extend_from_slice(&chunk[..count]),
            }
        }
    };
    tokio::time::timeout(PATIENCE, read)
        .await
        .expect("an answer or a closed connection");
    String::from_utf8_lossy(&answer).into_owned()
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok());
    length.is_none_or(|length| body.len() >= length)
}
