//! Handles every message before and instead of the library's own loop, which would end with the first message that makes it panic.
//!
//! A request goes straight to the library. Of an 18x its dialog learns the way to whoever rings. An answer without a Contact gets the
//! address that it came from, an answer that nobody waits for is acknowledged and ended, and an answer that has to be recorded is held
//! until then. A way that must not be taken is corrected (`first_hop`).

use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rsipstack::sip::{Header, HeadersExt, Method, Response, SipMessage};
use rsipstack::transaction::endpoint::{EndpointInner, EndpointInnerRef, TransportEventInspector};
use rsipstack::transaction::key::{TransactionKey, TransactionRole};
use rsipstack::transport::{SipAddr, SipConnection, TransportEvent};
use supervisor::contain;

use super::answer_hold::{AnswerHolds, ArrivingAnswer, LONGEST_HOLD, is_answer, is_ringing};
use super::branch;
use super::connector::OpenedConnections;
use super::conversations::Conversations;
use super::dialogs::Dialogs;
use super::doorkeeper::Doorkeeper;
use super::first_hop;
use super::orphan::{DialogSnapshot, end};
use super::peers::KnownPeers;
use super::trace::MessageTap;
use super::{SignallingError, Transport};

/// A flood of stray answers must not make us send a flood of BYEs; honest peers need no more than this.
const STRAYS_PER_SECOND: usize = 50;

#[derive(Clone)]
pub(super) struct ResponseFilter {
    endpoint: Arc<OnceLock<Weak<EndpointInner>>>,
    dialogs: Arc<OnceLock<Weak<Dialogs>>>,
    recent: Arc<Mutex<RecentStrays>>,
    parts: FilterParts,
}

/// What it shares with the rest of its endpoint.
#[derive(Clone)]
pub(super) struct FilterParts {
    pub transport: Transport,
    pub peers: Arc<KnownPeers>,
    pub conversations: Arc<Conversations>,
    pub holds: Arc<AnswerHolds>,
    pub tap: Arc<MessageTap>,
    pub doorkeeper: Arc<Doorkeeper>,
    pub opened: Arc<OpenedConnections>,
}

/// A message as it came.
struct Received {
    message: SipMessage,
    connection: SipConnection,
    from: SipAddr,
}

impl ResponseFilter {
    pub fn new(parts: FilterParts) -> Self {
        Self {
            endpoint: Arc::default(),
            dialogs: Arc::default(),
            parts,
            recent: Arc::new(Mutex::new(RecentStrays {
                since: tokio::time::Instant::now(),
                legs: Vec::new(),
            })),
        }
    }

    pub fn belong_to(&self, endpoint: &EndpointInnerRef, dialogs: &Arc<Dialogs>) {
        let _ = self.endpoint.set(Arc::downgrade(endpoint));
        let _ = self.dialogs.set(Arc::downgrade(dialogs));
    }

    async fn receive(&self, endpoint: &EndpointInnerRef, received: Received) {
        if let Some(received) = self.sort(endpoint, received) {
            pass_on(endpoint, received).await;
        }
    }

    /// What is to be passed on now.
    fn sort(&self, endpoint: &EndpointInnerRef, mut received: Received) -> Option<Received> {
        self.parts
            .tap
            .received(&received.message, &received.connection, &received.from);
        let SipMessage::Response(response) = &mut received.message else {
            return Some(received);
        };
        let (is_answer, is_ringing) = (is_answer(response), is_ringing(response));
        if !is_answer && !is_ringing {
            return Some(received);
        }
        self.correct_way(response);
        if is_ringing {
            if let Some(dialogs) = self.dialogs.get().and_then(Weak::upgrade) {
                dialogs.learn(response);
            }
            return Some(received);
        }
        // An answer to an INVITE of ours that is under way: others know Call-IDs too.
        let key = TransactionKey::from_response(response, TransactionRole::Client).ok();
        let is_awaited = (key.as_ref()).is_some_and(|key| endpoint.transactions.get(key).is_some());
        ensure_contact(response, &received.from);
        if is_awaited {
            return self.hold(endpoint, received);
        }
        let stray = key.and_then(|key| self.stray(endpoint, &key, response, &received.from));
        if let Some(snapshot) = stray {
            self.end_stray(endpoint, snapshot, received);
            return None;
        }
        Some(received)
    }

    /// Requests that follow it go where they may.
    fn correct_way(&self, response: &mut Response) {
        if let Some(trunk) = self.parts.conversations.trunk_asked(response) {
            first_hop::correct(response, trunk, self.parts.transport);
        }
    }

    /// What it takes to end the leg, if this answer, for which no transaction waits, belongs to no call of ours.
    fn stray(
        &self,
        endpoint: &EndpointInnerRef,
        key: &TransactionKey,
        answer: &Response,
        from: &SipAddr,
    ) -> Option<DialogSnapshot> {
        let finished = endpoint.finished_transactions.get(key).flatten();
        let known = finished.is_some_and(|last| !acknowledges_a_refusal(&last, answer));
        let peer = from.get_socketaddr().ok()?;
        if known || !self.parts.peers.contain(peer.ip(), Instant::now()) {
            return None;
        }
        DialogSnapshot::of_answer(answer, Some(peer))
    }

