//! The one HTTP client for requests that this server sends: callbacks and speech. It sends one request per connection, over HTTP/1.1, with
//! TLS if the URL says so, and with one deadline over everything.
//!
//! The client resolves the name once, judges every address by the policy and connects to a judged address, so nothing can change between
//! the judgement and the connection. It follows no redirects, and reads no more than the caller asks for.

pub mod address_policy;
mod patience;
pub mod resolver;

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use url::{Host, Position, Url};

use self::address_policy::AddressPolicy;
use self::patience::{Allowance, Patient};
use self::resolver::Resolve;

const HEAD_BYTES: usize = 32_768;
const HEADERS: usize = 100;
/// What a receiver may send until its answer is there, provisional answers included.
const BEFORE_THE_ANSWER: usize = 4 * HEAD_BYTES;
/// A name may have many addresses. A name with four dead ones counts as unreachable.
const ADDRESSES: usize = 4;

/// The reason why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The policy does not admit any address of the host.
    #[error("{0}")]
    Blocked(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    TlsFailed(String),
    /// The response is not HTTP, or breaks off.
    #[error("{0}")]
    Broken(String),
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

/// One deadline over everything that a request needs.
#[derive(Debug, Clone, Copy)]
pub struct RequestDeadline {
    time: Duration,
    deadline: Instant,
}

impl RequestDeadline {
    pub fn new(time: Duration) -> Self {
        Self {
            time,
            deadline: Instant::now() + time,
        }
    }
}

/// Where a URL leads: to addresses that were judged and admitted, at least one.
#[derive(Debug)]
pub struct Destination {
    url: Url,
    addresses: Vec<SocketAddr>,
    /// The lowest of all admitted addresses: the same one in whatever order they were told.
    pub address: IpAddr,
}

impl Destination {
    async fn connect(&self, time: Duration) -> Result<TcpStream, SendError> {
        let mut problem = String::new();
        // An address that never answers must leave time for the others.
        let limit = time / u32::try_from(self.addresses.len().max(1)).unwrap_or(1);
        for address in &self.addresses {
            problem = match timeout(limit, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // A failure here only costs a little time.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no connection in time".to_owned(),
            };
        }
        Err(SendError::Unreachable(problem))
    }
}

pub struct HttpClient {
    tls: TlsConnector,
    policy: AddressPolicy,
    resolver: Arc<dyn Resolve>,
    user_agent: HeaderValue,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClient")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl HttpClient {
    pub fn new(
        roots: RootCertStore,
        policy: AddressPolicy,
        resolver: Arc<dyn Resolve>,
        user_agent: HeaderValue,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            tls: tls_connector(roots)?,
            policy,
            resolver,
            user_agent,
        })
    }

    /// POSTs a body. Returns the response or an error within `time`, whatever hangs. Reading the response's body counts against the same
    /// time.
    pub async fn post(
        &self,
        whose: &str,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
        time: Duration,
    ) -> Result<HttpResponse, SendError> {
        let limit = RequestDeadline::new(time);
        let destination = self.find(whose, url, limit).await?;
        self.post_to(&destination, headers, body, limit).await
    }

    /// Resolves the name of a URL, once, and judges its addresses.
    pub async fn find(
        &self,
        whose: &str,
        url: &str,
        limit: RequestDeadline,
    ) -> Result<Destination, SendError> {
        let url = Url::parse(url).map_err(|error| SendError::Unreachable(error.to_string()))?;
        let found = timeout_at(limit.deadline, self.addresses(whose, &url)).await;
        let found = found.map_err(|_| SendError::TimedOut(limit.time))??;
        let is_admitted = |address: &&SocketAddr| self.policy.admits(address.ip());
        let admitted: Vec<_> = found.iter().filter(is_admitted).copied().collect();
        match (found.first(), admitted.iter().map(SocketAddr::ip).min()) {
            (None, _) => Err(SendError::Unreachable("the name has no address".to_owned())),
            (Some(refused), None) => Err(SendError::Blocked(refused.ip().to_string())),
            (Some(_), Some(address)) => Ok(Destination {
                url,
                addresses: admitted.into_iter().take(ADDRESSES).collect(),
                address,
            }),
        }
    }

    /// POSTs a body to a destination that was found.
    pub async fn post_to(
        &self,
        destination: &Destination,
        headers: HeaderMap,
        body: Bytes,
        limit: RequestDeadline,
    ) -> Result<HttpResponse, SendError> {
        let RequestDeadline { time, deadline } = limit;
        let mut connection = JoinSet::new();
        let exchange = self.exchange(destination, headers, body, time, &mut connection);
        let response = timeout_at(deadline, exchange).await;
        let response = response.map_err(|_| SendError::TimedOut(time))??;
        let (head, body) = response.into_parts();
        Ok(HttpResponse {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            time,
            deadline,
            _connection: connection,
        })
    }

    async fn exchange(
        &self,
        destination: &Destination,
        headers: HeaderMap,
        body: Bytes,
        time: Duration,
        connection: &mut JoinSet<()>,
    ) -> Result<Response<Incoming>, SendError> {
        let url = &destination.url;
        let mut request = Request::post(&url[Position::BeforePath..Position::AfterQuery])
            .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
            .header(USER_AGENT, &self.user_agent)
            .header(CONNECTION, "close")
            .body(Full::new(body))
            .map_err(|error| SendError::Unreachable(error.to_string()))?;
        request.headers_mut().extend(headers);
        let stream = destination.connect(time).await?;
        if url.scheme() != "https" {
            return send(stream, request, connection).await;
        }
        let tls_failed = |error: String| SendError::TlsFailed(error);
        let name =
            ServerName::try_from(bare_host(url)).map_err(|error| tls_failed(error.to_string()))?;
        let stream = self.tls.connect(name, stream).await;
        let stream = stream.map_err(|error| tls_failed(error.to_string()))?;
        send(stream, request, connection).await
    }

    /// Returns the addresses of a URL's host. The url crate understands every spelling of an address (decimal, octal, hexadecimal).
    async fn addresses(&self, whose: &str, url: &Url) -> Result<Vec<SocketAddr>, SendError> {
        let port = url.port_or_known_default().unwrap_or(80);
        match url.host() {
            Some(Host::Ipv4(address)) => Ok(vec![(address, port).into()]),
            Some(Host::Ipv6(address)) => Ok(vec![(address, port).into()]),
            Some(Host::Domain(name)) => {
                let found = self.resolver.resolve(whose, name, port).await;
                found.map_err(|error| SendError::Unreachable(error.to_string()))
            }
            None => Err(SendError::Unreachable("the URL names no host".to_owned())),
        }
    }
}

