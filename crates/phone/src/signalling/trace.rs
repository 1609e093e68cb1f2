//! The messages on the wire, for people who have to find out why a trunk refuses. Secrets are masked before anybody sees them.

use std::fmt;
use std::sync::Arc;

use rsipstack::sip::{HeadersExt, SipMessage};
use rsipstack::transaction::endpoint::MessageInspector;
use rsipstack::transport::SipAddr;

use super::answer_hold::AnswerHolds;
use super::{challenge, request_form};

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

#[derive(Debug, Clone)]
pub struct TracedMessage {
    /// Tells the calls apart.
    pub call_id: String,
    pub direction: Direction,
    pub peer: Option<String>,
    pub text: String,
}

/// Gets every message that is sent or received. It is called where the message is handled, so it must not wait.
#[derive(Clone)]
pub struct Trace(Arc<dyn Fn(TracedMessage) + Send + Sync>);

impl Trace {
    pub fn new(see: impl Fn(TracedMessage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(see))
    }

    fn see(&self, direction: Direction, message: &SipMessage, peer: Option<&SipAddr>) {
        let call_id = match message {
            SipMessage::Request(request) => request.call_id_header(),
            SipMessage::Response(response) => response.call_id_header(),
        };
        (self.0)(TracedMessage {
            call_id: call_id.map(|id| id.value().to_owned()).unwrap_or_default(),
            direction,
            peer: peer.map(ToString::to_string),
            text: masked(&message.to_string()),
        });
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trace")
    }
}

/// Every message passes here: mistakes of the library are corrected, and the trace sees what is on the wire.
pub(super) struct TraceInspector {
    pub trace: Option<Trace>,
    /// The calls that are being placed: what challenges them is answered by us (`inviting`).
    pub placing: Arc<AnswerHolds>,
}

impl MessageInspector for TraceInspector {
    fn before_send(&self, mut message: SipMessage, peer: Option<&SipAddr>) -> SipMessage {
        if let SipMessage::Request(request) = &mut message {
            request_form::correct(request);
        }
        if let Some(trace) = &self.trace {
            trace.see(Direction::Sent, &message, peer);
        }
        message
    }

    fn after_received(&self, mut message: SipMessage, peer: Option<&SipAddr>) -> SipMessage {
        if let Some(trace) = &self.trace {
            trace.see(Direction::Received, &message, peer);
        }
        if let SipMessage::Response(response) = &mut message {
            challenge::choose(response);
            if self.placing.is_awaited_by(response) {
                challenge::hide(response);
            }
        }
        message
    }
}

/// The text with credentials and media keys replaced by stars.
pub(super) fn masked(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let name = line.split(':').next().unwrap_or_default().trim();
        let secret = ["authorization", "proxy-authorization"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known));
        if secret {
            return format!("{name}: ***\r\n");
        }
        match line.find("inline:") {
            Some(key) if line.starts_with("a=crypto") => format!("{}inline:***\r\n", &line[..key]),
            _ => line.to_owned(),
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_traced() {
        let text = "INVITE sip:a@b SIP/2.0\r\nAuthorization: Digest response=\"5e884\"\r\nproxy-authorization: Digest x\r\n\r\nv=0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:c2VjcmV0\r\na=sendrecv\r\n";
        assert_eq!(
            masked(text),
            "INVITE sip:a@b SIP/2.0\r\nAuthorization: ***\r\nproxy-authorization: ***\r\n\r\nv=0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:***\r\na=sendrecv\r\n"
        );
    }
}
