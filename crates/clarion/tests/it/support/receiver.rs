//! A receiver of callbacks: a real server that notes its requests, and answers in the manner that a test wants.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::eventually;

/// The manner in which a request is answered.
#[derive(Debug, Clone)]
pub enum Manner {
    /// Sends these bytes and closes the connection.
    Say(String),
    /// Sends nothing and keeps the connection open.
    Hang,
    Reset,
    /// Sends these bytes, and then this byte every few milliseconds, for ever.
    Drip(String, u8),
    /// Sends this head, and then bytes without end.
    Flood(String),
    /// Sends these bytes again and again.
    Repeat(String),
}

pub fn answer(status: u16, headers: &str, body: &str) -> Manner {
    let length = body.len();
    Manner::Say(format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    ))
}

pub fn ok() -> Manner {
    answer(
        200,
        "",
        "<Response><statuscode>000000</statuscode></Response>",
    )
}

#[derive(Debug, Clone)]
pub struct Received {
    pub head: String,
    pub body: String,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }
}

pub struct Receiver {
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    connections: Arc<Mutex<usize>>,
    /// The file with its own certificate, if it uses TLS.
    pub certificate: Option<PathBuf>,
    _serving: JoinSet<()>,
}

impl Receiver {
    /// Starts a receiver. The first request is answered in the first manner, and so on. The last manner stays.
    pub async fn start(manners: Vec<Manner>) -> Self {
        Self::serve(manners, None).await
    }

    /// Starts a receiver with a self-signed certificate for localhost, which is written into `folder`.
    pub async fn start_tls(manners: Vec<Manner>, folder: &Path) -> Self {
        let key = KeyPair::generate().unwrap();
        let names = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = names.self_signed(&key).unwrap();
        let file = folder.join("receiver.pem");
        std::fs::write(&file, certificate.pem()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let tls = TlsAcceptor::from(Arc::new(config));
        let mut receiver = Self::serve(manners, Some(tls)).await;
        receiver.certificate = Some(file);
        receiver
    }

    /// Starts a receiver where another one was.
    pub async fn start_at(address: SocketAddr, manners: Vec<Manner>) -> Self {
        let listener = async || TcpListener::bind(address).await.ok();
        let mut bound = None;
        eventually("the address is free", async || {
            bound = listener().await;
            bound.is_some()
        })
        .await;
        Self::serve_on(bound.unwrap(), manners, None)
    }

    async fn serve(manners: Vec<Manner>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::serve_on(listener, manners, tls)
    }

    fn serve_on(listener: TcpListener, manners: Vec<Manner>, tls: Option<TlsAcceptor>) -> Self {
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let mut serving = JoinSet::new();
        serving.spawn({
            let (received, connections) = (Arc::clone(&received), Arc::clone(&connections));
            async move {
                let mut open = JoinSet::new();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    *connections.lock().unwrap() += 1;
                    let (manners, received) = (manners.clone(), Arc::clone(&received));
                    open.spawn(accept(stream, tls.clone(), manners, received));
                }
            }
        });
        Self {
            address,
            received,
            connections,
            certificate: None,
            _serving: serving,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/cb?a=1&token=secret", self.address)
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }

    pub async fn has_received(&self, count: usize) -> Vec<Received> {
        let what = format!("{count} callbacks received");
        eventually(&what, async || self.received().len() >= count).await;
        self.received()
    }
}

async fn accept(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    manners: Vec<Manner>,
    received: Arc<Mutex<Vec<Received>>>,
) {
    match tls {
        None => {
            let stream = converse(stream, &manners, &received).await;
            if let Some((stream, Manner::Reset)) = stream {
                stream.set_zero_linger().unwrap();
            }
        }
        Some(tls) => {
            // A client that does not trust the certificate has gone already.
            if let Ok(stream) = tls.accept(stream).await {
                converse(stream, &manners, &received).await;
            }
        }
    }
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    manners: &[Manner],
    received: &Mutex<Vec<Received>>,
) -> Option<(S, Manner)> {
    let request = read_request(&mut stream).await?;
    let place = {
        let mut received = received.lock().unwrap();
        received.push(request);
        received.len() - 1
    };
    let manner = manners[place.min(manners.len() - 1)].clone();
    // A client may go away at any moment.
    match &manner {
        Manner::Say(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Manner::Hang => std::future::pending().await,
        Manner::Reset => {}
        Manner::Drip(text, byte) => {
            let _ = stream.write_all(text.as_bytes()).await;
            while stream.write_all(&[*byte]).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        Manner::Repeat(text) => while stream.write_all(text.as_bytes()).await.is_ok() {},
        Manner::Flood(head) => {
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(&[b'x'; 16_384]).await.is_ok() {}
        }
    }
    Some((stream, manner))
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let request = Received {
            head: head.to_owned(),
            body: body.to_owned(),
        };
        // A GET has no body.
        let length: usize = request
            .header("content-length")
            .unwrap_or("0")
            .parse()
            .ok()?;
        if body.len() >= length {
            return Some(request);
        }
    }
}
