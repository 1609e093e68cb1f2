//! Legs that nobody here remembers: those of a process that died, and answers that came too late. They are ended, so that no callee is left
//! listening to silence and no trunk goes on counting.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use rsipstack::sip::{
    Header, HeadersExt, Method, Request, Response, SipMessage, StatusCodeKind, ToTypedHeader,
    Version,
};
use rsipstack::transaction::endpoint::{EndpointInner, EndpointInnerRef, TransportEventInspector};
use rsipstack::transaction::key::{TransactionKey, TransactionRole};
use rsipstack::transaction::transaction::Transaction;
use rsipstack::transport::{SipAddr, SipConnection, TransportEvent};
use serde::{Deserialize, Serialize};

use super::gate::{self, Arrival, Gates};
use super::{Peers, SILENCE, Signalling, SignallingError, uri};

/// A flood of stray answers must not make us send a flood of BYEs; honest peers need no more than so many a second.
const STRAYS_A_SECOND: usize = 50;

/// What it takes to end a leg later, even from another process: CANCEL while it has not been answered, BYE after that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegFacts {
    /// Where the request is addressed to: the callee before the answer, the peer's Contact after it.
    pub target: String,
    pub from: String,
    pub to: String,
    pub call_id: String,
    /// Of the INVITE.
    pub cseq: u32,
    pub routes: Vec<String>,
    /// The Via of the INVITE while it is not answered: a CANCEL must carry the same.
    pub via: Option<String>,
    /// Where the INVITE went.
    pub sent_to: Option<SocketAddr>,
    /// The facts of the leg as it rang: if it was answered while nobody looked, only a BYE ends it.
    #[serde(default)]
    pub ringing: Option<Box<LegFacts>>,
}

impl LegFacts {
    /// The facts of an INVITE that is under way.
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
        })
    }

    /// The facts of a leg that this response answers (RFC 3261 section 12.1.2), if it says where the peer is to be reached.
    pub(super) fn of_answer(answer: &Response, sent_to: Option<SocketAddr>) -> Option<Self> {
        let contact = answer.typed_contact_headers().ok()?;
        let mut routes: Vec<String> = answer
            .record_route_headers()
            .iter()
            .flat_map(|header| split_routes(header.value()))
            .collect();
        routes.reverse();
        Some(Self {
            target: contact.first()?.uri.to_string(),
            from: answer.from_header().ok()?.value().to_owned(),
            to: answer.to_header().ok()?.value().to_owned(),
            call_id: answer.call_id_header().ok()?.value().to_owned(),
            cseq: answer.cseq_header().ok()?.seq().ok()?,
            routes,
            via: None,
            sent_to,
            ringing: None,
        })
    }

    fn request(
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

    /// The first route, or the target itself; a CANCEL goes where its INVITE went.
    pub(super) fn destination(&self, signalling: super::Transport) -> Option<SipAddr> {
        if let (Some(_), Some(sent_to)) = (&self.via, self.sent_to) {
            return Some(super::transport::sip_address(signalling, sent_to));
        }
        let next = self.routes.first().map_or(self.target.as_str(), |route| {
            route
                .split_once('<')
                .and_then(|(_, rest)| rest.split_once('>'))
                .map_or(route.as_str(), |(inner, _)| inner)
        });
        let mut address = SipAddr::try_from(&uri(next).ok()?).ok()?;
        address.r#type.get_or_insert(signalling.in_library());
        Some(address)
    }
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
    /// Ends a leg by its facts. True if the peer confirmed it or does not know the leg (any more); false for silence.
    pub async fn end_orphan(&self, facts: &LegFacts) -> Result<bool, SignallingError> {
        let (method, cseq) = match facts.via {
            Some(_) => (Method::Cancel, facts.cseq),
            None => (Method::Bye, facts.cseq.saturating_add(1)),
        };
        let destination = facts
            .destination(self.transport)
            .ok_or_else(|| SignallingError::Address(facts.target.clone()))?;
        if let Ok(address) = destination.get_socketaddr() {
            self.know(address.ip());
            self.connect(address).await?;
        }
        if method == Method::Bye {
            // Who died between writing an answer down and acknowledging it has left a peer that still waits for the latter.
            let ack = facts.request(&self.endpoint, Method::Ack, facts.cseq)?;
            let connection = self.endpoint.transport_layer.lookup(&destination, None);
            let (connection, address) = connection.await?;
            connection.send(ack.into(), Some(&address)).await?;
        }
        let request = facts.request(&self.endpoint, method, cseq)?;
        let ended = end(&self.endpoint, request, destination).await?;
        match &facts.ringing {
            Some(ringing) => Box::pin(self.end_orphan(ringing)).await,
            None => Ok(ended),
        }
    }
}

