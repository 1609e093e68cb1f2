//! The known attacks on HTTP/2.

use axum::http::Request;
use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, SendStream, client};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;

use super::assert_still_serves;
use crate::support::raw::Door;
use crate::support::{PATIENCE, SID, TestServer};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [head, payload.to_vec()].concat()
}

async fn connect(door: &Door) -> (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
    let stream = door.tls(&[b"h2"]).await;
    let (send, connection) = client::handshake(stream).await.unwrap();
    (send, tokio::spawn(connection))
}

fn health() -> Request<()> {
    let request = Request::builder().uri("https://localhost/healthz");
    request.body(()).unwrap()
}

async fn healthy(send: &SendRequest<Bytes>) -> Result<u16, h2::Error> {
    let mut send = send.clone().ready().await?;
    let (answer, _) = send.send_request(health(), true)?;
    Ok(answer.await?.status().as_u16())
}

/// Opens and resets streams as fast as it can, until the server has had enough.
pub async fn reset_rapidly(door: &Door) {
    let (send, connection) = connect(door).await;
    let flood = async {
        let mut sent = 0u32;
        while let Ok(mut send) = send.clone().ready().await {
            let Ok((_, mut stream)) = send.send_request(health(), false) else {
                return;
            };
            stream.send_reset(Reason::CANCEL);
            sent += 1;
            // Many in one piece: one by one, a server with time on its hands would keep up with them.
            if sent.is_multiple_of(64) {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::time::timeout(PATIENCE, flood)
        .await
        .expect("the server closes");
    let end = connection.await.unwrap().unwrap_err();
    assert!(
        end.is_io() || end.reason() == Some(Reason::ENHANCE_YOUR_CALM),
        "{end}"
    );
}

/// Sends the same frames again and again and never reads, until the server closes.
pub async fn flood(door: &Door, begin: &[u8], again: &[u8]) {
    let mut stream = door.tls(&[b"h2"]).await;
    let begin = [PREFACE, &frame(SETTINGS, 0, 0, b""), begin].concat();
    stream.write_all(&begin).await.unwrap();
    let again = again.repeat(1000);
    let mut sent = 0;
    let send = async {
        while stream.write_all(&again).await.is_ok() {
            sent += again.len();
        }
    };
    tokio::time::timeout(PATIENCE, send)
        .await
        .expect("the server closes");
    assert!(sent < 64 << 20, "{sent} bytes were taken");
}

/// A header block that never ends, by empty and by full frames.
pub async fn continue_for_ever(door: &Door) {
    // `:method: GET` from the static table.
    let begin = frame(HEADERS, 0, 1, b"\x82");
    flood(door, &begin, &frame(CONTINUATION, 0, 1, b"")).await;
    // A literal header `x: ` with a value of 100 bytes, not indexed.
    let header = [&b"\x00\x01x\x64"[..], &[b'a'; 100]].concat();
    flood(door, &begin, &frame(CONTINUATION, 0, 1, &header.repeat(20))).await;
}

/// Opens many requests without any authorisation, and sends each body but for its last byte. They stay open as long as what is
/// returned is kept.
pub async fn leave_bodies_open(
    door: &Door,
    requests: usize,
) -> Vec<(SendRequest<Bytes>, SendStream<Bytes>)> {
    let (send, _) = connect(door).await;
    let mut open = Vec::new();
    let body = Bytes::from(vec![b'x'; 60_000]);
    for _ in 0..requests {
        let request = Request::post(format!(
            "https://localhost/2013-12-26/Accounts/{SID}/AccountInfo"
        ));
        let mut ready = send.clone().ready().await.unwrap();
        let (_, mut stream) = ready
            .send_request(request.body(()).unwrap(), false)
            .unwrap();
        stream.send_data(body.clone(), false).unwrap();
        open.push((send.clone(), stream));
    }
    for (_, stream) in &mut open {
        // Capacity beyond what is still to be sent is given when all of it has been taken.
        stream.reserve_capacity(1);
        let taken = std::future::poll_fn(|context| stream.poll_capacity(context));
        tokio::time::timeout(PATIENCE, taken)
            .await
            .expect("the server reads");
    }
    open
}

#[tokio::test]
async fn rapid_resets_end_the_connection() {
    let server = TestServer::start().await;
    reset_rapidly(&server.door()).await;
    assert_still_serves(&server.door()).await;
}

#[tokio::test]
async fn a_header_block_without_an_end_closes_the_connection() {
    let server = TestServer::start().await;
    continue_for_ever(&server.door()).await;
    assert_still_serves(&server.door()).await;
}

#[tokio::test]
async fn pings_and_settings_whose_answers_nobody_reads_are_cut_off() {
    let server = TestServer::start_with("[http]\nhead_seconds = 1").await;
    let door = server.door();
    flood(&door, b"", &frame(PING, 0, 0, &[0; 8])).await;
    flood(&door, b"", &frame(SETTINGS, 0, 0, b"")).await;
    assert_still_serves(&door).await;
}

#[tokio::test]
async fn an_oversized_header_list_is_refused_and_the_connection_goes_on() {
    let server = TestServer::start().await;
    let (send, _connection) = connect(&server.door()).await;
    let mut request = health();
    let long = "x".repeat(40_000).parse().unwrap();
    request.headers_mut().insert("x-long", long);
    let mut ready = send.clone().ready().await.unwrap();
    let (answer, _) = ready.send_request(request, true).unwrap();
    match answer.await {
        Ok(answer) => assert_eq!(answer.status(), 431),
        Err(error) => assert!(error.is_reset(), "{error}"),
    }
    assert_eq!(healthy(&send).await.unwrap(), 200);
}

#[tokio::test]
async fn a_client_that_only_answers_pings_is_closed_after_a_while() {
    let server = TestServer::start_with("[http]\nhead_seconds = 1").await;
    let (send, connection) = connect(&server.door()).await;
    assert_eq!(healthy(&send).await.unwrap(), 200);
    let end = tokio::time::timeout(PATIENCE, connection).await;
    let _ = end.expect("the server closes");
    assert!(healthy(&send).await.is_err());
    assert_still_serves(&server.door()).await;
}
