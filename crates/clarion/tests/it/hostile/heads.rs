//! Request heads that are too much, or mean two things at once.

use tokio::io::AsyncWriteExt;

use super::{assert_still_serves, good_body, head, request};
use crate::support::raw::{Door, read_to_close};
use crate::support::{PATIENCE, TestServer, status_code};

/// Sends the beginning of a request and then one piece again and again, until the server closes; returns what it said.
async fn flood(door: &Door, begin: &str, piece: &str) -> String {
    let (mut read, mut write) = tokio::io::split(door.tls(&[]).await);
    let answer = tokio::spawn(async move { read_to_close(&mut read).await });
    let mut sent = 0;
    let send = async {
        let _ = write.write_all(begin.as_bytes()).await;
        while sent < 1 << 30 && write.write_all(piece.as_bytes()).await.is_ok() {
            sent += piece.len();
        }
    };
    let limited = tokio::time::timeout(PATIENCE, send).await;
    limited.expect("the server closes");
    assert!(sent < 32 << 20, "{sent} bytes were taken");
    answer.await.unwrap()
}

pub async fn flood_in_every_way(door: &Door) {
    let head = head("xml");
    let long = "x".repeat(4096);
    for (begin, piece) in [
        (head.clone(), "X-Many: 1\r\n".to_owned()),
        (head.clone() + "X-Long: ", long.clone()),
        (head.clone(), format!("X-{long}: {long}\r\n")),
        ("GET /".to_owned(), long.clone()),
        (String::new(), long.clone()),
        (String::new(), "\r\n".to_owned()),
    ] {
        let answer = flood(door, &begin, &piece).await;
        let refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
        assert!(refused, "{answer}");
    }
    // Here the head is over, and the API may answer in its own way.
    let chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
    for (begin, piece) in [("1;", long.as_str()), ("0\r\n", "X-Trailer: 1\r\n")] {
        let answer = flood(door, &format!("{chunked}{begin}"), piece).await;
        assert!(!answer.contains("000000"), "{answer}");
    }
}

#[tokio::test]
async fn a_flood_of_header_bytes_is_cut_off() {
    let server = TestServer::start().await;
    flood_in_every_way(&server.door()).await;
    assert_still_serves(&server.door()).await;
}

