//! Connections: accepting them, TLS, limits on slow and greedy clients, and an orderly stop. `api` handles the requests.

mod activity;
mod client_address;
mod places;
mod plain_http;
pub mod tls;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use ipnet::IpNet;
use metrics::Gauge;
use supervisor::Watch;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tower::{Layer, ServiceExt};
use tower_http::normalize_path::{NormalizePath, NormalizePathLayer};

use self::activity::Activity;
use self::places::{ClientPlace, ClientPlaces};
use crate::api::{Arrival, KnownClient, PeerAddress};
use crate::config::HttpConfig;
use crate::seldom::Seldom;

pub use self::client_address::client_address;

/// Time that a client has for the TLS handshake, or `head_seconds` if that is less.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Connections of a listener that wait for a place. More wait with the operating system.
const WAITING: usize = 64;
/// Streams that one HTTP/2 connection may have open.
const STREAMS: u32 = 100;
const HTTP2_PING: Duration = Duration::from_secs(20);

/// What a listener has waited for.
enum Next {
    Arrived(std::io::Result<(TcpStream, SocketAddr)>),
    /// For the connection that has waited longest. `None`: its address has its part.
    Place(Option<ClientPlace>),
}

/// Everything that connections need, shared by all of them.
#[expect(missing_debug_implementations, reason = "the TLS acceptor has none")]
pub struct Front {
    app: NormalizePath<Router>,
    tls: Option<TlsAcceptor>,
    protocol: auto::Builder<TokioExecutor>,
    places: Arc<ClientPlaces>,
    head_time: Duration,
    trusted_proxies: Vec<IpNet>,
    stop_time: Duration,
}

impl Front {
    pub fn new(app: Router, tls: Option<TlsAcceptor>, config: &HttpConfig) -> Self {
        let head_time = config.head_time;
        let mut protocol = auto::Builder::new(TokioExecutor::new());
        protocol
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(head_time)
            .max_headers(config.max_headers)
            .max_buf_size((config.max_header_bytes as usize).max(8192));
        protocol
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(config.max_header_bytes)
            .keep_alive_interval(HTTP2_PING)
            .keep_alive_timeout(HTTP2_PING);
        Self {
            app: NormalizePathLayer::trim_trailing_slash().layer(app),
            tls,
            protocol,
            places: ClientPlaces::new(config),
            head_time,
            trusted_proxies: config.trusted_proxies.clone(),
            stop_time: config.stop_time,
        }
    }