/// A response whose body is still to be read. Dropping it ends its connection, whatever the peer is still sending.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: HeaderMap,
    body: Incoming,
    time: Duration,
    deadline: Instant,
    _connection: JoinSet<()>,
}

impl HttpResponse {
    /// Returns the beginning of the body, as far as it arrives. A body that is slow, breaks off or never ends does not change the status.
    pub async fn read_beginning(mut self, limit: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < limit {
            let Ok(Some(Ok(frame))) = timeout_at(self.deadline, self.body.frame()).await else {
                break;
            };
            if let Some(data) = frame.data_ref() {
                bytes.extend_from_slice(&data[..data.len().min(limit - bytes.len())]);
            }
        }
        bytes
    }

    /// Returns the whole body if it is no longer than the limit. A longer body is not read to its end.
    pub async fn read_whole(mut self, limit: usize) -> Result<Vec<u8>, SendError> {
        let mut bytes = Vec::new();
        loop {
            let frame = timeout_at(self.deadline, self.body.frame()).await;
            let frame = match frame.map_err(|_| SendError::TimedOut(self.time))? {
                None => return Ok(bytes),
                Some(frame) => frame.map_err(|error| SendError::Broken(error.to_string()))?,
            };
            if let Some(data) = frame.data_ref() {
                if bytes.len() + data.len() > limit {
                    return Err(SendError::TooLong(limit));
                }
                bytes.extend_from_slice(data);
            }
        }
    }
}

/// Returns the public authorities, and those in a file of the operator.
pub fn trusted_roots(own: Option<&Path>) -> anyhow::Result<RootCertStore> {
    let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    if let Some(file) = own {
        add_roots(&mut roots, file)?;
    }
    Ok(roots)
}

/// Adds every certificate of a PEM file.
pub fn add_roots(roots: &mut RootCertStore, file: &Path) -> anyhow::Result<()> {
    let unreadable = || format!("cannot read {}", file.display());
    for certificate in CertificateDer::pem_file_iter(file).with_context(unreadable)? {
        let certificate = certificate.with_context(unreadable)?;
        roots.add(certificate).with_context(unreadable)?;
    }
    Ok(())
}

/// Returns TLS for an HTTP/1.1 client that trusts these authorities.
pub fn tls_connector(roots: RootCertStore) -> anyhow::Result<TlsConnector> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(tls)))
}

/// Returns a host as certificates name it: an IPv6 address without its brackets.
fn bare_host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned()
}

/// Sends a request. The task that drives the connection ends with `connection`.
async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    connection: &mut JoinSet<()>,
) -> Result<Response<Incoming>, SendError> {
    let broken = |error: hyper::Error| SendError::Broken(said(&error));
    let allowance = Allowance::of(BEFORE_THE_ANSWER);
    let (mut sender, driver) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        // Careless headers are accepted, because many people write receivers.
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .handshake(TokioIo::new(Patient::new(stream, allowance.clone())))
        .await
        .map_err(broken)?;
    connection.spawn(async {
        // The sender gets the same error.
        let _ = driver.await;
    });
    let answer = sender.send_request(request).await.map_err(broken)?;
    allowance.lift();
    Ok(answer)
}

/// The error with its cause, which hyper leaves out.
fn said(error: &hyper::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