#[tokio::test]
async fn as_many_headers_as_are_allowed_are_no_flood() {
    let server = TestServer::start().await;
    let body = good_body();
    let many = |count: usize| {
        let lines = "X-Many: 1\r\n".repeat(count);
        format!(
            "{}{lines}Content-Length: {}\r\n\r\n{body}",
            head("xml"),
            body.len()
        )
    };
    let answer = server.send_raw(many(90).as_bytes()).await;
    assert_eq!(status_code(&answer), "000000");
    let answer = server.send_raw(many(100).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn a_length_that_is_not_one_number_is_refused() {
    let server = TestServer::start().await;
    let door = server.door();
    for lines in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5 \t5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 18446744073709551615\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: xchunked\r\n",
    ] {
        let mut stream = door.tls(&[]).await;
        let request = format!("{}{lines}\r\n12345", head("xml"));
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_to_close(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{lines}{answer}");
    }
    assert_still_serves(&door).await;
}

#[tokio::test]
async fn a_head_that_proxies_might_read_differently_is_refused() {
    let server = TestServer::start().await;
    let door = server.door();
    for lines in [
        "X-Folded: a\r\n b\r\n",
        "X-Blank : a\r\n",
        " X-Indented: a\r\n",
        "X-Nul: a\0b\r\n",
        "X\0: a\r\n",
        "NoColon\r\n",
        "X-Return: a\rb\r\n",
    ] {
        let mut stream = door.tls(&[]).await;
        let request = format!("{}{lines}Content-Length: 0\r\n\r\n", head("xml"));
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_to_close(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{lines}{answer}");
    }
    assert_still_serves(&door).await;
}

#[tokio::test]
async fn a_request_smuggled_behind_two_lengths_is_not_answered() {
    let server = TestServer::start().await;
    let door = server.door();
    let hidden = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let body = format!("0\r\n\r\n{hidden}");
    let length = format!("Content-Length: {}\r\n", body.len());
    let chunked = "Transfer-Encoding: chunked\r\n";
    for lines in [format!("{length}{chunked}"), format!("{chunked}{length}")] {
        let mut stream = door.tls(&[]).await;
        let request = format!("{}{lines}\r\n{body}", head("xml"));
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_to_close(&mut stream).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        // The chunks count, and they say that the body is empty.
        assert_eq!(status_code(&answer), "112613");
    }
    assert_still_serves(&door).await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = TestServer::start().await;
    let mut stream = server.door().tls(&[]).await;
    let mut requests = Vec::new();
    for body in [good_body().as_bytes(), b"<broken", good_body().as_bytes()] {
        requests.extend(request("xml", body));
    }
    requests.extend(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(&requests).await.unwrap();
    let answers = read_to_close(&mut stream).await;
    let codes: Vec<_> = answers
        .split("<statusCode>")
        .skip(1)
        .map(|rest| &rest[..6])
        .collect();
    assert_eq!(codes, ["000000", "112613", "000000"]);
    assert!(answers.ends_with("ok\n"), "{answers}");
}

#[tokio::test]
async fn targets_of_every_form_are_answered() {
    let server = TestServer::start().await;
    let door = server.door();
    for (line, status) in [
        ("GET /healthz HTTP/1.1", "200"),
        ("GET /healthz/ HTTP/1.1", "200"),
        ("GET https://example.org/healthz HTTP/1.1", "200"),
        ("GET https://example.org/healthz/?a=/ HTTP/1.1", "200"),
        ("GET //healthz// HTTP/1.1", "200"),
        ("GET https://example.org HTTP/1.1", "404"),
        ("OPTIONS * HTTP/1.1", "404"),
        ("CONNECT example.org:443 HTTP/1.1", "404"),
        ("GET /%00%ff/../..//x?%zz&=&& HTTP/1.1", "404"),
        ("GET healthz HTTP/1.1", "4"),
        ("GET /\x7f HTTP/1.1", "4"),
        ("GET /a b HTTP/1.1", "400"),
        ("GET / HTTP/9.9", "400"),
        ("\x16\x03\x01", "400"),
    ] {
        let request = format!("{line}\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = door.send_raw(request.as_bytes()).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{line:?}: {answer}"
        );
    }
    assert_still_serves(&door).await;
}

/// Below the API's tree every method is answered with 200 and a statusCode, whatever comes with it.
#[tokio::test]
async fn a_method_that_is_not_offered_is_told_so_in_the_apis_own_way() {
    let server = TestServer::start().await;
    let door = server.door();
    let calls = head("json");
    let info = calls.replace("Calls/LandingCalls", "AccountInfo");
    let slashes = calls.replace("LandingCalls", "LandingCalls//");
    let absolute = slashes.replace("POST /", "POST https://example.org:8883/");
    for (head, expected) in [
        (calls.replace("POST", "GET"), "190008"),
        (calls.replace("POST", "DELETE"), "190008"),
        (calls.replace("POST", "TRACE"), "190008"),
        (calls.replace("POST", "X-ANY-THING"), "190008"),
        (calls.replace("LandingCalls", "Landing%43alls"), "190008"),
        (calls.replace("LandingCalls", "../AccountInfo"), "190008"),
        (calls.replace("?sig=", "?sig=&sig="), "111108"),
        (calls.replace("?sig=", "?%zz=%&sig="), "110141"),
        (calls.replace("?sig=", "?%73ig="), "110141"),
        (info.replace("POST", "GET"), "000000"),
        (info.replace("POST", "PUT"), "190008"),
        (info + "Upgrade: h2c\r\nConnection: Upgrade\r\n", "000000"),
        (slashes, "110141"),
        (absolute, "110141"),
    ] {
        let request = format!("{head}Content-Length: 5\r\n\r\n<bad>");
        let answer = door.send_raw(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{head}{answer}");
        assert_eq!(status_code(&answer), expected, "{head}");
    }
    for method in ["HEAD", "CONNECT"] {
        let lines = "Connection: close\r\nContent-Length: 0\r\n\r\n";
        let request = calls.replace("POST", method) + lines;
        let mut stream = door.tls(&[]).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_to_close(&mut stream).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 200 OK\r\n") && body.is_empty(),
            "{answer}"
        );
    }
    assert_still_serves(&door).await;
}
