//! Real clients, unmodified: what `scripts/setup` installs by name, and what a language brings along.
//!
//! No PHP library is among them: those are on Packagist, and `scripts/setup` installs from npm and PyPI alone. What the vendor's PHP library sends is
//! replayed by `captures.rs` (`php-…`): notification, code, result, state, bill, account.

mod examples;

use std::path::{Path, PathBuf};

use clarion::domain::call::CallKind;
use serde_json::Value;
use tokio::process::Command;

use crate::support::{APP, SID, TOKEN, TestServer, call_sid};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/clients")
        .join(name)
}

/// What a client printed: one JSON value a line.
async fn run(command: &mut Command) -> Vec<Value> {
    let output = command
        .output()
        .await
        .unwrap_or_else(|error| panic!("{command:?}: {error}; run `make setup`"));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn code(answer: &Value) -> &str {
    answer["statusCode"].as_str().unwrap()
}

#[tokio::test]
async fn the_npm_package_yuntongxun_works_unmodified() {
    let server = TestServer::start_with("[bills]\ngrace_seconds = 0").await;
    server.permit_bills().await;
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/node_modules");
    assert!(
        modules.join("yuntongxun").exists(),
        "the npm package yuntongxun is missing: run `make setup`"
    );
    let answers = run(Command::new("node")
        .arg("--no-deprecation")
        .arg(script("yuntongxun.js"))
        .args([
            &format!("https://localhost:{}", server.address.port()),
            SID,
            TOKEN,
            APP,
        ])
        .env("NODE_PATH", modules)
        .env("NODE_EXTRA_CA_CERTS", &server.ca))
    .await;
    assert!(
        answers.iter().all(|answer| answer["status"] == 200),
        "{answers:?}"
    );
    let codes: Vec<_> = answers.iter().map(|answer| code(&answer["body"])).collect();
    assert_eq!(
        codes,
        [
            "000000", "000000", "110081", "000000", "000000", "190008", "000000", "108034"
        ]
    );
    let sid = answers[6]["body"]["VoiceVerify"]["callSid"].as_str();
    let call = server
        .store
        .call_record(&sid.unwrap().parse().unwrap())
        .await;
    assert_eq!(call.unwrap().unwrap().kind, CallKind::Verification);
    assert_eq!(
        answers[0]["body"]["LandingCall"]["callSid"]
            .as_str()
            .unwrap()
            .len(),
        32
    );
    assert_eq!(answers[4]["body"]["Account"]["friendlyName"], "Test");
}

/// Written for Python 2 and https, with the certificate verified: what Debian has for that is Jython.
#[tokio::test]
async fn the_pypi_package_yuntongxun_works_unmodified() {
    let server = TestServer::start_with("[bills]\ngrace_seconds = 0").await;
    server.permit_bills().await;
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients/python");
    assert!(
        package.join("yuntongxun").exists(),
        "the Python package yuntongxun is missing: run `make setup`"
    );
    let jars = ["jython", "bcprov", "bcpkix", "bcutil", "xercesImpl"];
    let class_path = jars.map(|name| format!("/usr/share/java/{name}.jar"));
    // Without the machine's own CAs: Jython would read all of them for every request.
    let no_certificates = tempfile::tempdir().unwrap();
    let answers = run(Command::new("java")
        .args(["-cp", &class_path.join(":"), "org.python.util.jython"])
        .arg(script("pypi_yuntongxun.py"))
        .args([&server.address.port().to_string(), SID, TOKEN, APP])
        .env("JYTHONPATH", package)
        .env("SSL_CERT_FILE", &server.ca)
        .env("SSL_CERT_DIR", no_certificates.path()))
    .await;
    let codes: Vec<_> = answers.iter().map(code).collect();
    let wanted = "000000 000000 000000 110081 000000 000000 000000 108034 000000";
    assert_eq!(codes, wanted.split(' ').collect::<Vec<_>>());
    for (answer, group, kind) in [
        (0, "LandingCall", CallKind::Notification),
        (2, "LandingCall", CallKind::Notification),
        (5, "VoiceVerify", CallKind::Verification),
        (6, "VoiceVerify", CallKind::Verification),
    ] {
        let sid = answers[answer][group]["callSid"].as_str().unwrap();
        let call = server.store.call_record(&sid.parse().unwrap()).await;
        assert_eq!(call.unwrap().unwrap().kind, kind, "{}", answers[answer]);
    }
    assert_eq!(answers[8]["Account"]["type"], "main", "{}", answers[8]);
    assert!(answers[1]["downUrl"].is_string(), "{}", answers[1]);
    assert!(answers[4]["downurl"].is_string(), "{}", answers[4]);
}

#[tokio::test]
async fn pythons_standard_library_is_enough_for_a_client() {
    let server = TestServer::start_with("[bills]\ngrace_seconds = 0").await;
    server.permit_bills().await;
    let answers = run(Command::new("python3")
        .arg(script("standard_library.py"))
        .arg(format!("localhost:{}", server.address.port()))
        .arg(&server.ca)
        .args([SID, TOKEN, APP]))
    .await;
    let codes: Vec<_> = answers.iter().map(code).collect();
    assert_eq!(
        codes,
        ["000000", "000000", "108036", "000000", "000000", "000000"]
    );
    assert_eq!(answers[4]["CallResult"]["state"], "3");
}

/// With the lines of the README for its `conf/app.conf`, it makes this request: JSON with every field, most of them empty, and no Accept.
#[tokio::test]
async fn prometheus_alert_calls_with_the_settings_of_the_readme() {
    let readme = include_str!("../../../../README.md");
    let settings = readme.split("```ini\n").nth(1).unwrap();
    let settings = settings.split("```").next().unwrap();
    let settings: Vec<_> = settings
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    let names: Vec<_> = settings.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "open-rlydh",
            "RLY_URL",
            "RLY_ACCOUNT_SID",
            "RLY_ACCOUNT_TOKEN",
            "RLY_APP_ID"
        ]
    );
    let base = url::Url::parse(settings[1].1).unwrap();
    let server = TestServer::start().await;
    let signature = server.sign();
    let body = format!(
        r#"{{"to":"13800000001","mediaName":"","mediaTxt":"prometheus告警:磁盘已满","appId":"{APP}","displayNum":"","playTimes":"3","respUrl":"","userData":"","maxCallTime":"","speed":"","volume":"","pitch":"","bgsound":""}}"#
    );
    let request = format!(
        "POST {}{SID}/Calls/LandingCalls?sig={} HTTP/1.1\r\nHost: {}:8883\r\nUser-Agent: Go-http-client/1.1\r\nContent-Length: {}\r\nAuthorization: {}\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n{body}",
        base.path(),
        signature.sig,
        base.host_str().unwrap(),
        body.len(),
        signature.authorization,
    );
    let answer = server.send_raw(request.as_bytes()).await;
    assert!(
        answer.contains("<statusCode>000000</statusCode>"),
        "{answer}"
    );
    let sid = call_sid(&answer).parse().unwrap();
    let call = server.store.call_record(&sid).await.unwrap().unwrap();
    assert_eq!(call.number.digits(), "8613800000001");
}
