//! Bodies that are not what they should be.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{assert_still_serves, code, good_body, head, request};
use crate::support::raw::{Door, read_answer};
use crate::support::{APP, PATIENCE, TestServer, status_code};

const BOMB: &str = r#"<!DOCTYPE LandingCall [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><LandingCall><userData>&c;</userData></LandingCall>"#;
const EXTERNAL: &str = r#"<!DOCTYPE LandingCall [<!ENTITY a SYSTEM "file:///etc/hostname">]><LandingCall><userData>&a;</userData></LandingCall>"#;

fn xml(fields: &str) -> Vec<u8> {
    let body = format!("<LandingCall><appId>{APP}</appId>{fields}</LandingCall>");
    body.into_bytes()
}

fn json(fields: &str) -> Vec<u8> {
    format!("{{\"appId\":\"{APP}\",{fields}}}").into_bytes()
}

#[tokio::test]
async fn an_xml_body_that_cannot_be_read_is_refused_with_its_code() {
    // Capacity enough for ten thousand elements that are closed again.
    let server = TestServer::start_with("[http]\nmax_body_bytes = 100000").await;
    let door = server.door();
    for body in [
        BOMB.into(),
        EXTERNAL.into(),
        b"<!DOCTYPE LandingCall><LandingCall/>".to_vec(),
        xml("<!DOCTYPE x>"),
        "<a>".repeat(10_000).into(),
        xml(&("<a>".repeat(10_000) + &"</a>".repeat(10_000))),
        xml("<to>138\0</to>"),
        xml("<to>138&#0;</to>"),
        xml("<to>138&#x1B;</to>"),
        xml("<to>138\u{85}</to>"),
        xml("<mediaName type=\"&#1;\">a.wav</mediaName>"),
        [xml("<to>138"), b"\xff\xfe".to_vec()].concat(),
        xml("<to>1</to><to>1</to>"),
        xml("<to>1</to><x:to>1</x:to>"),
        xml("<mediaName type=\"0\" type=\"1\">a.wav</mediaName>"),
        xml("<to>1</from>"),
        xml(&format!("<{0}></{0}x>", "long".repeat(10_000))),
        xml("<to>1"),
        b"<LandingCall/><LandingCall/>".to_vec(),
        b"<LandingCall/>text".to_vec(),
        b"<BillRecords/>".to_vec(),
        b"{}".to_vec(),
        b"\xff\xfe<\0L\0".to_vec(),
        b"<".repeat(60_000),
        Vec::new(),
    ] {
        let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        assert_eq!(code(&door, "xml", &body).await, "112613", "{shown}");
    }
    assert_still_serves(&door).await;
}

#[tokio::test]
async fn a_json_body_that_cannot_be_read_is_refused_with_its_code() {
    let server = TestServer::start().await;
    let door = server.door();
    for body in [
        b"[".repeat(10_000),
        b"{\"a\":".repeat(10_000),
        json(&format!("\"x\":{}", "[".repeat(10_000))),
        json("\"to\":\"138\0\""),
        json("\"to\":\"138\\u0000\""),
        json("\"to\":\"138\\ud800\""),
        json("\"to\":\"138\\u12\""),
        [json("\"to\":\"138\""), b"\xff".to_vec()].concat(),
        json("\"to\":\"1\",\"to\":\"1\""),
        json("\"to\":\"1\",\"t\\u006f\":\"1\""),
        json("'to':'1',\"to\":\"1\""),
        json("\"to\":01"),
        json("\"to\":1e"),
        json("\"to\":"),
        json("\"to\""),
        b"{} {}".to_vec(),
        b"1e999".to_vec(),
        format!("\"{}\"", "a".repeat(60_000)).into(),
        b"<LandingCall/>".to_vec(),
        b"'".repeat(60_000),
        Vec::new(),
    ] {
        let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        assert_eq!(code(&door, "json", &body).await, "110141", "{shown}");
    }
    assert_still_serves(&door).await;
}

#[tokio::test]
async fn a_value_that_breaks_its_rule_is_refused_with_the_code_of_the_rule() {
    let server = TestServer::start().await;
    let door = server.door();
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    for (field, value, expected) in [
        ("to", "1e999", "108023"),
        ("to", "-1e999", "108023"),
        ("to", "true", "108023"),
        ("to", "{\"a\":1}", "108023"),
        ("to", deep.as_str(), "108023"),
        ("playTimes", "1e999", "108036"),
        ("playTimes", "99999999999999999999", "108036"),
        ("txtSpeed", "1e999", "108023"),
        ("txtBgsound", "-0.5", "108023"),
        ("maxCallTime", "1e999", "108023"),
        // Something deep that nobody knows is of no meaning, and costs nothing.
        ("unknown", deep.as_str(), "000000"),
    ] {
        let to = if field == "to" {
            ""
        } else {
            ",\"to\":\"13800000000\""
        };
        let body = json(&format!("\"mediaTxt\":\"x\",\"{field}\":{value}{to}"));
        assert_eq!(code(&door, "json", &body).await, expected, "{field}");
    }
    for (field, expected) in [
        ("<to>1e999</to>", "108023"),
        ("<to><a>13800000000</a></to>", "108023"),
        ("<to>13800000000</to><playTimes>1e999</playTimes>", "108036"),
        ("<to>13800000000</to><txtSpeed>1e999</txtSpeed>", "108023"),
    ] {
        let body = xml(&format!("<mediaTxt>x</mediaTxt>{field}"));
        assert_eq!(code(&door, "xml", &body).await, expected, "{field}");
    }
    assert_still_serves(&door).await;
}

