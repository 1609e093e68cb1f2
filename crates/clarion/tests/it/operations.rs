//! What is the same for all operations: where they are, by which methods, in which format they answer, and what is said about those that do not exist.

use clarion::api::operations::OPERATIONS;
use clarion::domain::account::{AccountChange, ApplicationChange, BillJsonKey};
use clarion::domain::money::Money;

use crate::audio_files::wav;
use crate::support::{APP, SID, TestServer, eventually, status_code};

/// A signed request, written by hand.
async fn send(server: &TestServer, method: &str, path: &str, headers: &str, body: &[u8]) -> String {
    let signature = server.sign();
    let mark = if path.contains('?') { '&' } else { '?' };
    let head = format!(
        "{method} /2013-12-26/{path}{mark}sig={} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\nAuthorization: {}\r\n{headers}Content-Length: {}\r\n\r\n",
        signature.sig,
        server.address.port(),
        signature.authorization,
        body.len()
    );
    server.send_raw(&[head.as_bytes(), body].concat()).await
}

#[tokio::test]
async fn every_operation_is_where_the_table_has_it() {
    let server = TestServer::start().await;
    for operation in OPERATIONS {
        for method in ["GET", "POST", "PUT"] {
            let path = format!("Accounts/{SID}/{}", operation.path);
            let answer = send(&server, method, &path, "", b"").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            let is_offered = status_code(&answer) != "190008";
            assert_eq!(
                is_offered,
                operation.methods.contains(&method),
                "{method} {path}: {answer}"
            );
            if !is_offered {
                let wanted = format!("use {}", operation.methods.join(" or "));
                assert!(answer.contains(&wanted), "{answer}");
            }
        }
    }
}

#[test]
fn the_description_has_every_value_of_an_answer_and_every_reason_of_a_refusal() {
    let document = clarion::api::openapi::describe();
    for operation in OPERATIONS {
        let path = format!(
            "/{{SoftVersion}}/Accounts/{{accountSid}}/{}",
            operation.path
        );
        let described = &document["paths"][path]["post"];
        let content = &described["responses"]["200"]["content"]["application/json"];
        let answer = &content["schema"]["oneOf"][0];
        assert_eq!(answer["required"][0], "statusCode", "{answer}");
        let values = operation.answer.group;
        let values = values.map_or(answer, |group| &answer["properties"][group]);
        for field in operation.answer.fields {
            let rule = &values["properties"][field.name]["description"];
            assert_eq!(rule, field.rule, "{} {}", operation.path, field.name);
            let required = values["required"].as_array().unwrap();
            assert_eq!(required.contains(&field.name.into()), field.required);
        }
        for (code, when) in operation.refusals() {
            let reason = format!("{}: {when}.", code.code());
            let reasons = described["description"].as_str().unwrap();
            assert!(reasons.contains(&reason), "{reasons}");
        }
    }
}

