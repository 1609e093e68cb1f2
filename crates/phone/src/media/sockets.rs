//! The sockets of one call: its own, or those that all calls of its trunk share.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use tokio::sync::Notify;

use super::engine::{MediaEngine, SocketChoice};
use super::inbound_handle::InboundHandle;
use super::paced_stream::{SendPath, Target};
use super::ports::PortLease;
use super::receiver::{Listening, RtpReceiver};
use super::rtp;
use super::shared::{PeerEntry, SharedLine};
use crate::sdp::RemoteMedia;

#[derive(Debug)]
pub enum Sockets {
    Own {
        lease: PortLease,
        rtp: Arc<UdpSocket>,
        /// Closed when both sides have agreed to share the port of RTP.
        rtcp: Option<Arc<UdpSocket>>,
        listening: Vec<Listening>,
    },
    Shared {
        line: Arc<SharedLine>,
        entry: Option<PeerEntry>,
    },
}

impl Sockets {
    pub fn open(engine: &MediaEngine, choice: &SocketChoice, bind: IpAddr) -> io::Result<Self> {
        Ok(match choice {
            SocketChoice::Own => {
                let pair = engine.ports().open(bind)?;
                Self::Own {
                    lease: pair.lease,
                    rtp: pair.rtp,
                    rtcp: Some(pair.rtcp),
                    listening: Vec::new(),
                }
            }
            SocketChoice::Shared(line) => Self::Shared {
                line: Arc::clone(line),
                entry: None,
            },
        })
    }

    pub fn are_shared(&self) -> bool {
        matches!(self, Self::Shared { .. })
    }

    pub fn port(&self) -> u16 {
        match self {
            Self::Own { lease, .. } => lease.port(),
            Self::Shared { line, .. } => line.pair().lease.port(),
        }
    }

    /// How a stream leaves through them.
    pub fn send_path(&self, symmetric: bool, target: &Target) -> SendPath {
        match self {
            Self::Own { rtp, .. } if symmetric => {
                SendPath::Towards(Arc::clone(rtp), Arc::clone(target))
            }
            Self::Own { rtp, .. } => SendPath::Connected(Arc::clone(rtp)),
            Self::Shared { line, .. } => {
                SendPath::Shared(Arc::clone(&line.pair().rtp), Arc::clone(target))
            }
        }
    }

    /// A peer whose address is still to be learned may be anybody.
    pub fn open_to_anybody(&self) -> io::Result<()> {
        match self {
            Self::Own { rtp, .. } => Ok(rustix::net::connect_unspec(rtp)?),
            Self::Shared { .. } => Ok(()),
        }
    }

    /// The peer is, or has moved, where its description says. Connected sockets drop what others send.
    pub fn point(&mut self, remote: &RemoteMedia, inbound: &InboundHandle) -> io::Result<()> {
        match self {
            Self::Own { rtp, rtcp, .. } => {
                rtp.connect(remote.rtp)?;
                match rtcp {
                    Some(rtcp) if !remote.rtcp_mux => rtcp.connect(remote.rtcp),
                    _ => Ok(()),
                }
            }
            Self::Shared { line, entry } => {
                *entry = None;
                *entry = line.enter(remote.rtp, remote.rtcp, inbound);
                if entry.is_none() {
                    tracing::warn!(peer = %remote.rtp, "another call on the same line has this peer address, so this call receives nothing");
                }
                Ok(())
            }
        }
    }

    /// Receives from now on, each socket once.
    pub fn listen(
        &mut self,
        receiver: &RtpReceiver,
        inbound: &InboundHandle,
        target: &Target,
        refused: &Arc<Notify>,
        muxed: bool,
    ) -> io::Result<()> {
        let Self::Own {
            rtp: sound,
            rtcp,
            listening,
            ..
        } = self
        else {
            return Ok(());
        };
        if listening.is_empty() {
            let judge = handler(sound, inbound, target);
            let refused = Some(Arc::clone(refused));
            listening.push(receiver.listen(Arc::clone(sound), judge, refused)?);
            if let Some(rtcp) = rtcp {
                let mut handler = handler(rtcp, inbound, target);
                let reports_only = move |bytes: &[u8], from, now| {
                    if rtp::is_rtcp(bytes) {
                        handler(bytes, from, now);
                    }
                };
                listening.push(receiver.listen(Arc::clone(rtcp), reports_only, None)?);
            }
        }
        if muxed {
            listening.truncate(1);
            *rtcp = None;
        }
        Ok(())
    }

    /// True if everything that has arrived has been handled; on a shared line nobody knows.
    pub fn have_handled_all(&self) -> bool {
        match self {
            Self::Own { listening, .. } => listening.iter().all(Listening::has_handled_all),
            Self::Shared { .. } => true,
        }
    }

    pub fn stop_listening(&mut self) {
        match self {
            Self::Own { listening, .. } => listening.clear(),
            Self::Shared { entry, .. } => *entry = None,
        }
    }

    /// Nobody has to care for a report, so errors mean nothing.
    pub fn send_report(&self, packet: &[u8], to: SocketAddr, muxed: bool) {
        let socket = match self {
            Self::Own {
                rtcp: Some(rtcp), ..
            } if !muxed => rtcp,
            Self::Own { rtp, .. } => rtp,
            Self::Shared { line, .. } if muxed => &line.pair().rtp,
            Self::Shared { line, .. } => &line.pair().rtcp,
        };
        let _ = socket.send_to(packet, to);
    }
}

/// When the peer's address has been learned, our packets go there and the socket is closed to everybody else.
fn handler(
    socket: &Arc<UdpSocket>,
    inbound: &InboundHandle,
    target: &Target,
) -> impl FnMut(&[u8], SocketAddr, std::time::Instant) + Send + use<> {
    let (socket, inbound, target) = (Arc::clone(socket), inbound.clone(), Arc::clone(target));
    move |bytes, from, now| {
        inbound.receive(bytes, from, now, |peer| {
            *target
                .lock()
                .expect("nothing panics while it changes an address") = peer;
            let _ = socket.connect(peer);
        });
    }
}
