//! Not only accepted but understood: what a strange request says is what is kept of the call. And what must be refused, byte by byte.

use std::sync::Arc;

use clarion::domain::call::NewCall;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::post;
use crate::support::bills::claim;
use crate::support::raw::read_answer;
use crate::support::{APP, SID, TestServer, call_sid, status_code};

const XML: &str = "Content-Type: application/xml\r\n";
const JSON: &str = "Content-Type: application/json\r\n";

/// The call as it waits in the queue, after a request with these headers and this body. Nothing dials it.
async fn understood(server: &TestServer, headers: &str, body: &str) -> NewCall {
    let sid = call_sid(&post(server, headers, body).await);
    // Earlier ones may be back in the queue by now: the server recovers what a node has claimed that it does not know.
    let claimed = claim(&*server.store, 100).await;
    let mut calls = claimed.into_iter().map(|claimed| claimed.call);
    calls
        .find(|call| call.sid.as_str() == sid)
        .unwrap_or_else(|| panic!("not in the queue: {body}"))
}

fn spoken(call: &NewCall) -> &str {
    &call.prompt.speech.as_ref().unwrap().text
}

/// Each to a number of its own: one callee is not claimed twice.
fn xml(number: u32, fields: &str) -> String {
    format!("<LandingCall><appId>{APP}</appId><to>138000001{number:02}</to>{fields}</LandingCall>")
}

fn json(number: u32, fields: &str) -> String {
    format!("{{\"appId\":\"{APP}\",\"to\":\"138000002{number:02}\",{fields}}}")
}

#[tokio::test]
async fn an_application_is_named_in_any_case() {
    let server = TestServer::start().await;
    let rest = "\"to\":\"13800000000\",\"mediaTxt\":\"x\"";
    let elements = "<to>13800000000</to><mediaTxt>x</mediaTxt>";
    for name in ["appId", "appid", "Appid", "AppId", "APPID"] {
        let json = format!("{{\"{name}\":\"{APP}\",{rest}}}");
        let xml = format!("<LandingCall><{name}>{APP}</{name}>{elements}</LandingCall>");
        for (headers, body) in [(JSON, json), (XML, xml)] {
            let answer = post(&server, headers, &body).await;
            assert_eq!(status_code(&answer), "000000", "{body}: {answer}");
        }
    }
    // Of one that is named twice, nobody knows which is meant.
    let twice = format!("{{\"appId\":\"{APP}\",\"appid\":\"{APP}\",{rest}}}");
    assert_eq!(status_code(&post(&server, JSON, &twice).await), "110141");
}