#[tokio::test]
async fn what_is_not_offered_is_answered_with_what_is() {
    let server = TestServer::start().await;
    for (path, words) in [
        (
            format!("Accounts/{SID}/SMS/TemplateSMS"),
            "offered are Calls/LandingCalls, Calls/VoiceVerify",
        ),
        (
            format!("Accounts/{SID}/ivr/createconf"),
            "offered are Calls/LandingCalls",
        ),
        (
            format!("SubAccounts/{SID}/Calls/Callback"),
            "offered are Calls/LandingCalls",
        ),
        (
            format!("SubAccounts/{SID}"),
            "offered are Calls/LandingCalls",
        ),
        (
            format!("SubAccounts/{SID}/Calls/LandingCalls"),
            "offered as Accounts/{accountSid}/Calls/LandingCalls",
        ),
        (
            format!("Accounts/{SID}/calls/landingcalls"),
            "offered as Accounts/{accountSid}/Calls/LandingCalls",
        ),
    ] {
        for (accept, begins) in [
            ("application/json", "{\"statusCode\":\"190008\""),
            ("application/xml", "<?xml "),
        ] {
            let answer = send(
                &server,
                "POST",
                &path,
                &format!("Accept: {accept}\r\n"),
                b"",
            )
            .await;
            let body = answer.split("\r\n\r\n").nth(1).unwrap();
            assert!(
                answer.starts_with("HTTP/1.1 200") && body.starts_with(begins),
                "{path}: {answer}"
            );
            assert!(
                body.contains("190008") && body.contains(words),
                "{path}: {answer}"
            );
        }
    }
    let path = format!("SubAccounts/{SID}/Calls/CallCancel");
    let answer = send(&server, "GET", &path, "", b"").await;
    assert!(answer.contains("use POST"), "{answer}");
    // The same checks come first below both.
    for tree in ["Accounts", "SubAccounts"] {
        let request = format!(
            "POST /2013-12-26/{tree}/{SID}/x?sig=a HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        let answer = server.send_raw(request.as_bytes()).await;
        assert_eq!(status_code(&answer), "111101", "{answer}");
    }
    let elsewhere = send(&server, "POST", "Other/x", "", b"").await;
    assert!(elsewhere.starts_with("HTTP/1.1 404"), "{elsewhere}");
}

#[tokio::test]
async fn the_answer_has_the_format_that_accept_wants_most() {
    let server = TestServer::start().await;
    let path = format!("Accounts/{SID}/AccountInfo");
    for (accept, is_json) in [
        ("application/json", true),
        ("application/xml;", false),
        ("application/xml, application/json", false),
        ("application/json, application/xml", true),
        ("application/xml;q=0.5, application/json", true),
        ("application/json;q=0.5, application/xml; q=0.8", false),
        ("text/xml;q=0, application/json;q=0.1", true),
        (
            "text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8",
            false,
        ),
        ("*/*", false),
        ("text/html", false),
    ] {
        let answer = send(&server, "GET", &path, &format!("Accept: {accept}\r\n"), b"").await;
        assert_eq!(
            answer.contains("application/json"),
            is_json,
            "{accept}: {answer}"
        );
    }
}

#[tokio::test]
async fn an_account_is_shown_with_what_it_has() {
    let server = TestServer::start().await;
    let shown = server.ask("AccountInfo", "json", None).await;
    assert_eq!(
        shown,
        "{\"statusCode\":\"000000\",\"Account\":{\"friendlyName\":\"Test\",\"status\":\"active\",\"type\":\"main\",\
         \"dateCreated\":\"2026-01-02 11:04:05\",\"dateUpdated\":\"2026-01-02 11:04:05\"}}"
    );
    let change = AccountChange {
        balance: Some(Some("12.5".parse::<Money>().unwrap())),
        changed_at: Some("2026-01-03T03:04:05Z".parse().unwrap()),
        ..AccountChange::default()
    };
    server.change_account(change).await;
    let wanted = "<type>main</type><balance>12.50</balance><dateCreated>2026-01-02 11:04:05</dateCreated><dateUpdated>2026-01-03 11:04:05</dateUpdated>";
    eventually("the change is seen", async || {
        server
            .ask("AccountInfo", "xml", None)
            .await
            .contains(wanted)
    })
    .await;
}

#[tokio::test]
async fn a_file_has_the_name_that_its_client_meant() {
    let server = TestServer::start().await;
    let upload = async |query: &str| {
        let path = format!("Accounts/{SID}/Calls/MediaFileUpload?{query}");
        send(&server, "POST", &path, "", &wav(1000)).await
    };
    for (query, name) in [
        (format!("appid={APP}&filename=a%2Bb.wav"), "a+b.wav"),
        (format!("appId={APP}&filename=c+d.wav"), "c+d.wav"),
        (format!("APPID={APP}&fileName=e%20f.wav"), "e f.wav"),
        (
            format!("appid={APP}&filename=%E6%AC%A2%E8%BF%8E.wav"),
            "欢迎.wav",
        ),
        // GBK.
        (format!("appid={APP}&filename=%CD%A8%D6%AA.wav"), "通知.wav"),
    ] {
        let answer = upload(&query).await;
        assert_eq!(status_code(&answer), "000000", "{query}: {answer}");
        let fields = format!("\"to\":\"13800000001\",\"mediaName\":\"{name}\"");
        let placed = server.call_json(&fields).await;
        assert_eq!(status_code(&placed), "000000", "{name}: {placed}");
        assert_eq!(downloaded(&server, &answer).await, wav(1000), "{name}");
    }
    for query in [
        format!("appid={APP}&filename=%FF%FE.wav"),
        format!("appid={APP}&filename=%B5.wav"),
    ] {
        let answer = upload(&query).await;
        assert_eq!(status_code(&answer), "108023", "{answer}");
        assert!(
            answer.contains("filename must be percent-encoded as UTF-8 or GBK"),
            "{answer}"
        );
    }
}

/// The bytes that a client gets at the address that the answer to an upload names, signed like any other request.
async fn downloaded(server: &TestServer, answer: &str) -> Vec<u8> {
    let url = answer.split("<downloadUrl>").nth(1).unwrap();
    let url = url.split("</downloadUrl>").next().unwrap();
    let url = url.replace("&amp;", "&");
    let signature = server.sign();
    let output = tokio::process::Command::new("curl")
        .args(["--silent", "--show-error", "--fail", "--cacert"])
        .arg(&server.ca)
        .args([
            "--header",
            &format!("Authorization: {}", signature.authorization),
        ])
        .arg(format!("{url}&sig={}", signature.sig))
        .output()
        .await
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{url}: {error}");
    output.stdout
}

/// A fork of the vendor's Java library understands only the one of XML.
#[tokio::test]
async fn an_application_has_the_key_of_a_bill_that_its_client_knows() {
    let server = TestServer::start_with("[bills]\ngrace_seconds = 0").await;
    server.permit_bills().await;
    let ask = async || {
        let body = format!("{{\"appId\":\"{APP}\",\"date\":\"day\"}}");
        server.ask("BillRecords", "json", Some(&body)).await
    };
    let answer = ask().await;
    assert!(answer.contains("\"downurl\":\"https://"), "{answer}");
    let set = async |key| {
        let change = ApplicationChange {
            bill_json_key: Some(key),
            ..ApplicationChange::default()
        };
        server.change_application(change).await;
    };
    set(Some(BillJsonKey::AsInXml)).await;
    eventually("it is the other", async || {
        ask().await.contains("\"downUrl\":\"https://")
    })
    .await;
    set(None).await;
    eventually("it is the platform's", async || {
        ask().await.contains("\"downurl\":\"https://")
    })
    .await;
}
