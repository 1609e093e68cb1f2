//! Connections that are opened to be a burden.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::{assert_still_serves, code, good_body, head, request};
use crate::support::raw::{Door, read_answer, read_to_close};
use crate::support::{PATIENCE, TestServer, status_code};

const HASTY: &str = "[http]\nhead_seconds = 1\nbody_seconds = 1";

/// Sends a byte every now and then until the server closes, and returns what the server said.
async fn drip(mut stream: impl AsyncRead + AsyncWrite + Unpin, byte: u8) -> String {
    let mut pace = tokio::time::interval(Duration::from_millis(50));
    let mut said = Vec::new();
    let mut chunk = [0; 4096];
    let dripping = async {
        loop {
            tokio::select! {
                read = stream.read(&mut chunk) => match read {
                    Ok(count @ 1..) => said.extend_from_slice(&chunk[..count]),
                    _ => return,
                },
                _ = pace.tick() => {
                    let _ = stream.write_all(&[byte]).await;
                    let _ = stream.flush().await;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, dripping)
        .await
        .expect("the server closes");
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn a_head_that_arrives_by_drops_is_cut_off() {
    let server = TestServer::start_with(HASTY).await;
    let mut stream = server.door().tls(&[]).await;
    stream
        .write_all(format!("{}X-Slow: ", head("xml")).as_bytes())
        .await
        .unwrap();
    assert_eq!(drip(stream, b'x').await, "");
    assert_still_serves(&server.door()).await;
}

#[tokio::test]
async fn a_body_that_arrives_by_drops_is_refused_and_cut_off() {
    let server = TestServer::start_with(HASTY).await;
    let door = server.door();
    for (format, framing, expected) in [
        ("xml", "Content-Length: 60000", "110141"),
        ("json", "Transfer-Encoding: chunked", "110141"),
        // Drained at leisure, but not for ever.
        ("xml", "Content-Length: 1073741824", "110062"),
    ] {
        let mut stream = door.tls(&[]).await;
        let head = format!("{}{framing}\r\n\r\n", head(format));
        stream.write_all(head.as_bytes()).await.unwrap();
        let byte = if format == "xml" { b'<' } else { b'0' };
        assert_eq!(status_code(&drip(stream, byte).await), expected);
    }
    assert_still_serves(&door).await;
}

#[tokio::test]
async fn a_client_that_says_nothing_or_half_a_preface_is_cut_off() {
    let server = TestServer::start_with(HASTY).await;
    let door = server.door();
    for begin in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n\r\nSM"] {
        let mut stream = door.tls(&[b"h2", b"http/1.1"]).await;
        stream.write_all(begin).await.unwrap();
        assert_eq!(read_to_close(&mut stream).await, "");
    }
    assert_still_serves(&door).await;
}

#[tokio::test]
async fn a_client_that_never_reads_its_answers_is_cut_off() {
    let server = TestServer::start_with(HASTY).await;
    let door = server.door();
    let mut stream = door.tls(&[]).await;
    let requests = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000);
    // The answers fill every buffer on the way, then the server stops reading, then it has had enough.
    let send = async { while stream.write_all(requests.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, send)
        .await
        .expect("the server closes");
    assert_still_serves(&door).await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    // Together longer than a connection may be idle, and each pause much shorter.
    let server = TestServer::start_with("[http]\nhead_seconds = 2\nbody_seconds = 2").await;
    let mut stream = server.door().tls(&[]).await;
    let mut pace = tokio::time::interval(Duration::from_millis(300));
    for _ in 0..8 {
        pace.tick().await;
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await
            .unwrap();
        assert!(read_answer(&mut stream).await.ends_with("ok\n"));
    }
    assert_eq!(read_to_close(&mut stream).await, "");
}

#[tokio::test]
async fn handshakes_that_never_finish_are_cut_off_and_keep_nobody_out() {
    let server = TestServer::start_with(HASTY).await;
    let door = server.door();
    let mut unfinished = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(door.address).await.unwrap();
        // A TLS record that announces a ClientHello of 512 bytes, and its first byte.
        stream.write_all(b"\x16\x03\x01\x02\x00\x01").await.unwrap();
        unfinished.push(stream);
    }
    assert_still_serves(&door).await;
    for mut stream in unfinished {
        read_to_close(&mut stream).await;
    }
}

#[tokio::test]
async fn what_is_no_tls_gets_no_answer_of_ours() {
    let server = TestServer::start().await;
    let door = server.door();
    for bytes in [&b"SSH-2.0-x\r\n"[..], b"\x80\x2e\x01\x00\x02", &[0; 10_000]] {
        let mut stream = TcpStream::connect(door.address).await.unwrap();
        let _ = stream.write_all(bytes).await;
        let said = read_to_close(&mut stream).await;
        assert!(!said.contains("HTTP/"), "{said}");
    }
    assert_still_serves(&door).await;
}

#[tokio::test]
async fn plain_http_where_tls_is_spoken_gets_an_answer_that_can_be_read() {
    let server = TestServer::start().await;
    let door = server.door();
    let long = format!(
        "{}Content-Length: 60000\r\n\r\n{}",
        head("xml"),
        "x".repeat(60000)
    );
    for request in ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", &long] {
        let mut stream = TcpStream::connect(door.address).await.unwrap();
        let _ = stream.write_all(request.as_bytes()).await;
        let said = read_answer(&mut stream).await;
        assert!(said.starts_with("HTTP/1.1 400 "), "{said}");
        assert!(said.contains("This port speaks HTTPS"), "{said}");
    }
    assert_still_serves(&door).await;
}

/// A connection that has sent an authenticated request, and stays open.
async fn known_connection(door: &Door) -> impl AsyncRead + AsyncWrite + Unpin + use<> {
    let mut stream = door.tls(&[]).await;
    place_call(&mut stream).await;
    stream
}

async fn place_call(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let request = request("xml", good_body().as_bytes());
    stream.write_all(&request).await.unwrap();
    assert_eq!(status_code(&read_answer(stream).await), "000000");
}

/// A connection from another address of this machine.
async fn from(door: &Door, host: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, host], 0).into()).unwrap();
    socket.connect(door.address).await.unwrap()
}

