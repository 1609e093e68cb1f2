//! Bad weather between us and a peer, without chance: every message is lost once, or every message comes twice.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::play::name;
use crate::lab::loopback;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    LosesEveryMessageOnce,
    DoublesEveryMessage,
}

/// Carries messages between a peer and whoever calls it.
pub struct Relay {
    pub address: SocketAddr,
    socket: Arc<UdpSocket>,
    seen: Arc<Mutex<Vec<String>>>,
    carrying: Option<JoinHandle<()>>,
}

impl Relay {
    pub async fn new() -> Self {
        let socket = UdpSocket::bind(loopback()).await.unwrap();
        Self {
            address: socket.local_addr().unwrap(),
            socket: Arc::new(socket),
            seen: Arc::default(),
            carrying: None,
        }
    }

    pub fn carry(&mut self, peer: SocketAddr, weather: Weather) {
        let (socket, seen) = (Arc::clone(&self.socket), Arc::clone(&self.seen));
        self.carrying = Some(tokio::spawn(async move {
            let mut lost = HashSet::new();
            let mut caller = None;
            let mut buffer = vec![0; 65_536];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let message = &buffer[..length];
                let name = name(&String::from_utf8_lossy(message));
                seen.lock().unwrap().push(name.clone());
                if from != peer {
                    caller = Some(from);
                }
                let to = if from == peer { caller } else { Some(peer) };
                let copies = match weather {
                    Weather::LosesEveryMessageOnce => usize::from(!lost.insert((from, name))),
                    Weather::DoublesEveryMessage => 2,
                };
                for to in std::iter::repeat_n(to, copies).flatten() {
                    socket.send_to(message, to).await.unwrap();
                }
            }
        }));
    }

    /// How often a message came here, before the weather: `ACK 1 ACK`, `200 1 INVITE`.
    pub fn count(&self, name: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|seen| *seen == name).count()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(carrying) = &self.carrying {
            carrying.abort();
        }
    }
}