async fn end(
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

/// Notices answers to INVITEs that no transaction waits for, and ends what they opened: ACK, then BYE.
#[derive(Clone)]
pub(super) struct StrayAnswers {
    endpoint: Arc<OnceLock<Weak<EndpointInner>>>,
    peers: Arc<Peers>,
    gates: Arc<Gates>,
    recent: Arc<std::sync::Mutex<Recent>>,
}

/// Answers are repeated until they are acknowledged; one BYE is enough.
#[derive(Debug)]
struct Recent {
    since: tokio::time::Instant,
    answers: Vec<String>,
}

impl StrayAnswers {
    pub fn new(peers: Arc<Peers>, gates: Arc<Gates>) -> Self {
        Self {
            endpoint: Arc::default(),
            peers,
            gates,
            recent: Arc::new(std::sync::Mutex::new(Recent {
                since: tokio::time::Instant::now(),
                answers: Vec::new(),
            })),
        }
    }

    pub fn belong_to(&self, endpoint: &EndpointInnerRef) {
        let _ = self.endpoint.set(Arc::downgrade(endpoint));
    }

    /// The endpoint and the facts of the leg, if this is a stray answer.
    fn stray(&self, message: &SipMessage, from: &SipAddr) -> Option<(EndpointInnerRef, LegFacts)> {
        let SipMessage::Response(answer) = message else {
            return None;
        };
        if answer.status_code.kind() != StatusCodeKind::Successful
            || answer.cseq_header().ok()?.method().ok()? != Method::Invite
        {
            return None;
        }
        let endpoint = self.endpoint.get()?.upgrade()?;
        let key = TransactionKey::from_response(answer, TransactionRole::Client).ok()?;
        let finished = endpoint.finished_transactions.get(&key).flatten();
        let known = endpoint.transactions.get(&key).is_some()
            || finished.is_some_and(|last| !acknowledges_a_refusal(&last, answer));
        let peer = from.get_socketaddr().ok()?;
        if known || !self.peers.know(peer.ip()) {
            return None;
        }
        Some((endpoint, LegFacts::of_answer(answer, Some(peer))?))
    }

    /// True for the first of a few repetitions, and not too often.
    fn first_time(&self, facts: &LegFacts) -> bool {
        let mut recent = self
            .recent
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if recent.since.elapsed() > Duration::from_secs(1) {
            // Keep the younger half of what was seen, so that a repetition after the turn of the second is known too.
            let old = recent.answers.len() / 2;
            recent.answers.drain(..old);
            recent.since = tokio::time::Instant::now();
        }
        let leg = format!("{} {}", facts.call_id, facts.to);
        if recent.answers.contains(&leg) || recent.answers.len() >= STRAYS_A_SECOND {
            return false;
        }
        recent.answers.push(leg);
        true
    }
}

/// An answer must say where it can be reached (RFC 3261 section 12.1.1). Some do not, and the library then neither acknowledges nor ends
/// them, so that the callee would be left on a dead line and called again over another trunk: such a peer is where its answer came from.
fn give_contact(answer: &mut Response, from: &SipAddr) {
    let is_answer = answer.status_code.kind() == StatusCodeKind::Successful
        && answer.cseq_header().and_then(rsipstack::sip::CSeq::method) == Ok(Method::Invite);
    if is_answer && answer.contact_header().is_err() {
        let uri = rsipstack::sip::Uri::from(from.clone());
        let contact = Header::Contact(format!("<{uri}>").into());
        answer.headers.push(contact);
    }
}

/// The library keeps the ACK of a finished INVITE and would send it again, without a BYE after it. The ACK of a refusal has the branch
/// of the INVITE, that of an answer has its own (RFC 3261 section 17.1.1.3): so an answer that meets the former came after the INVITE
/// was given up.
fn acknowledges_a_refusal(last: &SipMessage, answer: &Response) -> bool {
    let SipMessage::Request(ack) = last else {
        return false;
    };
    let branch = |via: Result<&rsipstack::sip::Via, rsipstack::sip::Error>| {
        let via = via.ok()?.typed().ok()?;
        via.branch().map(ToString::to_string)
    };
    branch(ack.via_header()) == branch(answer.via_header())
}

#[async_trait]
impl TransportEventInspector for StrayAnswers {
    async fn handle(&self, mut event: TransportEvent) -> Option<TransportEvent> {
        if let TransportEvent::Incoming(SipMessage::Response(answer), _, from) = &mut event {
            give_contact(answer, from);
        }
        if let TransportEvent::Incoming(message, connection, from) = &event
            && let Some((endpoint, facts)) = self.stray(message, from)
        {
            tracing::info!(peer = %from, "an answer to a call that is over is acknowledged and ended");
            let ends = self.first_time(&facts);
            let (connection, from) = (connection.clone(), from.clone());
            tokio::spawn(async move {
                let ended = async {
                    let ack = facts.request(&endpoint, Method::Ack, facts.cseq)?;
                    connection.send(ack.into(), Some(&from)).await?;
                    if ends {
                        // A number that the peer has chosen.
                        let next = facts.cseq.saturating_add(1);
                        let bye = facts.request(&endpoint, Method::Bye, next)?;
                        end(&endpoint, bye, from).await?;
                    }
                    Ok::<(), SignallingError>(())
                };
                if let Err(error) = ended.await {
                    tracing::debug!(%error, "a stray answer could not be ended");
                }
            });
            return None;
        }
        self.hold(event)
    }
}

impl StrayAnswers {
    /// The event, unless it is an answer that has to wait.
    fn hold(&self, event: TransportEvent) -> Option<TransportEvent> {
        let TransportEvent::Incoming(SipMessage::Response(answer), connection, from) = event else {
            return Some(event);
        };
        let endpoint = self.endpoint.get().and_then(Weak::upgrade);
        let (Some(call_id), Some(endpoint)) = (gate::answered_call(&answer), endpoint) else {
            let answer = SipMessage::Response(answer);
            return Some(TransportEvent::Incoming(answer, connection, from));
        };
        let (gates, call_id) = (Arc::clone(&self.gates), call_id.to_owned());
        let arrival = gates.arrive(&call_id);
        let facts = LegFacts::of_answer(&answer, from.get_socketaddr().ok());
        let answer = SipMessage::Response(answer);
        match arrival {
            Arrival::Pass => return Some(TransportEvent::Incoming(answer, connection, from)),
            Arrival::Drop => {}
            Arrival::Follow(opened) => {
                tokio::spawn(async move {
                    opened.cancelled().await;
                    show(&endpoint, answer, connection, &from).await;
                });
            }
            Arrival::Hold(on_answer) => {
                let written = on_answer(facts);
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(gate::LONGEST, written).await;
                    show(&endpoint, answer, connection, &from).await;
                    gates.open(&call_id);
                });
            }
        }
        None
    }
}

/// Shows an answer that has waited to the library.
async fn show(
    endpoint: &EndpointInnerRef,
    answer: SipMessage,
    connection: SipConnection,
    from: &SipAddr,
) {
    if let Err(error) = endpoint.on_received_message(answer, connection, from).await {
        tracing::debug!(%error, "an answer could not be used");
    }
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
    fn facts_survive_being_written_down() {
        let facts = LegFacts {
            target: "sip:100@192.0.2.1".to_owned(),
            from: "<sip:1@us>;tag=a".to_owned(),
            to: "<sip:2@them>;tag=b".to_owned(),
            call_id: "x".to_owned(),
            cseq: 7,
            routes: vec!["<sip:p;lr>".to_owned()],
            via: None,
            sent_to: Some("192.0.2.1:5060".parse().unwrap()),
            ringing: None,
        };
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<LegFacts>(&text).unwrap(), facts);
    }
}
