//! What is done about answers before the library sees them: one without a Contact is given where it came from, one that nobody waits for is
//! acknowledged and ended, and one that shall be written down waits at its gate.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use rsipstack::sip::{
    Header, HeadersExt, Method, Response, SipMessage, StatusCodeKind, ToTypedHeader,
};
use rsipstack::transaction::endpoint::{EndpointInner, EndpointInnerRef, TransportEventInspector};
use rsipstack::transaction::key::{TransactionKey, TransactionRole};
use rsipstack::transport::{SipAddr, SipConnection, TransportEvent};

use super::answer_hold::{self, AnswerHolds, Arrival};
use super::orphan::{DialogSnapshot, end};
use super::{Peers, SignallingError};

/// A flood of stray answers must not make us send a flood of BYEs; honest peers need no more than so many a second.
const STRAYS_A_SECOND: usize = 50;

/// Sees every message before the library does. An answer that no transaction waits for is ended: ACK, then BYE. One that has to be written down
/// waits for that.
#[derive(Clone)]
pub(super) struct ResponseFilter {
    endpoint: Arc<OnceLock<Weak<EndpointInner>>>,
    peers: Arc<Peers>,
    gates: Arc<AnswerHolds>,
    recent: Arc<std::sync::Mutex<Recent>>,
}

/// What is to be done about an answer that nobody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stray {
    First,
    /// It repeats itself; one BYE is enough.
    Again,
    /// Nothing now: it is not acknowledged, so it comes again, and has its turn then.
    TooMany,
}

/// ResponseFilter are repeated until they are acknowledged.
#[derive(Debug)]
struct Recent {
    since: tokio::time::Instant,
    answers: Vec<String>,
}

impl ResponseFilter {
    pub fn new(peers: Arc<Peers>, gates: Arc<AnswerHolds>) -> Self {
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
    fn stray(
        &self,
        message: &SipMessage,
        from: &SipAddr,
    ) -> Option<(EndpointInnerRef, DialogSnapshot)> {
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
        Some((endpoint, DialogSnapshot::of_answer(answer, Some(peer))?))
    }

    fn judge(&self, facts: &DialogSnapshot) -> Stray {
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
        if recent.answers.contains(&leg) {
            return Stray::Again;
        }
        if recent.answers.len() >= STRAYS_A_SECOND {
            return Stray::TooMany;
        }
        recent.answers.push(leg);
        Stray::First
    }
}

/// An answer must say where it can be reached (RFC 3261 section 12.1.1). Some do not, and the library then neither acknowledges nor ends
/// them, so that the callee would be left on a dead line and called again over another trunk: such a peer is where its answer came from.
fn give_contact(answer: &mut Response, from: &SipAddr) {
    let is_answer = answer.status_code.kind() == StatusCodeKind::Successful
        && answer.cseq_header().and_then(rsipstack::sip::CSeq::method) == Ok(Method::Invite);
    let readable = answer
        .typed_contact_headers()
        .is_ok_and(|contacts| !contacts.is_empty());
    if is_answer && !readable {
        let others = std::mem::take(&mut answer.headers).into_iter();
        answer.headers = others
            .filter(|header| !matches!(header, Header::Contact(_)))
            .collect::<Vec<_>>()
            .into();
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
impl TransportEventInspector for ResponseFilter {
    async fn handle(&self, mut event: TransportEvent) -> Option<TransportEvent> {
        if let TransportEvent::Incoming(SipMessage::Response(answer), _, from) = &mut event {
            give_contact(answer, from);
        }
        if let TransportEvent::Incoming(message, connection, from) = &event
            && let Some((endpoint, facts)) = self.stray(message, from)
        {
            let stray = self.judge(&facts);
            if stray == Stray::TooMany {
                return None;
            }
            tracing::info!(peer = %from, "an answer to a call that is over is acknowledged and ended");
            let (connection, from) = (connection.clone(), from.clone());
            tokio::spawn(async move {
                let ended = async {
                    let ack = facts.request(&endpoint, Method::Ack, facts.cseq)?;
                    connection.send(ack.into(), Some(&from)).await?;
                    if stray == Stray::First {
                        let bye = facts.request(&endpoint, Method::Bye, facts.later_cseq())?;
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

impl ResponseFilter {
    /// The event, unless it is an answer that has to wait.
    fn hold(&self, event: TransportEvent) -> Option<TransportEvent> {
        let TransportEvent::Incoming(SipMessage::Response(answer), connection, from) = event else {
            return Some(event);
        };
        let endpoint = self.endpoint.get().and_then(Weak::upgrade);
        let (Some(call_id), Some(endpoint)) = (answer_hold::answered_call(&answer), endpoint)
        else {
            let answer = SipMessage::Response(answer);
            return Some(TransportEvent::Incoming(answer, connection, from));
        };
        // Whoever knows a callSid could write an answer; only one to an INVITE of ours that is under way has a gate.
        let awaited = TransactionKey::from_response(&answer, TransactionRole::Client)
            .is_ok_and(|key| endpoint.transactions.get(&key).is_some());
        if !awaited {
            let answer = SipMessage::Response(answer);
            return Some(TransportEvent::Incoming(answer, connection, from));
        }
        let (gates, call_id) = (Arc::clone(&self.gates), call_id.to_owned());
        let arrival = gates.arrive(&call_id);
        let facts = DialogSnapshot::of_answer(&answer, from.get_socketaddr().ok());
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
                    let _ = tokio::time::timeout(answer_hold::LONGEST, written).await;
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
