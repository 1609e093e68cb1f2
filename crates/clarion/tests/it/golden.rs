//! What clients of today get, to the byte: answers and callbacks, compared with files that were written by the version before notices. Only what differs from call to
//! call is masked. `UPDATE_GOLDEN=1` writes the files anew, which is right only where the wire was meant to change.

use std::path::{Path, PathBuf};

use crate::calls::stage::Stage;
use crate::captures::freshly_signed;
use crate::support::{APP, TestServer, call_sid};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn compare(name: &str, found: &str) {
    let path = folder().join("golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, found).unwrap();
        return;
    }
    let wanted = std::fs::read_to_string(&path).unwrap();
    for (wanted, found) in wanted.lines().zip(found.lines()) {
        assert_eq!(wanted, found, "{name}");
    }
    assert_eq!(wanted, found, "{name}");
}

/// The same text with names for what differs from call to call.
fn masked(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        let name = line.split(": ").next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "date" | "host" | "webhook-signature" | "webhook-timestamp" | "content-length" => {
                format!("{name}: …\r")
            }
            _ => masked_line(line),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn masked_line(line: &str) -> String {
    let mut masked = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let word = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (name, length) = if is_time(rest) {
            ("<time>", 19)
        } else if word >= 32 {
            ("<id>", word)
        } else if digits == 14 && word == 14 {
            ("<time>", word)
        } else if rest.starts_with("127.0.0.1:") || rest.starts_with("localhost:") {
            let host = rest.find(':').unwrap_or_default() + 1;
            let port = rest[host..].bytes().take_while(u8::is_ascii_digit).count();
            ("<address>", host + port)
        } else if let Some(seconds) = rest.strip_prefix("<duration>") {
            let seconds = seconds.bytes().take_while(u8::is_ascii_digit).count();
            ("<duration>…", "<duration>".len() + seconds)
        } else if word > 0 {
            masked.push_str(&rest[..word]);
            ("", word)
        } else {
            masked.push(first);
            ("", first.len_utf8())
        };
        masked.push_str(name);
        rest = &rest[length..];
    }
    masked
}

/// Such as `2026-11-15 02:35:09`.
fn is_time(text: &str) -> bool {
    let shape = "dddd-dd-dd dd:dd:dd".bytes();
    text.len() >= 19
        && shape.zip(text.bytes()).all(|(shape, byte)| match shape {
            b'd' => byte.is_ascii_digit(),
            fixed => byte == fixed,
        })
}

fn heading(request: &Path) -> String {
    format!("== {}", request.file_name().unwrap().to_string_lossy())
}

#[tokio::test]
async fn answers_to_the_clients_of_today_are_those_of_before() {
    let server = TestServer::start_with("[bills]\ngrace_seconds = 0").await;
    server.permit_bills().await;
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder().join("requests"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    // Requests that came later have no answer of the version before.
    if std::env::var_os("UPDATE_GOLDEN").is_none() {
        let recorded = std::fs::read_to_string(folder().join("golden/answers.txt")).unwrap();
        let is_recorded = |line| recorded.lines().any(|recorded| recorded == line);
        files.retain(|file| is_recorded(heading(file)));
        assert_eq!(files.len(), 29);
    }
    let mut answers = String::new();
    for file in &files {
        let request = freshly_signed(&server, &std::fs::read(file).unwrap());
        let answer = server.send_raw(&request).await;
        answers.push_str(&format!("{}\n{}\n", heading(file), masked(&answer)));
    }
    compare("answers.txt", &answers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callbacks_to_the_clients_of_today_are_those_of_before() {
    let stage = Stage::new("[dispatch]\nring_seconds = 1\n").await;
    let mut callbacks = String::new();
    for (operation, to, fields) in [
        (
            "LandingCalls",
            "13800000005",
            "\"mediaTxt\":\"hello\",\"userData\":\"order <&> 7\"",
        ),
        ("LandingCalls", "13800000002", "\"mediaTxt\":\"hello\""),
        (
            "LandingCalls",
            "13800000003",
            "\"mediaName\":\"ccp_marketingcall.wav\",\"mediaNameType\":\"1\"",
        ),
        (
            "LandingCalls",
            "13800000004",
            "\"mediaTxt\":\"hello\",\"userData\":\"u\"",
        ),
        (
            "LandingCalls",
            "13800000008",
            "\"mediaTxt\":\"hello\",\"playTimes\":\"2\"",
        ),
        (
            "LandingCalls",
            "010-52823298-1",
            "\"mediaTxt\":\"hello\",\"maxCallTime\":\"1\"",
        ),
        (
            "VoiceVerify",
            "13800000005",
            "\"verifyCode\":\"7Q42\",\"userData\":\"login 7\"",
        ),
        (
            "VoiceVerify",
            "13800000002",
            "\"verifyCode\":\"1234\",\"lang\":\"en\"",
        ),
    ] {
        let body = format!(
            "{{\"appId\":\"{APP}\",\"to\":\"{to}\",\"respUrl\":\"{}\",{fields}}}",
            stage.receiver.url()
        );
        let operation_path = format!("Calls/{operation}");
        let answer = stage.server.ask(&operation_path, "json", Some(&body)).await;
        let sid = call_sid(&answer).parse().unwrap();
        stage.report_of(&sid).await;
        let received = stage.receiver.received();
        let report = received.iter().find(|one| one.body.contains(sid.as_str()));
        let report = report.unwrap();
        callbacks.push_str(&format!(
            "== {operation} {to}\n{}\n{}\n",
            masked(&report.head),
            masked(&report.body)
        ));
    }
    compare("callbacks.txt", &callbacks);
}
