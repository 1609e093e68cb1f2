//! The UDP socket, with a filter in front of the library. What a stranger sends is dropped here, in the buffer that it was received into:
//! no message is made of it, no transaction and no task. And what we send does not leave for where a Contact or a route must not lead,
//! whatever name it hid behind.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rsipstack::platform::net::UdpSocket as LibrarySocket;
use tokio::net::UdpSocket;

use super::address_kind::{AddressKind, may_lead_to};
use super::conversations::Conversations;
use super::head::MessageHead;
use super::peers::KnownPeers;
use super::refusals::{RefusalCounts, SipRefusal};

pub(super) struct UdpFilter {
    pub socket: UdpSocket,
    /// Who is heard; `None` for an endpoint that anybody may call.
    pub peers: Option<Arc<KnownPeers>>,
    pub conversations: Arc<Conversations>,
    pub refusals: Arc<RefusalCounts>,
}

impl UdpFilter {
    /// Trunks are heard, and whoever speaks about something that we have begun.
    fn admits(&self, packet: &[u8], from: SocketAddr) -> bool {
        let Some(peers) = &self.peers else {
            return true;
        };
        peers.contain(from.ip(), Instant::now())
            || MessageHead::read(packet).is_some_and(|head| self.conversations.include(&head))
    }

    /// Where a packet really goes; `None` for nowhere.
    fn destination(&self, packet: &[u8], to: SocketAddr) -> Option<SocketAddr> {
        let Some(peers) = &self.peers else {
            return Some(to);
        };
        if AddressKind::of(to.ip()) == AddressKind::Ordinary {
            return Some(to);
        }
        let head = MessageHead::read(packet);
        let trunk = head.and_then(|head| self.conversations.trunk_of(&head));
        let allowed = match trunk {
            Some(trunk) => may_lead_to(to.ip(), trunk.ip()),
            None => peers.contain(to.ip(), Instant::now()),
        };
        if allowed {
            return Some(to);
        }
        self.refusals.count(SipRefusal::Target, to);
        trunk
    }
}

#[async_trait]
impl LibrarySocket for UdpFilter {
    async fn recv_from(&self, buffer: &mut [u8]) -> rsipstack::Result<(usize, SocketAddr)> {
        loop {
            let (length, from) = self.socket.recv_from(buffer).await?;
            if self.admits(&buffer[..length], from) {
                return Ok((length, from));
            }
            self.refusals.count(SipRefusal::Datagram, from);
        }
    }

    async fn send_to(&self, packet: &[u8], to: SocketAddr) -> rsipstack::Result<usize> {
        match self.destination(packet, to) {
            Some(to) => Ok(self.socket.send_to(packet, to).await?),
            None => Err(rsipstack::Error::Error(format!("{to} leads to no trunk"))),
        }
    }

    fn local_addr(&self) -> rsipstack::Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }
}