    /// Serves one listening address until `stop` becomes true, then finishes the requests that have begun.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        watch: Watch,
        mut stop: watch::Receiver<bool>,
    ) {
        static FAILURES: Seldom = Seldom::new();
        let graceful = GracefulShutdown::new();
        // Where all places are in use, new connections wait here, and then in the operating system's queue. A place is taken only after a connection is
        // accepted, so a listener without connections takes none from the other listeners.
        let mut waiting: VecDeque<(TcpStream, SocketAddr)> = VecDeque::new();
        loop {
            watch.heartbeat();
            let first = waiting.front().map(|(_, peer)| peer.ip());
            let next = tokio::select! {
                accepted = listener.accept(), if waiting.len() < WAITING => Next::Arrived(accepted),
                place = self.place_for(first) => Next::Place(place),
                _ = stop.wait_for(|stop| *stop) => break,
            };
            match next {
                Next::Arrived(Ok((stream, peer))) => match self.places.take_to_watch(peer.ip()) {
                    Some(place) => self.begin(stream, peer, place, graceful.watcher()),
                    None => waiting.push_back((stream, peer)),
                },
                Next::Arrived(Err(error)) => {
                    // The file descriptors are probably used up: give the other connections time to finish.
                    if let Some(unsaid) = FAILURES.say() {
                        tracing::warn!(%error, unsaid, "a connection could not be accepted");
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Next::Place(place) => {
                    let Some((stream, peer)) = waiting.pop_front() else {
                        continue;
                    };
                    if let Some(place) = place {
                        self.begin(stream, peer, place, graceful.watcher());
                    } else {
                        tracing::debug!(%peer, "the address has its share of connections");
                    }
                }
            }
        }
        drop(waiting);
        drop(listener);
        if tokio::time::timeout(self.stop_time, graceful.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("some requests did not finish within http.stop_seconds and are cut off");
        }
    }

    /// A place for the connection that has waited longest, if any waits.
    async fn place_for(&self, first: Option<IpAddr>) -> Option<ClientPlace> {
        match first {
            Some(address) => self.places.take(address).await,
            None => std::future::pending().await,
        }
    }

    /// Serves a connection in a task of its own, as long as it has its place.
    fn begin(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        place: ClientPlace,
        watcher: Watcher,
    ) {
        let front = Arc::clone(self);
        tokio::spawn(async move {
            let _counted = CountedConnection::new();
            let known = place.known.clone();
            tokio::select! {
                () = front.connection(stream, peer, known, watcher) => {}
                () = place.given_away() => tracing::debug!(%peer, "a connection of a stranger gives way"),
            }
        });
    }

    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        known: KnownClient,
        watcher: Watcher,
    ) {
        let _ = stream.set_nodelay(true);
        let Ok(local) = stream.local_addr() else {
            return;
        };
        let client = Client { peer, local, known };
        let Some(tls) = &self.tls else {
            return self.requests(stream, client, watcher).await;
        };
        let time = HANDSHAKE.min(self.head_time);
        let handshake = async {
            if plain_http::is_spoken(&stream).await {
                plain_http::refuse(stream).await;
                return None;
            }
            Some(tls.accept(stream).await)
        };
        match tokio::time::timeout(time, handshake).await {
            Ok(Some(Ok(stream))) => {
                Arc::clone(&self).requests(stream, client, watcher).await;
            }
            Ok(Some(Err(error))) => tracing::debug!(%peer, %error, "TLS handshake failed"),
            Ok(None) => tracing::debug!(%peer, "plain HTTP where TLS is spoken"),
            Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
        }
    }

    async fn requests<S>(self: Arc<Self>, stream: S, client: Client, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (activity, peer) = (Activity::begin(), client.peer);
        let (front, noted) = (Arc::clone(&self), Arc::clone(&activity));
        let service = service_fn(move |request| {
            let (front, activity) = (Arc::clone(&front), Arc::clone(&noted));
            let client = client.clone();
            async move {
                let _under_way = activity.request();
                let answer = front.request(request, client).await;
                answer.map(|answer| answer.map(|body| activity.answer(body)))
            }
        });
        let connection = self
            .protocol
            .serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            ended = watcher.watch(connection) => {
                if let Err(error) = ended {
                    tracing::debug!(%peer, %error, "a connection ended badly");
                }
            }
            () = activity.silence(self.head_time) => tracing::debug!(%peer, "a silent connection is closed"),
        }
    }

    async fn request(
        self: Arc<Self>,
        request: hyper::Request<Incoming>,
        client: Client,
    ) -> Result<Response, Infallible> {
        let mut request: Request = request.map(Body::new);
        let (peer, trusted) = (client.peer.ip().to_canonical(), &self.trusted_proxies);
        let from = client_address(peer, request.headers(), trusted);
        let arrival = Arrival {
            local: client.local,
            is_tls: self.tls.is_some(),
            by_proxy: trusted.iter().any(|network| network.contains(&peer)),
        };
        let extensions = request.extensions_mut();
        extensions.insert(PeerAddress(from));
        extensions.insert(arrival);
        extensions.insert(client.known);
        self.app.clone().oneshot(request).await
    }
}

/// A connection is counted until this is dropped, also by a panic.
struct CountedConnection(Gauge);

impl CountedConnection {
    fn new() -> Self {
        let gauge = metrics::gauge!("clarion_http_connections");
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

/// The other end of a connection, and ours.
#[derive(Debug, Clone)]
struct Client {
    peer: SocketAddr,
    local: SocketAddr,
    known: KnownClient,
}
