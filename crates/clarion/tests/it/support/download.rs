//! Fetches a file as a download client does, head and bytes.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{APP, PATIENCE, TestServer};

#[derive(Debug)]
pub struct Fetched {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Fetched {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// The address of a bill and its token, as the answer names them.
#[derive(Debug, Clone)]
pub struct Download {
    pub url: String,
    pub token: String,
}

impl Download {
    /// Returns the request target that clients make of them.
    pub fn target(&self) -> String {
        let path = self.url.splitn(4, '/').nth(3).unwrap();
        format!("/{path}?token={}", self.token)
    }
}

impl TestServer {
    /// Asks for the bill in JSON. Returns the whole answer.
    pub async fn ask_bill(&self, keywords: &str) -> String {
        let body =
            serde_json::json!({ "appId": APP, "date": "day", "keywords": keywords }).to_string();
        self.ask("BillRecords", "json", Some(&body)).await
    }

    pub async fn bill(&self, keywords: &str) -> Download {
        let answer = self.ask_bill(keywords).await;
        let value: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let text = |name: &str| {
            value[name]
                .as_str()
                .unwrap_or_else(|| panic!("{answer}"))
                .to_owned()
        };
        Download {
            url: text("downurl"),
            token: text("token"),
        }
    }

    pub async fn fetch(&self, method: &str, target: &str, headers: &str) -> Fetched {
        let mut stream = self.door().tls(&[]).await;
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = async {
            let mut chunk = vec![0; 16384];
            while let Ok(count @ 1..) = stream.read(&mut chunk).await {
                answer.extend_from_slice(&chunk[..count]);
            }
        };
        tokio::time::timeout(PATIENCE, read)
            .await
            .expect("a whole answer");
        let end = answer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let mut body = answer[end + 4..].to_vec();
        if head
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked")
        {
            body = unchunked(&body);
        }
        Fetched {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head,
            body,
        }
    }

    pub async fn get(&self, target: &str) -> Fetched {
        self.fetch("GET", target, "").await
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            break;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 4 + length..];
    }
    body
}
