//! The smallest SIP peer: it answers every request over UDP as a test wants, and remembers its requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// Listens until it is dropped.
pub struct SipPeer {
    pub address: SocketAddr,
    pub requests: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

impl SipPeer {
    /// Starts a peer. `answer` returns the status code and more header lines for a method, or `None` for no answer. What comes after an empty
    /// line is the body.
    pub async fn start(
        answer: impl Fn(&str) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut bytes = vec![0; 65_536];
            while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
                let request = String::from_utf8_lossy(&bytes[..length]).into_owned();
                let method = request.split(' ').next().unwrap_or_default().to_owned();
                if let Some((code, headers)) = answer(&method) {
                    let reply = reply(&request, code, &headers, address);
                    let _ = socket.send_to(reply.as_bytes(), from).await;
                }
                seen.lock().unwrap().push(request);
            }
        });
        Self {
            address,
            requests,
            _task: task,
        }
    }

    pub fn methods(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let method = |request: &String| request.split(' ').next().unwrap().to_owned();
        requests.iter().map(method).collect()
    }
}

fn reply(request: &str, code: u16, more: &str, here: SocketAddr) -> String {
    let (more, body) = more.split_once("\n\n").unwrap_or((more, ""));
    let mut lines = vec![format!("SIP/2.0 {code} Said")];
    for line in request.lines().skip(1).take_while(|line| !line.is_empty()) {
        let name = line.split(':').next().unwrap().to_ascii_lowercase();
        match name.as_str() {
            "via" | "from" | "call-id" | "cseq" => lines.push(line.to_owned()),
            // Within a dialog it has one.
            "to" if line.contains(";tag=") => lines.push(line.to_owned()),
            "to" => lines.push(format!("{line};tag=peer")),
            "contact" if code == 200 && request.starts_with("REGISTER") => {
                lines.push(format!("{line};expires=60"));
            }
            _ => {}
        }
    }
    if code == 200 && request.starts_with("INVITE") {
        lines.push(format!("Contact: <sip:peer@{here}>"));
    }
    lines.extend(more.lines().map(str::to_owned));
    lines.push(format!("Content-Length: {}", body.len()));
    format!("{}\r\n\r\n{body}", lines.join("\r\n"))
}
