//! One delivery: one POST on a connection of its own, HTTP/1.1, with one deadline over everything.
//!
//! The name is resolved once, every address is judged, and the connection is made to a judged address, so nothing can change between the
//! judgement and the connection. Redirects are not followed and nothing is read beyond the first few KiB of the answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use url::{Host, Position, Url};

use super::guard::Guard;
use super::resolver::Resolve;
use crate::config::CallbacksConfig;
use crate::domain::callback::{ClaimedCallback, DeliveryResult, judge, requested_wait, sign};

/// A statuscode is looked for in so much of the answer.
const READ: usize = 8192;
/// And so much is kept for the operator.
const KEPT: usize = 500;
const HEAD: usize = 32_768;
const HEADERS: usize = 100;
/// A name may have many addresses; one that has four dead ones may be called unreachable.
const ADDRESSES: usize = 4;

/// What came of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookResponse {
    pub verdict: DeliveryResult,
    pub status: Option<u16>,
    pub error: Option<String>,
    pub answer: Option<String>,
    /// How long the receiver asked us to wait.
    pub asked: Option<SignedDuration>,
}

impl WebhookResponse {
    fn failed(verdict: DeliveryResult, error: impl Into<String>) -> Self {
        Self {
            verdict,
            status: None,
            error: Some(error.into()),
            answer: None,
            asked: None,
        }
    }
}

pub struct WebhookSender {
    tls: TlsConnector,
    guard: Guard,
    resolver: Arc<dyn Resolve>,
    limit: Duration,
    user_agent: HeaderValue,
}

impl std::fmt::Debug for WebhookSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Courier")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

impl WebhookSender {
    pub fn new(config: &CallbacksConfig, resolver: Arc<dyn Resolve>) -> anyhow::Result<Self> {
        let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        if let Some(file) = &config.ca_file {
            let unreadable = || format!("callbacks.ca_file: cannot read {}", file.display());
            for certificate in CertificateDer::pem_file_iter(file).with_context(unreadable)? {
                roots
                    .add(certificate.with_context(unreadable)?)
                    .with_context(unreadable)?;
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            tls: TlsConnector::from(Arc::new(tls)),
            guard: Guard::new(config.allowed_networks.clone()),
            resolver,
            limit: config.time_limit,
            user_agent: config.user_agent.clone(),
        })
    }

    /// Never fails: whatever happens is a reply with a verdict.
    pub async fn deliver(&self, callback: &ClaimedCallback, now: Timestamp) -> WebhookResponse {
        let deadline = Instant::now() + self.limit;
        let mut connection = JoinSet::new();
        let exchange = self.exchange(callback, now, &mut connection);
        match timeout_at(deadline, exchange).await {
            Ok(Ok(response)) => read(response, deadline, now).await,
            Ok(Err(reply)) => reply,
            Err(_) => WebhookResponse::failed(
                DeliveryResult::TimedOut,
                format!("no answer within {:?}", self.limit),
            ),
        }
    }

    async fn exchange(
        &self,
        callback: &ClaimedCallback,
        now: Timestamp,
        connection: &mut JoinSet<()>,
    ) -> Result<Response<Incoming>, WebhookResponse> {
        let unsendable =
            |error: String| WebhookResponse::failed(DeliveryResult::Unreachable, error);
        let url =
            Url::parse(callback.url.as_str()).map_err(|error| unsendable(error.to_string()))?;
        let request = self
            .request(callback, &url, now)
            .map_err(|error| unsendable(error.to_string()))?;
        let stream = self.connect(&url).await?;
        if url.scheme() != "https" {
            return send(stream, request, connection).await;
        }
        let tls_failed = |error: String| WebhookResponse::failed(DeliveryResult::TlsFailed, error);
        let name =
            ServerName::try_from(bare_host(&url)).map_err(|error| tls_failed(error.to_string()))?;
        let stream = self
            .tls
            .connect(name, stream)
            .await
            .map_err(|error| tls_failed(error.to_string()))?;
        send(stream, request, connection).await
    }