#[tokio::test]
async fn idle_connections_of_strangers_keep_nobody_out() {
    let server = TestServer::start_with("[http]\nmax_connections = 60").await;
    let door = server.door();
    let mut customer = known_connection(&door).await;
    let mut idle = Vec::new();
    // One address after the other, each with more than its part.
    for host in 2..=10 {
        for _ in 0..40 {
            let mut stream = from(&door, host).await;
            let _ = stream.write_all(b"\x16\x03\x01\x02\x00\x01").await;
            idle.push(stream);
        }
    }
    for _ in 0..20 {
        assert_eq!(code(&door, "xml", good_body().as_bytes()).await, "000000");
    }
    // The oldest of them are closed, and whoever has shown who it is is not.
    for stream in &mut idle[..60] {
        read_to_close(stream).await;
    }
    place_call(&mut customer).await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_and_are_then_served() {
    let settings =
        "[http]\nmax_connections = 4\nmax_connections_of_address = 4000\nmetrics_networks = []";
    let server = TestServer::start_with(settings).await;
    let door = server.door();
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(known_connection(&door).await);
    }
    let waiting = (0..8).map(|_| {
        let door = door.clone();
        tokio::spawn(async move { code(&door, "xml", good_body().as_bytes()).await })
    });
    let mut waiting: Vec<_> = waiting.collect();
    let early = tokio::time::timeout(Duration::from_millis(300), &mut waiting[0]).await;
    assert!(early.is_err(), "all places are taken");
    drop(open);
    for waiting in waiting {
        let code = tokio::time::timeout(PATIENCE, waiting)
            .await
            .expect("a place");
        assert_eq!(code.unwrap(), "000000");
    }
}

/// Customers hold all places, and more customers wait for one.
#[tokio::test]
async fn whoever_watches_is_answered_when_all_places_are_taken() {
    let settings = "[http]\nmax_connections = 3\nmetrics_networks = [\"127.0.0.1/32\"]";
    let server = TestServer::start_with(settings).await;
    let door = server.door();
    let mut held = Vec::new();
    for host in 2..=4 {
        let mut stream = door.tls_over(from(&door, host).await, &[]).await;
        place_call(&mut stream).await;
        held.push(stream);
    }
    let mut waiting = Vec::new();
    for host in 5..=9 {
        waiting.push(from(&door, host).await);
    }
    for page in ["/readyz", "/healthz", "/metrics"] {
        assert_eq!(server.get(page).await.status, 200, "{page}");
    }
    drop(held);
    let mut served = door.tls_over(waiting.remove(0), &[]).await;
    place_call(&mut served).await;
}

#[tokio::test]
async fn a_server_with_all_places_taken_can_be_stopped() {
    let settings =
        "[http]\nmax_connections = 1\nmax_connections_of_address = 9\nmetrics_networks = []";
    let server = TestServer::start_with(settings).await;
    let door = server.door();
    let mut idle = known_connection(&door).await;
    let _waiting = TcpStream::connect(door.address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    read_answer(&mut idle).await;
    tokio::time::timeout(PATIENCE, server.stop())
        .await
        .expect("it stops");
}
