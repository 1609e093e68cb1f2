//! Connections: certificates, HTTP versions, proxies, probes, and an orderly stop.

use bytes::Bytes;
use clarion::clock::Clock;
use clarion::config::Config;
use clarion::domain::account::AccountChange;
use clarion::server::Server;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::raw::read_answer;
use crate::support::{APP, SID, TestServer, eventually, status_code};

#[tokio::test]
async fn the_certificate_made_at_first_start_is_kept_and_can_be_verified() {
    let mut server = TestServer::start().await;
    let ca = std::fs::read(&server.ca).unwrap();
    let certificate = std::fs::read(server.ca.with_file_name("server.pem")).unwrap();
    assert_eq!(
        status_code(&server.ask("AccountInfo", "xml", None).await),
        "000000"
    );
    server.take_server().stop().await;
    server.restart("").await;
    assert_eq!(std::fs::read(&server.ca).unwrap(), ca);
    assert_eq!(
        std::fs::read(server.ca.with_file_name("server.pem")).unwrap(),
        certificate
    );
    assert_eq!(
        status_code(&server.ask("AccountInfo", "xml", None).await),
        "000000"
    );
    // Other names: another certificate, but the CA that clients have been given stays.
    server.take_server().stop().await;
    server
        .restart("[http]\nhost_names = [\"localhost\", \"calls.example.com\"]\n")
        .await;
    assert_eq!(std::fs::read(&server.ca).unwrap(), ca);
    assert_ne!(
        std::fs::read(server.ca.with_file_name("server.pem")).unwrap(),
        certificate
    );
    assert_eq!(
        status_code(&server.ask("AccountInfo", "xml", None).await),
        "000000"
    );
}

#[tokio::test]
async fn private_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let server = TestServer::start().await;
    let data = server.folder.path().join("data");
    for file in [
        "tls/ca.key",
        "tls/server.key",
        "clarion.db",
        "clarion.db-wal",
    ] {
        let mode = std::fs::metadata(data.join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{file} has mode {mode:o}");
    }
    let mode = std::fs::metadata(&server.ca).unwrap().permissions().mode();
    assert_eq!(
        mode & 0o444,
        0o444,
        "the CA file is there to be handed over"
    );
}

#[tokio::test]
async fn an_operators_own_certificate_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("own.pem"), folder.path().join("own.key"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let mut server = TestServer::start_with(&format!(
        "[http]\ncertificate = {certificate:?}\nprivate_key = {key:?}\n"
    ))
    .await;
    server.ca = certificate;
    assert_eq!(
        status_code(&server.ask("AccountInfo", "xml", None).await),
        "000000"
    );
    assert!(!server.folder.path().join("data/tls").exists());
}

