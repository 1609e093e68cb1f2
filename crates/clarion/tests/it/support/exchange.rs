//! The far end of a trunk, which only watches: it keeps every INVITE as it was written, and refuses the call.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use super::eventually;

pub struct Exchange {
    pub address: SocketAddr,
    invites: Arc<Mutex<Vec<String>>>,
    _answering: JoinSet<()>,
}

impl Exchange {
    /// Starts an exchange. `status` is a text such as `486 Busy Here`.
    pub async fn that_refuses_with(status: &'static str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let invites = Arc::new(Mutex::new(Vec::new()));
        let mut answering = JoinSet::new();
        let note = Arc::clone(&invites);
        answering.spawn(async move {
            let mut buffer = vec![0; 65_536];
            loop {
                let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
                let text = String::from_utf8(buffer[..length].to_vec()).unwrap();
                if text.starts_with("INVITE ") {
                    let answer = refusal(&text, status);
                    socket.send_to(answer.as_bytes(), from).await.unwrap();
                    let mut known = note.lock().unwrap();
                    // A known INVITE was sent again because our answer was slow.
                    if !known.contains(&text) {
                        known.push(text);
                    }
                }
            }
        });
        Self {
            address,
            invites,
            _answering: answering,
        }
    }

    pub async fn has_seen(&self, count: usize) -> Vec<String> {
        let what = format!("{count} INVITEs");
        eventually(&what, async || self.invites.lock().unwrap().len() >= count).await;
        self.invites.lock().unwrap().clone()
    }
}

fn refusal(invite: &str, status: &str) -> String {
    let mut answer = format!("SIP/2.0 {status}\r\n");
    for line in invite.lines() {
        let kept = ["Via:", "From:", "Call-ID:", "CSeq:"];
        if kept.iter().any(|name| line.starts_with(name)) {
            answer.push_str(&format!("{line}\r\n"));
        }
    }
    answer
        + &format!(
            "To: {};tag=x\r\nContent-Length: 0\r\n\r\n",
            header(invite, "To")
        )
}

/// Returns the value of a header of a SIP message.
pub fn header<'a>(message: &'a str, name: &str) -> &'a str {
    find_header(message, name).unwrap_or_else(|| panic!("no {name} in\n{message}"))
}

pub fn find_header<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    message
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
