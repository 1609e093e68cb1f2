//! A peer of our own making, that says what we tell it to.

use std::net::SocketAddr;

use tokio::net::{TcpListener, UdpSocket};

use crate::lab::{PATIENCE, loopback};

const SDP: &str = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 8\r\n";

/// The value of a header.
pub fn header<'a>(message: &'a str, name: &str) -> &'a str {
    let mut lines = message.lines();
    lines
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        .unwrap_or_else(|| panic!("{name} is missing in\n{message}"))
}

pub struct Puppet {
    pub socket: UdpSocket,
    pub peer: Option<SocketAddr>,
}

impl Puppet {
    pub async fn new() -> Self {
        Self {
            socket: UdpSocket::bind(loopback()).await.unwrap(),
            peer: None,
        }
    }

    /// One that could be asked over TCP at the same address, if anybody wanted that.
    pub async fn beside_tcp() -> (Self, TcpListener) {
        loop {
            let puppet = Self::new().await;
            // Another test may have the TCP port of this number.
            if let Ok(tcp) = TcpListener::bind(puppet.address()).await {
                return (puppet, tcp);
            }
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    /// The next request of a method; others are passed over.
    pub async fn request(&mut self, method: &str) -> String {
        let mut buffer = vec![0; 65_536];
        loop {
            let (length, from) = tokio::time::timeout(PATIENCE, self.socket.recv_from(&mut buffer))
                .await
                .unwrap_or_else(|_| panic!("no {method} in time"))
                .unwrap();
            self.peer = Some(from);
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.starts_with(method) {
                return text;
            }
        }
    }

    pub async fn respond(&self, request: &str, status: &str, extra: &str) {
        self.respond_as("puppet", request, status, extra, "").await;
    }

    /// Answers with a description.
    pub async fn answer_as(&self, tag: &str, invite: &str) {
        let extra = format!("{}Content-Type: application/sdp\r\n", self.contact());
        self.respond_as(tag, invite, "200 OK", &extra, SDP).await;
    }

    /// Responds as one of several that a proxy has asked.
    pub async fn respond_as(
        &self,
        tag: &str,
        request: &str,
        status: &str,
        extra: &str,
        body: &str,
    ) {
        let kept = request.lines().filter(|line| {
            ["Via:", "From:", "Call-ID:", "CSeq:"]
                .iter()
                .any(|name| line.starts_with(name))
        });
        let mut text = format!("SIP/2.0 {status}\r\n");
        for line in kept {
            text.push_str(line);
            text.push_str("\r\n");
        }
        let to = header(request, "To");
        let tag = if to.contains("tag=") {
            String::new()
        } else {
            format!(";tag={tag}")
        };
        let length = body.len();
        text.push_str(&format!(
            "To: {to}{tag}\r\n{extra}Content-Length: {length}\r\n\r\n{body}"
        ));
        self.send(&text).await;
    }

    pub async fn send(&self, text: &str) {
        let peer = self.peer.unwrap();
        self.socket.send_to(text.as_bytes(), peer).await.unwrap();
    }

    /// Asks for something inside the dialog that `invite` has opened.
    pub async fn ask(&self, method: &str, cseq: u32, invite: &str, extra: &str) {
        self.ask_with(method, cseq, invite, extra, "").await;
    }

    /// The same with a body.
    pub async fn ask_with(&self, method: &str, cseq: u32, invite: &str, extra: &str, body: &str) {
        let target = header(invite, "Contact").replace(['<', '>'], "");
        let text = format!(
            "{method} {target} SIP/2.0\r\nVia: SIP/2.0/UDP {};branch=z9hG4bK{:016x}\r\nMax-Forwards: 70\r\nFrom: {};tag=puppet\r\nTo: {}\r\nCall-ID: {}\r\nCSeq: {cseq} {method}\r\n{extra}Content-Length: {}\r\n\r\n{body}",
            self.address(),
            rand::random::<u64>(),
            header(invite, "To"),
            header(invite, "From"),
            header(invite, "Call-ID"),
            body.len(),
        );
        self.send(&text).await;
    }

    pub fn contact(&self) -> String {
        format!("Contact: <sip:puppet@{}>\r\n", self.address())
    }
}