#[tokio::test]
async fn what_is_too_long_is_refused_and_the_client_gets_to_read_it() {
    let server = TestServer::start().await;
    let door = server.door();
    for field in [
        format!("<userData>{}</userData>", "x".repeat(4097)),
        format!("<userData>{}</userData>", "x".repeat(65_536)),
        format!("<userData>{}</userData>", "x".repeat(1 << 20)),
        format!("<mediaName>{}</mediaName>", "a.wav;".repeat(17)),
        format!("<respUrl>http://h/{}</respUrl>", "x".repeat(2048)),
    ] {
        let body = xml(&format!(
            "<to>13800000000</to><mediaTxt>x</mediaTxt>{field}"
        ));
        assert_eq!(
            code(&door, "xml", &body).await,
            "110062",
            "{}",
            &field[..12]
        );
    }
    let text = format!(
        "\"to\":\"13800000000\",\"mediaTxt\":\"{}\"",
        "字".repeat(2001)
    );
    assert_eq!(code(&door, "json", &json(&text)).await, "110062");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(65_536)).repeat(2);
    let body = format!(
        "{}Transfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n",
        head("json")
    );
    assert_eq!(status_code(&door.send_raw(body.as_bytes()).await), "110062");
    assert_still_serves(&door).await;
}

#[tokio::test]
async fn a_gigabyte_is_not_swallowed() {
    let server = TestServer::start().await;
    let door = server.door();
    for chunked in [false, true] {
        send_a_gigabyte(&door, chunked).await;
    }
    assert_still_serves(&door).await;
}

/// Sends until the server closes; it must do so long before the end.
pub async fn send_a_gigabyte(door: &Door, chunked: bool) {
    let (framing, piece) = if chunked {
        (
            "Transfer-Encoding: chunked",
            format!("10000\r\n{}\r\n", "x".repeat(65_536)),
        )
    } else {
        ("Content-Length: 1073741824", "x".repeat(65_536))
    };
    let (mut read, mut write) = tokio::io::split(door.tls(&[]).await);
    let answer = tokio::spawn(async move { read_answer(&mut read).await });
    let mut sent = 0;
    let send = async {
        let head = format!("{}{framing}\r\n\r\n", head("xml"));
        let mut piece_or_head = head.as_bytes();
        while sent < 1 << 30 && write.write_all(piece_or_head).await.is_ok() {
            sent += piece_or_head.len();
            piece_or_head = piece.as_bytes();
        }
    };
    tokio::time::timeout(PATIENCE, send)
        .await
        .expect("the server closes");
    // Sixteen mebibytes are read and thrown away; some more are on their way in the sockets' buffers.
    assert!(sent < 64 << 20, "{sent} bytes were taken");
    let answer = answer.await.unwrap();
    // The answer may be lost when the connection is torn down under a client that keeps on writing.
    assert!(
        answer.is_empty() || status_code(&answer) == "110062",
        "{answer}"
    );
}

#[tokio::test]
async fn a_client_that_asks_first_is_refused_before_it_sends_the_body() {
    let server = TestServer::start().await;
    let door = server.door();
    let head = |length: usize| {
        let head = head("xml");
        format!("{head}Expect: 100-continue\r\nContent-Length: {length}\r\n\r\n")
    };
    let answer = door.send_raw(head(1 << 30).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(status_code(&answer), "110062");

    let mut stream = door.tls(&[]).await;
    let body = good_body();
    stream.write_all(head(body.len()).as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(status_code(&read_answer(&mut stream).await), "000000");
}

#[tokio::test]
async fn a_body_that_ends_early_or_is_badly_chunked_is_never_accepted() {
    let server = TestServer::start().await;
    let door = server.door();
    let whole = request("xml", good_body().as_bytes());
    let mut stream = door.tls(&[]).await;
    stream.write_all(&whole[..whole.len() - 1]).await.unwrap();
    stream.shutdown().await.unwrap();
    let answer = read_answer(&mut stream).await;
    assert!(!answer.contains("000000"), "{answer}");

    for chunks in [
        "-1\r\nx\r\n",
        "ffffffffffffffffff\r\nx",
        "zz\r\n",
        "1\r\nxx\r\n0\r\n\r\n",
    ] {
        let request = format!("{}Transfer-Encoding: chunked\r\n\r\n{chunks}", head("xml"));
        let answer = door.send_raw(request.as_bytes()).await;
        assert!(!answer.contains("000000"), "{answer}");
    }
    assert_still_serves(&door).await;
}