#[tokio::test]
async fn texts_arrive_as_they_were_meant() {
    let server = TestServer::start().await;
    for (number, (written, meant)) in (0..).zip([
        ("a & b", "a & b"),
        ("AT&T &amp; &lt;你&gt;", "AT&T & <你>"),
        ("&#20320;&#x597D; &nbsp;&;", "你好 &nbsp;&;"),
        ("<![CDATA[<b> & so]]>", "<b> & so"),
        ("one\r\ntwo\tthree", "one\ntwo\tthree"),
    ]) {
        let body = xml(number, &format!("<mediaTxt>{written}</mediaTxt>"));
        assert_eq!(
            spoken(&understood(&server, XML, &body).await).replace("\r\n", "\n"),
            meant,
            "{body}"
        );
    }
    for (number, (written, meant)) in (0..).zip([
        (r#""mediaTxt":"\u003c\u4f60 \ud83d\ude00""#, "<你 😀"),
        ("\"mediaTxt\":\"one\ntwo\tthree\"", "one\ntwo\tthree"),
        (r"'mediaTxt':'it\'s \u4f60'", "it's 你"),
        (r#"'mediaTxt':'say "hi"'"#, "say \"hi\""),
        (r#""mediaTxt":12345"#, "12345"),
    ]) {
        let body = json(number, written);
        assert_eq!(
            spoken(&understood(&server, JSON, &body).await),
            meant,
            "{body}"
        );
    }
}

#[tokio::test]
async fn an_address_with_a_raw_ampersand_and_private_data_are_kept_as_sent() {
    let server = TestServer::start().await;
    let body = xml(
        1,
        "<mediaTxt>x</mediaTxt><respUrl>http://h/cb?a=1&b=2&copy=3</respUrl><userData>&lt;o id=\"7\"&gt; & 数据</userData>",
    );
    let call = understood(&server, XML, &body).await;
    assert_eq!(
        call.resp_url.unwrap().as_str(),
        "http://h/cb?a=1&b=2&copy=3"
    );
    assert_eq!(call.user_data.unwrap(), "<o id=\"7\"> & 数据");
}

#[tokio::test]
async fn empty_and_null_are_absent_and_numbers_are_texts() {
    let server = TestServer::start().await;
    let names = [
        "mediaName",
        "mediaNameType",
        "displayNum",
        "respUrl",
        "userData",
        "playTimes",
        "playMode",
        "txtSpeed",
        "txtVolume",
        "txtPitch",
        "txtBgsound",
        "speed",
        "volume",
        "pitch",
        "bgsound",
        "maxCallTime",
    ];
    let all = |value: &str| {
        let fields = names.map(|name| format!("\"{name}\":{value}"));
        format!("{},\"mediaTxt\":\"x\"", fields.join(","))
    };
    let empty = names.map(|name| format!("<{name}></{name}>")).concat();
    let closed = names.map(|name| format!("<{name}/>")).concat();
    for (headers, body) in [
        (XML, xml(1, &format!("{empty}<mediaTxt>x</mediaTxt>"))),
        (XML, xml(2, &format!("{closed}<mediaTxt>x</mediaTxt>"))),
        (JSON, json(1, &all("\"\""))),
        (JSON, json(2, &all("null"))),
    ] {
        let call = understood(&server, headers, &body).await;
        assert_eq!((spoken(&call), call.prompt.plays), ("x", 1), "{body}");
        assert!(call.prompt.files.is_empty() && call.resp_url.is_none());
        assert!(call.user_data.is_none() && call.max_talk.is_none());
    }
    let numbers = "\"mediaTxt\":\"x\",\"playTimes\":3,\"txtSpeed\":-500,\"maxCallTime\":60";
    let call = understood(&server, JSON, &json(3, numbers)).await;
    let speed = call.prompt.speech.unwrap().speed;
    assert_eq!(
        (call.prompt.plays, speed, call.max_talk),
        (3, -500, Some(60))
    );
}

#[tokio::test]
async fn fields_come_in_any_order() {
    let server = TestServer::start().await;
    let backwards = format!(
        "<LandingCall><playTimes>2</playTimes><more>1</more><mediaTxt>x</mediaTxt><to>13800000001</to><appId>{APP}</appId></LandingCall>"
    );
    assert_eq!(understood(&server, XML, &backwards).await.prompt.plays, 2);
    let backwards = format!(
        "{{\"playTimes\":\"2\",\"more\":[1],\"mediaTxt\":\"x\",\"to\":\"13800000002\",\"appId\":\"{APP}\"}}"
    );
    assert_eq!(understood(&server, JSON, &backwards).await.prompt.plays, 2);
}

#[tokio::test]
async fn a_content_type_may_be_written_in_many_ways() {
    let server = TestServer::start().await;
    for (content_type, body) in [
        ("application/json;", json(1, "\"mediaTxt\":\"x\"")),
        (
            "application/json;charset=utf-8;",
            json(1, "\"mediaTxt\":\"x\""),
        ),
        (
            "Application/JSON ; Charset=UTF-8",
            json(1, "\"mediaTxt\":\"x\""),
        ),
        ("application/xml;", xml(1, "<mediaTxt>x</mediaTxt>")),
        (
            "APPLICATION/XML;CHARSET=utf8",
            xml(1, "<mediaTxt>x</mediaTxt>"),
        ),
        ("text/xml", xml(1, "<mediaTxt>x</mediaTxt>")),
    ] {
        for colon in [": ", ":"] {
            let headers = format!("content-TYPE{colon}{content_type}\r\n");
            let answer = post(&server, &headers, &body).await;
            assert_eq!(status_code(&answer), "000000", "{headers}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_target_may_be_a_whole_address() {
    let server = TestServer::start().await;
    server.permit_bills().await;
    for origin in [
        "https://app.cloopen.com:8883",
        "https://localhost",
        "http://h",
    ] {
        for (operation, body) in [
            ("Calls/LandingCalls", xml(1, "<mediaTxt>x</mediaTxt>")),
            ("AccountInfo", String::new()),
        ] {
            let signature = server.sign();
            let method = if body.is_empty() { "GET" } else { "POST" };
            let request = format!(
                "{method} {origin}/2013-12-26/Accounts/{SID}/{operation}?sig={} HTTP/1.1\r\nHost: h\r\nAuthorization: {}\r\nContent-Length: {}\r\n\r\n{body}",
                signature.sig,
                signature.authorization,
                body.len()
            );
            let answer = server.send_raw(request.as_bytes()).await;
            assert_eq!(status_code(&answer), "000000", "{origin}: {answer}");
        }
    }
}

#[tokio::test]
async fn bytes_that_are_not_utf8_are_refused() {
    let server = TestServer::start().await;
    for (headers, body, code) in [
        (XML, xml(1, "<mediaTxt>?</mediaTxt>"), "112613"),
        (JSON, json(1, "\"mediaTxt\":\"?\""), "110141"),
    ] {
        // 您 in GBK, half of a character, an encoded surrogate, an overlong slash.
        for bytes in [&b"\xc4\xfa"[..], b"\xe4\xbd", b"\xed\xa0\x80", b"\xc0\xaf"] {
            let (before, after) = body.split_once('?').unwrap();
            let body = [before.as_bytes(), bytes, after.as_bytes()].concat();
            let signature = server.sign();
            let head = format!(
                "POST /2013-12-26/Accounts/{SID}/Calls/LandingCalls?sig={} HTTP/1.1\r\nHost: h\r\nAuthorization: {}\r\n{headers}Content-Length: {}\r\n\r\n",
                signature.sig,
                signature.authorization,
                body.len()
            );
            let answer = server.send_raw(&[head.as_bytes(), &body].concat()).await;
            assert_eq!(status_code(&answer), code, "{bytes:x?}: {answer}");
        }
    }
}

#[tokio::test]
async fn every_known_field_twice_and_every_control_character_is_refused() {
    let server = TestServer::start().await;
    for name in [
        "appId",
        "to",
        "mediaTxt",
        "respUrl",
        "userData",
        "playTimes",
    ] {
        let twice = format!("<{name}>1</{name}><{name}>1</{name}>");
        let answer = post(&server, XML, &format!("<LandingCall>{twice}</LandingCall>")).await;
        assert_eq!(status_code(&answer), "112613", "{name}: {answer}");
        let answer = post(
            &server,
            JSON,
            &format!("{{\"{name}\":\"1\",\"{name}\":\"1\"}}"),
        )
        .await;
        assert_eq!(status_code(&answer), "110141", "{name}: {answer}");
    }
    for character in (0..32_u8).filter(|byte| !b"\t\r\n".contains(byte)) {
        let character = char::from(character);
        let answer = post(
            &server,
            XML,
            &xml(1, &format!("<mediaTxt>{character}</mediaTxt>")),
        )
        .await;
        assert_eq!(status_code(&answer), "112613", "{character:?}: {answer}");
        let answer = post(
            &server,
            JSON,
            &json(1, &format!("\"mediaTxt\":\"{character}\"")),
        )
        .await;
        assert_eq!(status_code(&answer), "110141", "{character:?}: {answer}");
    }
}

/// Clients of 2014 run on systems of that time.
#[tokio::test]
async fn a_client_that_knows_no_tls_newer_than_1_2_is_served() {
    let server = TestServer::start().await;
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(&server.ca).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap();
    let signature = server.sign();
    let request = format!(
        "GET /2013-12-26/Accounts/{SID}/AccountInfo?sig={} HTTP/1.0\r\nAuthorization: {}\r\n\r\n",
        signature.sig, signature.authorization
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(status_code(&read_answer(&mut stream).await), "000000");
}
