//! Requests as real client libraries write them, byte for byte over TLS: header order, spacing, quirks.
//!
//! The fixtures are ours, each in the shape of one client; only `sig` and `Authorization` are made anew. Where recordings of the clients
//! themselves lie beside the project, those are replayed too.

use std::path::{Path, PathBuf};

use crate::support::{SID, TestServer, status_code};

/// What an operation answers to these requests.
fn expected_code(target: &str) -> &'static str {
    let operation = target.split_once(SID).unwrap().1;
    let operation = operation.split('?').next().unwrap().trim_matches('/');
    match operation {
        "Calls/LandingCalls" | "Calls/VoiceVerify" | "AccountInfo" | "BillRecords" => "000000",
        // They ask for a call of their own time.
        "CallResult" | "ivr/call" | "Calls/CallCancel" => "190006",
        // These bytes say RIFF and no more.
        "Calls/MediaFileUpload" => "190002",
        other => panic!("nobody said what {other} answers"),
    }
}

/// The same bytes with a fresh signature. All of them have the same length as before.
pub fn freshly_signed(server: &TestServer, request: &[u8]) -> Vec<u8> {
    let signature = server.sign();
    let text = String::from_utf8(request.to_vec()).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let lines = head.split("\r\n").map(|line| {
        if let Some((before, rest)) = line.split_once("sig=") {
            return format!("{before}sig={}{}", signature.sig, &rest[32..]);
        }
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                let blank = if value.starts_with(' ') { " " } else { "" };
                format!("{name}:{blank}{}", signature.authorization)
            }
            _ => line.to_owned(),
        }
    });
    format!("{}\r\n\r\n{body}", lines.collect::<Vec<_>>().join("\r\n")).into_bytes()
}

async fn replay(folder: &Path) -> usize {
    let server = TestServer::start_with("[bills]\ngrace_seconds = 0").await;
    server.permit_bills().await;
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in &files {
        let name = file.file_name().unwrap().to_string_lossy();
        let request = freshly_signed(&server, &std::fs::read(file).unwrap());
        let text = String::from_utf8_lossy(&request).into_owned();
        let answer = server.send_raw(&request).await;
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n"),
            "{name}: {answer}"
        );
        let target = text.split(' ').nth(1).unwrap();
        assert_eq!(
            status_code(&answer),
            expected_code(target),
            "{name}: {answer}"
        );
        let head = text.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
        let json = head
            .lines()
            .any(|line| line.starts_with("accept:") && line.contains("json"));
        let content_type = format!(
            "content-type: application/{};charset=utf-8",
            if json { "json" } else { "xml" }
        );
        assert!(answer.contains(&content_type), "{name}: {answer}");
        let body = answer.split("\r\n\r\n").nth(1).unwrap();
        let opening = if json {
            "{\"statusCode\":\""
        } else {
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><Response><statusCode>"
        };
        assert!(
            body.starts_with(opening) && !body.contains('\n'),
            "{name}: {body}"
        );
    }
    server.stop().await;
    files.len()
}

#[tokio::test]
async fn requests_in_the_shape_of_each_client_are_answered_in_its_format() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/requests");
    assert_eq!(replay(&folder).await, 33);
}

#[tokio::test]
async fn recordings_beside_the_project_are_answered_too() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    if !folder.exists() {
        eprintln!("no recordings beside the project; the fixtures stand for them");
        return;
    }
    assert!(replay(&folder).await > 0);
}