    /// ACK, then BYE.
    fn end_stray(&self, endpoint: &EndpointInnerRef, snapshot: DialogSnapshot, received: Received) {
        let stray = self
            .recent
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .judge(&snapshot);
        if stray == Stray::TooMany {
            return;
        }
        let (endpoint, from) = (endpoint.clone(), received.from);
        let tap = Arc::clone(&self.parts.tap);
        tracing::info!(peer = %from, "an answer to a call that is over is acknowledged and ended");
        tokio::spawn(async move {
            let ended = async {
                let ack = snapshot
                    .request(&endpoint, Method::Ack, snapshot.cseq)?
                    .into();
                tap.sent(&ack, Some(&from));
                received.connection.send(ack, Some(&from)).await?;
                if stray == Stray::First {
                    let bye = snapshot.request(&endpoint, Method::Bye, snapshot.later_cseq())?;
                    end(&endpoint, bye, from).await?;
                }
                Ok::<(), SignallingError>(())
            };
            if let Err(error) = ended.await {
                tracing::debug!(%error, "a stray answer could not be ended");
            }
        });
    }

    /// An answer is passed on at once, or when it has been recorded.
    fn hold(&self, endpoint: &EndpointInnerRef, received: Received) -> Option<Received> {
        let SipMessage::Response(answer) = &received.message else {
            return None;
        };
        let Ok(call_id) = answer.call_id_header() else {
            return Some(received);
        };
        let (holds, call_id) = (Arc::clone(&self.parts.holds), call_id.value().to_owned());
        let endpoint = endpoint.clone();
        match holds.judge(&call_id) {
            ArrivingAnswer::Pass => return Some(received),
            ArrivingAnswer::Ignore => {}
            ArrivingAnswer::Wait(released) => {
                tokio::spawn(async move {
                    released.cancelled().await;
                    pass_on(&endpoint, received).await;
                });
            }
            ArrivingAnswer::Record(on_answer) => {
                let trunk = self.parts.conversations.trunk_asked(answer);
                let sent_to = trunk.or_else(|| received.from.get_socketaddr().ok());
                let recorded = on_answer(DialogSnapshot::of_answer(answer, sent_to));
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(LONGEST_HOLD, recorded).await;
                    pass_on(&endpoint, received).await;
                    holds.release(&call_id);
                });
            }
        }
        None
    }
}

#[async_trait]
impl TransportEventInspector for ResponseFilter {
    /// Nothing is left for the library to do with a message; it still has to know of new and closed connections.
    async fn handle(&self, event: TransportEvent) -> Option<TransportEvent> {
        let TransportEvent::Incoming(message, connection, from) = event else {
            return Some(event);
        };
        let endpoint = self.endpoint.get().and_then(Weak::upgrade)?;
        if connection.is_reliable()
            && let Ok(peer) = from.get_socketaddr()
        {
            self.parts.doorkeeper.heard(peer);
            self.parts.opened.heard(peer);
        }
        let peer = from.clone();
        let received = Received {
            message,
            connection,
            from,
        };
        if let Err(reason) = contain(pin!(self.receive(&endpoint, received))).await {
            tracing::error!(reason, %peer, "a SIP message made its handling panic: it is ignored");
        }
        None
    }
}

async fn pass_on(endpoint: &EndpointInnerRef, received: Received) {
    let Received {
        message,
        connection,
        from,
    } = received;
    if let Err(error) = endpoint
        .on_received_message(message, connection, &from)
        .await
    {
        tracing::debug!(%error, peer = %from, "a SIP message could not be used");
    }
}

/// An answer must say where its sender can be reached (RFC 3261 section 12.1.1). Some do not, and the library then neither acknowledges nor
/// ends them, so that the callee would be left on a dead line and called again over another trunk. Such a peer is taken to be where its
/// answer came from.
fn ensure_contact(answer: &mut Response, from: &SipAddr) {
    let readable = answer
        .typed_contact_headers()
        .is_ok_and(|contacts| !contacts.is_empty());
    if !readable {
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
    let (Ok(ack), Ok(answer)) = (ack.via_header(), answer.via_header()) else {
        return false;
    };
    branch::of(ack) == branch::of(answer)
}

/// What is to be done about an answer that nobody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stray {
    First,
    /// It repeats itself; one BYE is enough.
    Again,
    /// Nothing is done now: it is not acknowledged, so it comes again, and has its turn then.
    TooMany,
}

/// The stray answers of the last second or so: answers are repeated until they are acknowledged.
#[derive(Debug)]
struct RecentStrays {
    since: tokio::time::Instant,
    legs: Vec<String>,
}

impl RecentStrays {
    fn judge(&mut self, snapshot: &DialogSnapshot) -> Stray {
        if self.since.elapsed() > Duration::from_secs(1) {
            // The younger half is kept, so that a repetition after the turn of the second is known too.
            let old = self.legs.len() / 2;
            self.legs.drain(..old);
            self.since = tokio::time::Instant::now();
        }
        let leg = format!("{} {}", snapshot.call_id, snapshot.to);
        if self.legs.contains(&leg) {
            return Stray::Again;
        }
        if self.legs.len() >= STRAYS_PER_SECOND {
            return Stray::TooMany;
        }
        self.legs.push(leg);
        Stray::First
    }
}
