//! Orphaned legs: the legs of a process that died. They are ended by what it has recorded, so that no callee is left listening to silence
//! and no trunk goes on counting.

use std::net::{IpAddr, SocketAddr};

use rsipstack::sip::{
    Header, HeadersExt, HostWithPort, Method, Request, Response, SipMessage, Uri, Version,
};
use rsipstack::transaction::endpoint::{EndpointInner, EndpointInnerRef};
use rsipstack::transaction::key::{TransactionKey, TransactionRole};
use rsipstack::transaction::transaction::Transaction;
use rsipstack::transport::SipAddr;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::address_kind::{AddressKind, may_lead_to};
use super::{SILENCE, Signalling, SignallingError, branch, head, uri};

/// What it takes to end a leg later, even from another process: CANCEL while it has not been answered, BYE after that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialogSnapshot {
    /// The address of the request: the callee before the answer, the peer's Contact after it.
    pub target: String,
    pub from: String,
    pub to: String,
    pub call_id: String,
    /// The sequence number of the INVITE.
    pub cseq: u32,
    pub routes: Vec<String>,
    /// The Via of the INVITE while it is not answered: a CANCEL must carry the same.
    pub via: Option<String>,
    /// The address that the INVITE was sent to.
    pub sent_to: Option<SocketAddr>,
    /// The snapshot of the leg as it rang: if it was answered while no process was there, only a BYE ends it.
    #[serde(default)]
    pub ringing: Option<Box<DialogSnapshot>>,
    /// The INVITE may have been repeated with credentials up to so many times since, each time under the branch that follows.
    #[serde(default)]
    pub repeats: u32,
}

impl DialogSnapshot {
    /// The snapshot of an INVITE that is under way.
    pub(super) fn of_invite(invite: &Request, sent_to: Option<SocketAddr>) -> Option<Self> {
        Some(Self {
            target: invite.uri.to_string(),
            from: invite.from_header().ok()?.value().to_owned(),
            to: invite.to_header().ok()?.value().to_owned(),
            call_id: invite.call_id_header().ok()?.value().to_owned(),
            cseq: invite.cseq_header().ok()?.seq().ok()?,
            routes: invite
                .route_headers()
                .iter()
                .map(|route| route.value().to_owned())
                .collect(),
            via: Some(invite.via_header().ok()?.value().to_owned()),
            sent_to,
            ringing: None,
            repeats: 0,
        })
    }

    /// The snapshot of a leg that this response answers (RFC 3261 section 12.1.2), if it says where the peer can be reached.
    pub(super) fn of_answer(answer: &Response, sent_to: Option<SocketAddr>) -> Option<Self> {
        let contact = answer.typed_contact_headers().ok()?;
        Some(Self {
            target: contact.first()?.uri.to_string(),
            from: answer.from_header().ok()?.value().to_owned(),
            to: answer.to_header().ok()?.value().to_owned(),
            call_id: answer.call_id_header().ok()?.value().to_owned(),
            cseq: answer.cseq_header().ok()?.seq().ok()?,
            routes: route_set(answer),
            via: None,
            sent_to,
            ringing: None,
            repeats: 0,
        })
    }

    /// The same INVITE, repeated for the so many-th time.
    fn repeated(&self, times: u32) -> Self {
        let via = self
            .via
            .as_deref()
            .map(|via| branch::repeated_via(via, times));
        Self {
            via,
            cseq: self.cseq.saturating_add(times),
            ..self.clone()
        }
    }

    /// Higher than that of any request that followed the INVITE (PRACK, UPDATE): gaps are allowed (RFC 3261 section 12.2.2), lower ones are refused.
    pub(super) fn later_cseq(&self) -> u32 {
        self.cseq.saturating_add(1000)
    }

    pub(super) fn request(
        &self,
        endpoint: &EndpointInner,
        method: Method,
        cseq: u32,
    ) -> Result<Request, SignallingError> {
        let via = if let Some(via) = &self.via {
            Header::Via(via.clone().into())
        } else {
            Header::Via(endpoint.get_via(None, None)?.into())
        };
        let mut headers = vec![
            via,
            Header::MaxForwards(70.into()),
            Header::From(self.from.clone().into()),
            Header::To(self.to.clone().into()),
            Header::CallId(self.call_id.clone().into()),
            Header::CSeq(format!("{cseq} {method}").into()),
            Header::UserAgent(endpoint.user_agent.clone().into()),
        ];
        headers.extend(
            self.routes
                .iter()
                .map(|route| Header::Route(route.clone().into())),
        );
        headers.push(Header::ContentLength(0.into()));
        Ok(Request {
            method,
            uri: uri(&self.target)?,
            version: Version::V2,
            headers: headers.into(),
            body: Vec::new(),
        })
    }

    /// Where a request goes: to the first route, or to the target itself. It goes to the trunk where there are connections, where it is a
    /// CANCEL, which goes where its INVITE went, and where the peer names an address at which nobody is but us.
    pub(super) fn destination(&self, signalling: super::Transport) -> Option<SipAddr> {
        let trunk = self
            .sent_to
            .map(|sent_to| super::transport::sip_address(signalling, sent_to));
        if trunk.is_some() && (self.via.is_some() || signalling != super::Transport::Udp) {
            return trunk;
        }
        let named = self.next_hop().map(|hop| hop.host_with_port);
        let named = named.filter(|hop| self.may_go_to(hop));
        let named = named.map(|hop| SipAddr::new(signalling.in_library(), hop));
        named.or(trunk)
    }

