//! A peer of our own making, that says what we tell it to.

use std::net::SocketAddr;

use crate::lab::{PATIENCE, loopback};

pub struct Puppet {
    pub socket: tokio::net::UdpSocket,
    pub peer: Option<SocketAddr>,
}

impl Puppet {
    pub async fn new() -> Self {
        Self {
            socket: tokio::net::UdpSocket::bind(loopback()).await.unwrap(),
            peer: None,
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
        let to = request
            .lines()
            .find(|line| line.starts_with("To:"))
            .unwrap();
        let tag = if to.contains("tag=") {
            ""
        } else {
            ";tag=puppet"
        };
        text.push_str(&format!("{to}{tag}\r\n{extra}Content-Length: 0\r\n\r\n"));
        self.socket
            .send_to(text.as_bytes(), self.peer.unwrap())
            .await
            .unwrap();
    }

    pub fn contact(&self) -> String {
        format!("Contact: <sip:puppet@{}>\r\n", self.address())
    }
}