#[tokio::test]
async fn http2_is_spoken() {
    let server = TestServer::start().await;
    let stream = server.door().tls(&[b"h2"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    let signature = server.sign();
    let body = format!("{{\"appId\":\"{APP}\",\"to\":\"13800000000\",\"mediaTxt\":\"x\"}}");
    let request = Request::post(format!(
        "https://localhost/2013-12-26/Accounts/{SID}/Calls/LandingCalls/?sig={}",
        signature.sig
    ))
    .header("authorization", signature.authorization)
    .header("accept", "application/json")
    .header("content-type", "application/json")
    .body(Full::<Bytes>::from(body))
    .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.version(), hyper::Version::HTTP_2);
    let answer = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(status_code(std::str::from_utf8(&answer).unwrap()), "000000");
}

#[tokio::test]
async fn a_connection_is_kept_alive() {
    let server = TestServer::start().await;
    let mut connection = server.client().connect().await.unwrap();
    for _ in 0..5 {
        let answer = connection
            .operation(
                &server.credentials(),
                &server.sign(),
                "AccountInfo",
                "application/xml",
                None,
            )
            .await
            .unwrap();
        assert_eq!(status_code(&answer), "000000");
    }
}

#[tokio::test]
async fn behind_a_proxy_the_forwarded_address_counts_only_from_a_named_one() {
    for (proxies, forwarded, code) in [
        ("[\"127.0.0.1\"]", "192.0.2.7", "000000"),
        ("[\"127.0.0.1\"]", "203.0.113.7", "111115"),
        ("[]", "192.0.2.7", "111115"),
    ] {
        let server = TestServer::start_with(&format!(
            "[http]\nplain = true\ntrusted_proxies = {proxies}\n"
        ))
        .await;
        let networks = Some(vec!["192.0.2.0/24".parse().unwrap()]);
        server
            .change_account(AccountChange {
                allowed_networks: networks,
                ..AccountChange::default()
            })
            .await;
        let signature = server.sign();
        let request = format!(
            "GET /2013-12-26/Accounts/{SID}/AccountInfo?sig={} HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: {forwarded}\r\nAuthorization: {}\r\n\r\n",
            signature.sig, signature.authorization
        );
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_answer(&mut stream).await;
        assert_eq!(status_code(&answer), code, "{proxies} {forwarded}");
    }
}

#[tokio::test]
async fn probes_metrics_and_the_api_document_are_served() {
    let server = TestServer::start().await;
    server.ask("AccountInfo", "xml", None).await;
    let mut connection = server.client().connect().await.unwrap();
    assert_eq!(
        connection.get("/healthz").await.unwrap(),
        (200, "ok\n".to_owned())
    );
    assert_eq!(
        connection.get("/readyz").await.unwrap(),
        (200, "ready\n".to_owned())
    );
    let (status, metrics) = connection.get("/metrics").await.unwrap();
    assert!(
        status == 200 && metrics.contains("clarion_http_responses_total"),
        "{metrics}"
    );
    let (status, document) = connection.get("/openapi.json").await.unwrap();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(status, 200);
    // Every operation, the download of bills, and the door for alerts.
    let paths = clarion::api::operations::OPERATIONS.len() + 2;
    assert_eq!(document["paths"].as_object().unwrap().len(), paths);
}

#[tokio::test]
async fn metrics_are_shown_only_to_named_networks() {
    let server = TestServer::start_with("[http]\nmetrics_networks = [\"192.0.2.0/24\"]\n").await;
    let (status, _) = server
        .client()
        .connect()
        .await
        .unwrap()
        .get("/metrics")
        .await
        .unwrap();
    assert_eq!(status, 403);
}

#[tokio::test]
async fn stopping_finishes_what_has_begun_and_takes_nothing_new() {
    let mut server = TestServer::start().await;
    let signature = server.sign();
    let body = format!("{{\"appId\":\"{APP}\",\"to\":\"13800000000\",\"mediaTxt\":\"x\"}}");
    let head = format!(
        "POST /2013-12-26/Accounts/{SID}/Calls/LandingCalls?sig={} HTTP/1.1\r\nHost: h\r\nAuthorization: {}\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        signature.sig,
        signature.authorization,
        body.len()
    );
    let mut begun = server.door().tls(&[]).await;
    begun.write_all(head.as_bytes()).await.unwrap();
    begun.flush().await.unwrap();
    // The server asks for the body: it has read the head, and the request is under way.
    assert!(read_answer(&mut begun).await.starts_with("HTTP/1.1 100"));
    let (address, running) = (server.address, server.take_server());
    let stopping = tokio::spawn(running.stop());
    eventually("nothing new is taken", async || {
        TcpStream::connect(address).await.is_err()
    })
    .await;
    assert!(
        !stopping.is_finished(),
        "the request that has begun is waited for"
    );
    begun.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(status_code(&read_answer(&mut begun).await), "000000");
    tokio::time::timeout(crate::support::PATIENCE, stopping)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_second_server_on_the_same_file_is_refused() {
    let server = TestServer::start().await;
    let data = server.folder.path().join("data");
    let config = Config::from_parts(
        &format!(
            "data_dir = {data:?}\n[http]\nlisten = [\"127.0.0.1:0\"]\n[console]\nlisten = []\n"
        ),
        &[],
    )
    .unwrap();
    let error = Server::start(config, Clock::new(jiff::tz::TimeZone::UTC))
        .await
        .unwrap_err();
    assert!(
        format!("{error:#}").contains("another server is already serving"),
        "{error:#}"
    );
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let server = TestServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "data_dir = {:?}\n[http]\nlisten = [\"{}\"]\n[console]\nlisten = []\n",
        folder.path().join("data"),
        server.address
    );
    let config = Config::from_parts(&config, &[]).unwrap();
    let error = Server::start(config, Clock::new(jiff::tz::TimeZone::UTC))
        .await
        .unwrap_err();
    assert!(
        format!("{error:#}").contains(&server.address.to_string()),
        "{error:#}"
    );
}