    fn request(
        &self,
        callback: &ClaimedCallback,
        url: &Url,
        now: Timestamp,
    ) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut request = Request::post(&url[Position::BeforePath..Position::AfterQuery])
            .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
            .header(CONTENT_TYPE, "text/plain")
            .header(USER_AGENT, &self.user_agent)
            .header(CONNECTION, "close")
            .header("webhook-id", &callback.webhook_id)
            .header("webhook-timestamp", now.as_second());
        if let Some(secret) = &callback.secret {
            let signature = sign(secret, &callback.webhook_id, now, &callback.body);
            request = request.header("webhook-signature", signature);
        }
        request.body(Full::from(callback.body.clone()))
    }

    async fn connect(&self, url: &Url) -> Result<TcpStream, WebhookResponse> {
        let found = self.addresses(url).await?;
        let admitted: Vec<_> = found
            .iter()
            .filter(|address| self.guard.admits(address.ip()))
            .take(ADDRESSES)
            .collect();
        if let (Some(refused), true) = (found.first(), admitted.is_empty()) {
            let error = format!(
                "{} is neither public nor in callbacks.allowed_networks",
                refused.ip()
            );
            return Err(WebhookResponse::failed(DeliveryResult::Blocked, error));
        }
        let mut problem = "the name has no address".to_owned();
        // One that swallows everything must leave time for the others.
        let limit = self.limit / u32::try_from(admitted.len().max(1)).unwrap_or(1);
        for address in admitted {
            problem = match timeout(limit, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Only costs a little time if it fails.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no connection in time".to_owned(),
            };
        }
        Err(WebhookResponse::failed(
            DeliveryResult::Unreachable,
            problem,
        ))
    }

    /// The url crate reads every spelling of an address (decimal, octal, hexadecimal) as the address that it is.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, WebhookResponse> {
        let port = url.port_or_known_default().unwrap_or(80);
        match url.host() {
            Some(Host::Ipv4(address)) => Ok(vec![(address, port).into()]),
            Some(Host::Ipv6(address)) => Ok(vec![(address, port).into()]),
            Some(Host::Domain(name)) => {
                let unknown = |error: std::io::Error| {
                    WebhookResponse::failed(DeliveryResult::Unreachable, error.to_string())
                };
                self.resolver.resolve(name, port).await.map_err(unknown)
            }
            None => Err(WebhookResponse::failed(
                DeliveryResult::Unreachable,
                "the URL names no host",
            )),
        }
    }
}

/// A host as certificates name it: IPv6 addresses without their brackets.
fn bare_host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned()
}

/// The connection's own task ends with `connection`, whatever the receiver is still sending.
async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    connection: &mut JoinSet<()>,
) -> Result<Response<Incoming>, WebhookResponse> {
    let broken =
        |error: hyper::Error| WebhookResponse::failed(DeliveryResult::Broken, error.to_string());
    let (mut sender, driver) = http1::Builder::new()
        .max_buf_size(HEAD)
        .max_headers(HEADERS)
        // Only the status matters to us, so a careless head is forgiven.
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    connection.spawn(async {
        // What goes wrong here, the sender is told as well.
        let _ = driver.await;
    });
    sender.send_request(request).await.map_err(broken)
}

/// The status is the receiver's word. A body that drips, breaks off or never ends takes nothing back from it: what has been read counts.
async fn read(response: Response<Incoming>, deadline: Instant, now: Timestamp) -> WebhookResponse {
    let status = response.status().as_u16();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let asked = requested_wait(status, retry_after, now);
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while bytes.len() < READ {
        let Ok(Some(Ok(frame))) = timeout_at(deadline, body.frame()).await else {
            break;
        };
        if let Some(data) = frame.data_ref() {
            bytes.extend_from_slice(&data[..data.len().min(READ - bytes.len())]);
        }
    }
    let (verdict, error) = judge(status, &String::from_utf8_lossy(&bytes));
    WebhookResponse {
        verdict,
        status: Some(status),
        error,
        answer: Some(kept(&bytes)).filter(|text| !text.is_empty()),
        asked,
    }
}

/// The first bytes as text that every database takes and no terminal obeys.
fn kept(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(KEPT)]);
    let harmless = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars()
        .map(|c| {
            if harmless(c) {
                c
            } else {
                char::REPLACEMENT_CHARACTER
            }
        })
        .collect()
}
