//! The messages on the wire, for people who have to find out why a trunk refuses. Secrets are masked before anybody sees them.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rsipstack::sip::{HeadersExt, SipMessage, ToTypedHeader};
use rsipstack::transaction::endpoint::MessageInspector;
use rsipstack::transport::{SipAddr, SipConnection};

use super::answer_hold::AnswerHolds;
use super::masking::masked;
use super::{Transport, challenge, request_form};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Sent,
    Received,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Sent => "sent to",
            Direction::Received => "received from",
        })
    }
}

/// A message as it is on the wire, but for its secrets.
#[derive(Debug, Clone)]
pub struct TracedMessage {
    /// Tells the calls apart.
    pub call_id: String,
    pub direction: Direction,
    pub transport: Transport,
    /// Our own address.
    pub local: SocketAddr,
    /// Unknown where the message does not say where it goes.
    pub peer: Option<SocketAddr>,
    pub text: String,
}

/// Gets every message that is sent or received. It is called where the message is handled, so it must not wait.
#[derive(Clone)]
pub struct Trace(Arc<dyn Fn(TracedMessage) + Send + Sync>);

impl Trace {
    pub fn new(see: impl Fn(TracedMessage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(see))
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trace")
    }
}

/// So many addresses of connections are remembered at most; beyond that we are shown at the address that we listen at.
const MAX_CONNECTIONS: usize = 1000;

/// Shows the messages of one endpoint to its trace, with the addresses between which they pass.
#[derive(Debug)]
pub(super) struct MessageTap {
    trace: Option<Trace>,
    transport: Transport,
    local: SocketAddr,
    /// Our own addresses of connections, by the peer's. The library does not say on which connection a message is sent.
    connections: Mutex<HashMap<SocketAddr, SocketAddr>>,
}

impl MessageTap {
    pub fn new(trace: Option<Trace>, transport: Transport, local: SocketAddr) -> Self {
        Self {
            trace,
            transport,
            local,
            connections: Mutex::default(),
        }
    }

    /// Messages to this peer go over this connection from now on.
    pub fn connected(&self, connection: &SipConnection, peer: SocketAddr) {
        if self.trace.is_none() || self.transport == Transport::Udp {
            return;
        }
        if let Ok(local) = connection.get_addr().get_socketaddr() {
            let mut connections = self.lock();
            if connections.len() >= MAX_CONNECTIONS {
                connections.clear();
            }
            connections.insert(peer, local);
        }
    }

    pub fn received(&self, message: &SipMessage, connection: &SipConnection, from: &SipAddr) {
        let peer = from.get_socketaddr().ok();
        if let Some(peer) = peer {
            self.connected(connection, peer);
        }
        self.show(Direction::Received, message, peer);
    }

    pub fn sent(&self, message: &SipMessage, to: Option<&SipAddr>) {
        let known = to.and_then(|to| to.get_socketaddr().ok());
        self.show(Direction::Sent, message, known.or_else(|| via(message)));
    }

    fn show(&self, direction: Direction, message: &SipMessage, peer: Option<SocketAddr>) {
        let Some(trace) = &self.trace else {
            return;
        };
        let call_id = match message {
            SipMessage::Request(request) => request.call_id_header(),
            SipMessage::Response(response) => response.call_id_header(),
        };
        let connection = peer.and_then(|peer| self.lock().get(&peer).copied());
        (trace.0)(TracedMessage {
            call_id: call_id.map(|id| id.value().to_owned()).unwrap_or_default(),
            direction,
            transport: self.transport,
            local: connection.unwrap_or(self.local),
            peer,
            text: masked(&message.to_string()),
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SocketAddr, SocketAddr>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a response goes that is sent on the connection of its request: to whoever stands in the topmost Via.
fn via(message: &SipMessage) -> Option<SocketAddr> {
    let SipMessage::Response(response) = message else {
        return None;
    };
    let via = response.via_header().ok()?.typed().ok()?;
    let named = || IpAddr::try_from(via.sent_by().host.clone()).ok();
    let received = via.received().and_then(Result::ok);
    let address = received.or_else(named)?;
    let port = via.rport().flatten();
    let port = port.or_else(|| via.sent_by().port.map(u16::from));
    Some(SocketAddr::new(address, port?))
}

/// Every message that the library sends or takes passes here: its mistakes are corrected, and the tap sees what is sent. What is received
/// the tap sees earlier (`response_filter`), in the moment in which it comes.
pub(super) struct TraceInspector {
    pub tap: Arc<MessageTap>,
    /// The calls that are being placed: what challenges them is answered by us (`inviting`).
    pub placing: Arc<AnswerHolds>,
}

impl MessageInspector for TraceInspector {
    fn before_send(&self, mut message: SipMessage, peer: Option<&SipAddr>) -> SipMessage {
        if let SipMessage::Request(request) = &mut message {
            request_form::correct(request);
        }
        self.tap.sent(&message, peer);
        message
    }

    fn after_received(&self, mut message: SipMessage, _peer: Option<&SipAddr>) -> SipMessage {
        if let SipMessage::Response(response) = &mut message {
            challenge::choose(response);
            if self.placing.is_awaited_by(response) {
                challenge::hide(response);
            }
        }
        message
    }
}