    /// What the peer names, by a route or as its target.
    fn next_hop(&self) -> Option<Uri> {
        let next = self.routes.first().map_or(self.target.as_str(), |route| {
            route
                .split_once('<')
                .and_then(|(_, rest)| rest.split_once('>'))
                .map_or(route.as_str(), |(inner, _)| inner)
        });
        uri(next).ok()
    }

    /// A name is judged when it has been resolved.
    fn may_go_to(&self, hop: &HostWithPort) -> bool {
        let Ok(host) = IpAddr::try_from(hop.host.clone()) else {
            return true;
        };
        match self.sent_to {
            Some(trunk) => may_lead_to(host, trunk.ip()),
            None => AddressKind::of(host) == AddressKind::Ordinary,
        }
    }
}

/// The way to whoever sends a response to our INVITE (RFC 3261 section 12.1.2).
pub(super) fn route_set(response: &Response) -> Vec<String> {
    let headers = response.record_route_headers();
    let mut routes: Vec<_> = headers
        .iter()
        .flat_map(|header| split_routes(header.value()))
        .collect();
    routes.reverse();
    routes
}

/// Several routes may stand in one header, with commas between them and, inside brackets, other commas.
pub(super) fn split_routes(value: &str) -> Vec<String> {
    let mut inside = false;
    value
        .split(|letter| {
            inside = match letter {
                '<' => true,
                '>' => false,
                _ => inside,
            };
            letter == ',' && !inside
        })
        .map(|route| route.trim().to_owned())
        .filter(|route| !route.is_empty())
        .collect()
}

impl Signalling {
    /// Ends a leg by its snapshot. Returns true if the peer confirmed it or does not know the leg (any more), and false for silence.
    pub async fn end_orphan(&self, snapshot: &DialogSnapshot) -> Result<bool, SignallingError> {
        let destination = snapshot
            .destination(self.transport)
            .ok_or_else(|| SignallingError::Address(snapshot.target.clone()))?;
        let tag = head::tag(snapshot.from.as_bytes());
        let mut _conversation = None;
        if let Some(trunk) = snapshot.sent_to {
            _conversation = Some(self.conversations.begin(&snapshot.call_id, tag, trunk));
            self.add_peer(trunk.ip());
        }
        if let Ok(address) = destination.get_socketaddr() {
            self.add_peer(address.ip());
            self.connect(address).await?;
        }
        let ended = if snapshot.via.is_some() {
            self.cancel_orphan(snapshot, &destination).await?
        } else {
            // A process that died after it recorded an answer and before it acknowledged it has left a peer that waits for the ACK.
            let ack = snapshot.request(&self.endpoint, Method::Ack, snapshot.cseq)?;
            let connection = self.endpoint.transport_layer.lookup(&destination, None);
            let (connection, address) = connection.await?;
            let ack = ack.into();
            self.tap.sent(&ack, Some(&address));
            connection.send(ack, Some(&address)).await?;
            let bye = snapshot.request(&self.endpoint, Method::Bye, snapshot.later_cseq())?;
            end(&self.endpoint, bye, destination).await?
        };
        match &snapshot.ringing {
            Some(ringing) => Box::pin(self.end_orphan(ringing)).await,
            None => Ok(ended),
        }
    }

    /// CANCEL for the INVITE, and for each that may have repeated it: the peer does not know most of them.
    async fn cancel_orphan(
        &self,
        snapshot: &DialogSnapshot,
        destination: &SipAddr,
    ) -> Result<bool, SignallingError> {
        let mut cancels = JoinSet::new();
        for times in 0..=snapshot.repeats {
            let repeated = snapshot.repeated(times);
            let cancel = repeated.request(&self.endpoint, Method::Cancel, repeated.cseq)?;
            let (endpoint, destination) = (self.endpoint.clone(), destination.clone());
            cancels.spawn(async move { end(&endpoint, cancel, destination).await });
        }
        let mut ended = true;
        while let Some(cancelled) = cancels.join_next().await {
            ended &= cancelled.is_ok_and(|cancelled| cancelled.unwrap_or(false));
        }
        Ok(ended)
    }
}

pub(super) async fn end(
    endpoint: &EndpointInnerRef,
    request: Request,
    destination: SipAddr,
) -> Result<bool, SignallingError> {
    let key = TransactionKey::from_request(&request, TransactionRole::Client)?;
    let mut transaction = Transaction::new_client(key, request, endpoint.clone(), None);
    transaction.destination = Some(destination);
    transaction.send().await?;
    let answer = async {
        while let Some(message) = transaction.receive().await {
            if let SipMessage::Response(response) = message {
                let code = response.status_code.code();
                if code >= 200 {
                    return code / 100 == 2 || code == 481;
                }
            }
        }
        false
    };
    Ok(tokio::time::timeout(SILENCE, answer).await.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_split_outside_of_brackets_only() {
        assert_eq!(
            split_routes("<sip:a;x=1,2;lr>, <sip:b;lr>,"),
            ["<sip:a;x=1,2;lr>", "<sip:b;lr>"]
        );
    }

    #[test]
    fn a_snapshot_survives_being_written_down() {
        let snapshot = DialogSnapshot {
            target: "sip:100@192.0.2.1".to_owned(),
            from: "<sip:1@us>;tag=a".to_owned(),
            to: "<sip:2@them>;tag=b".to_owned(),
            call_id: "x".to_owned(),
            cseq: 7,
            routes: vec!["<sip:p;lr>".to_owned()],
            via: None,
            sent_to: Some("192.0.2.1:5060".parse().unwrap()),
            ringing: None,
            repeats: 3,
        };
        let text = serde_json::to_string(&snapshot).unwrap();
        assert_eq!(
            serde_json::from_str::<DialogSnapshot>(&text).unwrap(),
            snapshot
        );
    }
}
