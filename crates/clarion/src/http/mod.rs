//! Connections: accepting them, TLS, limits on slow and greedy clients, and an orderly stop. `api` handles the requests.

mod activity;
mod places;
mod plain_http;
pub mod tls;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use ipnet::IpNet;
use supervisor::Watch;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tower::{Layer, ServiceExt};
use tower_http::normalize_path::{NormalizePath, NormalizePathLayer};

use self::activity::Activity;
use self::places::ClientPlaces;
use crate::api::{Arrival, KnownClient, PeerAddress};
use crate::config::HttpConfig;

/// Time that a client has for the TLS handshake, or `head_seconds` if that is less.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Streams that one HTTP/2 connection may have open.
const STREAMS: u32 = 100;
const HTTP2_PING: Duration = Duration::from_secs(20);

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
            places: ClientPlaces::new(
                config.max_connections,
                config.max_connections_of_address,
                config.trusted_proxies.clone(),
            ),
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
        let graceful = GracefulShutdown::new();
        loop {
            watch.beat();
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            let (stream, peer) = match accepted {
                Ok(connection) => connection,
                Err(error) => {
                    // The file descriptors are probably used up: give the other connections time to finish.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            // Where all places are in use, one connection waits here, and the others wait in the operating system's queue. A place is taken
            // only after a connection is accepted, so a listener without connections takes none from the other listeners.
            let place = tokio::select! {
                place = self.places.take(peer.ip()) => place,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            let Some(place) = place else {
                tracing::debug!(%peer, "the address has its share of connections");
                continue;
            };
            let (front, watcher) = (Arc::clone(&self), graceful.watcher());
            tokio::spawn(async move {
                metrics::gauge!("clarion_http_connections").increment(1);
                let known = place.known.clone();
                tokio::select! {
                    () = front.connection(stream, peer, known, watcher) => {}
                    () = place.given_away() => tracing::debug!(%peer, "a connection of a stranger gives way"),
                }
                metrics::gauge!("clarion_http_connections").decrement(1);
            });
        }
        drop(listener);
        if tokio::time::timeout(self.stop_time, graceful.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("some requests did not finish within http.stop_seconds and are cut off");
        }
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

/// The other end of a connection, and ours.
#[derive(Debug, Clone)]
struct Client {
    peer: SocketAddr,
    local: SocketAddr,
    known: KnownClient,
}

/// Returns the client's own address. Only proxies that the operator has named are trusted: then it is the last address in X-Forwarded-For
/// that is not itself such a proxy.
fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    let peer = peer.to_canonical();
    if !is_trusted(&peer) {
        return peer;
    }
    headers
        .get_all("x-forwarded-for")
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .rev()
        // Entries to the left of an unreadable one were not written by a trusted proxy.
        .map_while(address)
        .find(|address| !is_trusted(address))
        .unwrap_or(peer)
}

/// Reads one entry of X-Forwarded-For. Some proxies add the port.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let entry = std::str::from_utf8(entry).ok()?.trim();
    let with_port = || entry.parse::<SocketAddr>().map(|socket| socket.ip());
    let address = entry.parse::<IpAddr>().or_else(|_| with_port()).ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forwarded_address_is_believed_only_from_named_proxies() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut headers = HeaderMap::new();
        headers.append(
            "x-forwarded-for",
            "203.0.113.9, 198.51.100.7".parse().unwrap(),
        );
        headers.append("x-forwarded-for", "10.0.0.2".parse().unwrap());
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let from = |peer, headers: &HeaderMap| client_address(address(peer), headers, &trusted);
        assert_eq!(
            from("192.0.2.1", &headers),
            address("192.0.2.1"),
            "a stranger's word is not taken"
        );
        assert_eq!(
            from("10.0.0.1", &headers),
            address("198.51.100.7"),
            "the last hop that is no proxy of ours"
        );
        assert_eq!(from("::ffff:10.0.0.1", &headers), address("198.51.100.7"));
        assert_eq!(from("10.0.0.1", &HeaderMap::new()), address("10.0.0.1"));
    }

    #[test]
    fn rubbish_in_front_of_the_forwarded_address_hides_nothing() {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        for forwarded in [
            &b"rubbish, 198.51.100.7"[..],
            b"\xff\xfe, 198.51.100.7, 10.0.0.2",
            b",,198.51.100.7:4711",
        ] {
            let mut headers = HeaderMap::new();
            headers.append("x-forwarded-for", forwarded.try_into().unwrap());
            let from = client_address("10.0.0.1".parse().unwrap(), &headers, &trusted);
            assert_eq!(from, "198.51.100.7".parse::<IpAddr>().unwrap());
        }
    }
}
