//! Packets of many calls in one system call, for calls that share a socket.

use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::Arc;

use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};

/// The most packets of one system call: its cost is spread well before this, and the first packet waits for the last.
const LIMIT: usize = 64;

/// The packets that one socket is to send.
pub struct Batch {
    socket: Arc<UdpSocket>,
    /// The bytes of all packets, one after the other.
    bytes: Vec<u8>,
    packets: Vec<Packet>,
}

struct Packet {
    bytes: Range<usize>,
    to: SocketAddrAny,
}

impl Batch {
    pub fn new(socket: Arc<UdpSocket>) -> Self {
        Self {
            socket,
            bytes: Vec::new(),
            packets: Vec::with_capacity(LIMIT),
        }
    }

    pub fn is_for(&self, socket: &Arc<UdpSocket>) -> bool {
        Arc::ptr_eq(&self.socket, socket)
    }

    /// No call uses the socket any more.
    pub fn is_done(&self) -> bool {
        self.packets.is_empty() && Arc::strong_count(&self.socket) == 1
    }

    /// Adds a packet, and sends all of them when there are enough.
    pub fn add(&mut self, packet: &[u8], to: SocketAddr) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(packet);
        self.packets.push(Packet {
            bytes: start..self.bytes.len(),
            to: to.into(),
        });
        if self.packets.len() == LIMIT {
            self.send();
        }
    }

    pub fn send(&mut self) {
        if self.packets.is_empty() {
            return;
        }
        let slices: Vec<_> = self
            .packets
            .iter()
            .map(|packet| [IoSlice::new(&self.bytes[packet.bytes.clone()])])
            .collect();
        let mut controls: Vec<_> = slices
            .iter()
            .map(|_| SendAncillaryBuffer::default())
            .collect();
        let mut messages: Vec<_> = self
            .packets
            .iter()
            .zip(&slices)
            .zip(&mut controls)
            .map(|((packet, slice), control)| MMsgHdr::new_with_addr(&packet.to, slice, control))
            .collect();
        let mut rest = &mut messages[..];
        while !rest.is_empty() {
            // The call stops before a message that fails, and fails itself if that is the first: then this one destination is passed over.
            let done = match sendmmsg(&self.socket, rest, SendFlags::DONTWAIT) {
                Ok(sent) => sent.max(1),
                Err(_) => 1,
            };
            rest = &mut rest[done..];
        }
        drop(messages);
        self.packets.clear();
        self.bytes.clear();
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("packets", &self.packets.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bad_destination_is_passed_over() {
        let ours = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        let theirs = UdpSocket::bind("127.0.0.1:0").unwrap();
        theirs
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let good = theirs.local_addr().unwrap();
        let closed = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        // Broadcasting is not permitted, the other family cannot be reached, port 0 is none, and at the closed port nobody listens.
        let bad: [SocketAddr; 4] = [
            "255.255.255.255:9".parse().unwrap(),
            "[2001:db8::1]:9".parse().unwrap(),
            "127.0.0.1:0".parse().unwrap(),
            closed,
        ];
        let mut batch = Batch::new(Arc::clone(&ours));
        for number in 0..200_u8 {
            batch.add(&[number; 20], good);
            batch.add(&[0xff; 20], bad[usize::from(number) % 4]);
        }
        batch.send();
        let mut buffer = [0; 100];
        for number in 0..200_u8 {
            assert_eq!(theirs.recv(&mut buffer).unwrap(), 20);
            assert_eq!(buffer[..20], [number; 20]);
        }
        drop(ours);
        assert!(batch.is_done());
    }
}
