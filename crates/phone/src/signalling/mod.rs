//! SIP signalling. The library is used in this module only, behind our own types.
//!
//! What the library leaves to us, and where it is done: a dialog is removed when it has ended (`Leg`'s drop), every request inside a dialog
//! is answered (`incoming`, `Leg::next`), a target that stays silent is told from one that says no (`Leg::failure`), its timers are
//! short (`SILENCE`), a connection that cannot be made is noticed at once (`Signalling::connect`), an answer to a call that nobody
//! remembers is acknowledged and ended (`answers`), another is acknowledged only when it is written down (`gate`), refreshes of a session
//! are sent (`refresher`), challenges are put into its words (`challenge`).

mod answer_hold;
mod challenge;
#[doc(hidden)]
pub mod dissect;
mod incoming;
mod invite_routes;
mod leg;
mod orphan;
mod refresher;
mod registration;
mod reply;
mod resolve;
mod response_filter;
mod session_timer;
#[cfg(test)]
mod tests;
mod trace;
mod transport;

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rsipstack::EndpointBuilder;
use rsipstack::dialog::authenticate::Credential;
use rsipstack::dialog::dialog_layer::DialogLayer;
use rsipstack::dialog::invitation::InviteOption;
use rsipstack::sip::{Header, Method, SipMessage, Uri};
use rsipstack::transaction::endpoint::{EndpointInnerRef, EndpointOption};
use rsipstack::transaction::key::{TransactionKey, TransactionRole};
use rsipstack::transaction::transaction::Transaction;
use rsipstack::transport::TransportLayer;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

pub use answer_hold::OnAnswer;
use answer_hold::{AnswerHold, AnswerHolds};
pub use incoming::{Answering, CallSender, IncomingCall};
use invite_routes::{InviteRoute, InviteRoutes, Located};
pub use leg::{Leg, LegEvent};
pub use orphan::DialogSnapshot;
pub use refresher::{Refreshed, Refresher};
pub use registration::{Registered, Registration};
pub use reply::SessionReply;
pub use resolve::{Host, LookupSource, Resolver, SrvRecord};
pub use session_timer::SessionTimer;
pub use trace::{Direction, Trace, TracedMessage};
pub use transport::{TlsFiles, Transport, own_address};

/// 64 times T1 of RFC 3261, cut from 32 seconds: a trunk that says nothing at all for so long is down, and the next one is waiting.
pub const SILENCE: Duration = Duration::from_secs(8);

/// Longer than anybody may let it ring.
const LONGEST_RINGING: Duration = Duration::from_secs(3600);

#[derive(Debug, Error)]
pub enum SignallingError {
    #[error("cannot listen on {0}: {1}")]
    Bind(SocketAddr, std::io::Error),
    #[error("not a SIP address: {0}")]
    Address(String),
    #[error("{0} cannot be reached: {1}")]
    Unreachable(SocketAddr, String),
    #[error("the SIP library failed: {0}")]
    Library(String),
}

impl From<rsipstack::Error> for SignallingError {
    fn from(error: rsipstack::Error) -> Self {
        Self::Library(error.to_string())
    }
}

impl From<rsipstack::sip::Error> for SignallingError {
    fn from(error: rsipstack::sip::Error) -> Self {
        Self::Library(error.to_string())
    }
}

/// Where and how we are reached.
#[derive(Debug, Clone)]
pub struct SignallingConfig {
    pub transport: Transport,
    pub bind: SocketAddr,
    /// What peers shall see in Via and Contact, where it differs from what we are bound to.
    pub advertised: Option<SocketAddr>,
    pub tls: TlsFiles,
    pub user_agent: String,
    /// Sees every message, secrets masked.
    pub trace: Option<Trace>,
}

impl SignallingConfig {
    pub fn new(transport: Transport, bind: SocketAddr) -> Self {
        Self {
            transport,
            bind,
            advertised: None,
            tls: TlsFiles::default(),
            user_agent: "Clarion".to_owned(),
            trace: None,
        }
    }
}

/// A call to be placed.
#[derive(Debug, Clone)]
pub struct Invite {
    /// `sip:number@trunk`
    pub to: String,
    /// `sip:caller@us`
    pub from: String,
    pub display_name: Option<String>,
    /// Where the packet goes.
    pub destination: SocketAddr,
    /// Chosen by the caller, so that it is known before the first packet leaves.
    pub call_id: String,
    pub credentials: Option<SipCredentials>,
    pub headers: Vec<(String, String)>,
    pub offer: String,
}

#[derive(Clone, PartialEq, Eq)]
pub struct SipCredentials {
    pub user: String,
    pub password: String,
}

impl SipCredentials {
    fn in_library(self) -> Credential {
        Credential {
            username: self.user,
            password: self.password,
            realm: None,
            auth_username: None,
        }
    }
}

impl std::fmt::Debug for SipCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// One SIP endpoint: sockets, transactions, dialogs.
pub struct Signalling {
    endpoint: EndpointInnerRef,
    dialogs: Arc<DialogLayer>,
    transport: Transport,
    contact: SocketAddr,
    /// Whom we talk to. Only they are helped to end a call that we do not remember.
    peers: Arc<Peers>,
    gates: Arc<AnswerHolds>,
    ways: Arc<InviteRoutes>,
    /// One connection at a time is opened, so that a burst of calls shares it.
    connecting: tokio::sync::Mutex<()>,
    stop: CancellationToken,
}

impl std::fmt::Debug for Signalling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signalling")
            .field("transport", &self.transport)
            .field("contact", &self.contact)
            .field("dialogs", &self.dialogs.len())
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Peers(Mutex<HashSet<IpAddr>>);

impl Peers {
    fn add(&self, peer: IpAddr) {
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // TrunkPool have few addresses; a name that resolves to ever new ones must not fill the memory.
        if peers.len() > 4096 {
            peers.clear();
        }
        peers.insert(peer);
    }

    fn know(&self, peer: IpAddr) -> bool {
        let peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        peers.contains(&peer)
    }
}

impl Signalling {
    /// Starts listening. Requests that open a dialog go to `calls`, where there is one; otherwise they are refused.
    pub async fn start(
        config: &SignallingConfig,
        calls: Option<Answering>,
    ) -> Result<Self, SignallingError> {
        let stop = CancellationToken::new();
        let layer = TransportLayer::new(stop.child_token());
        let (local, contact) = transport::open(config, &layer, &stop).await?;
        let peers = Arc::new(Peers::default());
        let gates = Arc::new(AnswerHolds::default());
        let answers = response_filter::ResponseFilter::new(Arc::clone(&peers), Arc::clone(&gates));
        let ways = Arc::new(InviteRoutes::default());
        let mut builder = EndpointBuilder::new();
        builder
            .with_user_agent(&config.user_agent)
            .with_transport_layer(layer)
            .with_cancel_token(stop.child_token())
            .with_transport_inspector(Box::new(answers.clone()))
            .with_target_locator(Box::new(Located(Arc::clone(&ways))))
            .with_allows(vec![
                Method::Invite,
                Method::Ack,
                Method::Bye,
                Method::Cancel,
                Method::Options,
                Method::Update,
                Method::Info,
                Method::PRack,
            ])
            .with_option(EndpointOption {
                t1x64: SILENCE,
                // How long it may ring is our own matter (`Line::wait_for_answer`); the library would end it without a CANCEL.
                timerc: LONGEST_RINGING,
                callid_suffix: Some(contact.ip().to_string()),
                ..EndpointOption::default()
            });
        builder.with_inspector(Box::new(trace::TraceInspector(config.trace.clone())));
        let endpoint = builder.build();
        answers.belong_to(&endpoint.inner);
        let dialogs = Arc::new(DialogLayer::new(endpoint.inner.clone()));
        let requests = endpoint.incoming_transactions()?;
        let serving = endpoint.inner.clone();
        tokio::spawn(async move {
            if let Err(error) = serving.serve().await {
                tracing::error!(%error, "SIP is not served any more");
            }
        });
        transport::listens(config, local).await?;
        tokio::spawn(incoming::answer_requests(
            requests,
            Arc::clone(&dialogs),
            calls,
            stop.clone(),
        ));
        Ok(Self {
            endpoint: endpoint.inner.clone(),
            dialogs,
            transport: config.transport,
            contact,
            peers,
            gates,
            ways,
            connecting: tokio::sync::Mutex::new(()),
            stop,
        })
    }

    pub fn contact(&self) -> SocketAddr {
        self.contact
    }

    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Dialogs and transactions that are open now, or still remembered for answering repetitions: for finding leaks.
    pub fn open(&self) -> (usize, usize) {
        let stats = self.endpoint.get_stats();
        let transactions =
            stats.running_transactions + stats.finished_transactions + stats.waiting_ack;
        (self.dialogs.len(), transactions)
    }

    /// ResponseFilter of this peer are ours to end, even those of calls of an earlier life of the process.
    pub fn know(&self, peer: IpAddr) {
        self.peers.add(peer);
    }

    /// Makes sure that there is a connection, where the transport has such. The library would go on trying in silence and
    /// report a closed port or a bad certificate like a peer that says nothing.
    pub async fn connect(&self, destination: SocketAddr) -> Result<(), SignallingError> {
        if self.transport == Transport::Udp {
            return Ok(());
        }
        let address = transport::sip_address(self.transport, destination);
        let unreachable = |why: String| SignallingError::Unreachable(destination, why);
        let _alone = self.connecting.lock().await;
        let lookup = self.endpoint.transport_layer.lookup(&address, None);
        match tokio::time::timeout(transport::CONNECT_TIME, lookup).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(unreachable(error.to_string())),
            Err(_) => Err(unreachable(format!(
                "no connection within {} s",
                transport::CONNECT_TIME.as_secs()
            ))),
        }
    }

    /// Sends the INVITE. What becomes of it is told by the leg; an answer is acknowledged when `on_answer` has written it down.
    pub async fn invite(
        &self,
        invite: Invite,
        on_answer: OnAnswer,
    ) -> Result<Leg, SignallingError> {
        self.know(invite.destination.ip());
        self.connect(invite.destination).await?;
        let option = InviteOption {
            caller: uri(&invite.from)?,
            caller_display_name: invite.display_name,
            callee: uri(&invite.to)?,
            destination: Some(transport::sip_address(self.transport, invite.destination)),
            content_type: Some("application/sdp".to_owned()),
            offer: Some(invite.offer.into_bytes()),
            contact: self.contact_uri()?,
            credential: invite.credentials.map(SipCredentials::in_library),
            headers: Some(headers(invite.headers)),
            support_prack: true,
            call_id: Some(invite.call_id.clone()),
            ..InviteOption::default()
        };
        let (sender, states) = self.dialogs.new_dialog_state_channel();
        let gate = AnswerHold::close(&self.gates, invite.call_id, on_answer);
        let address = transport::sip_address(self.transport, invite.destination);
        let way = InviteRoute::remember(&self.ways, &option.callee, address);
        let (dialog, outcome) = self.dialogs.do_invite_async(option, sender)?;
        Ok(Leg::calling(
            Arc::clone(&self.dialogs),
            dialog,
            states,
            outcome,
            (gate, way),
        ))
    }

    /// Asks whether somebody is there (OPTIONS). The code of the answer, whatever it is; `None` for silence.
    pub async fn ping(
        &self,
        target: &str,
        destination: SocketAddr,
    ) -> Result<Option<u16>, SignallingError> {
        self.know(destination.ip());
        self.connect(destination).await?;
        let target = uri(target)?;
        let own = self.contact_uri()?;
        let sent_by = transport::sip_address(self.transport, self.contact);
        let via = self.endpoint.get_via(Some(sent_by), None)?;
        let from = rsipstack::sip::typed::From {
            display_name: None,
            uri: own.clone(),
            params: Vec::new(),
        }
        .with_tag(rsipstack::transaction::make_tag());
        let to = rsipstack::sip::typed::To {
            display_name: None,
            uri: target.clone(),
            params: Vec::new(),
        };
        let mut request =
            self.endpoint
                .make_request(Method::Options, target, via, from, to, 1, None);
        request
            .headers
            .push(Header::Contact(format!("<{own}>").into()));
        request
            .headers
            .push(Header::Accept("application/sdp".into()));
        let mut transaction = self.transaction(request, destination)?;
        transaction.send().await?;
        while let Some(message) = transaction.receive().await {
            if let SipMessage::Response(response) = message
                && response.status_code.code() >= 200
            {
                // The library makes a 408 of its own out of silence; nobody else sends one to OPTIONS without a To tag.
                let code = response.status_code.code();
                return Ok(Some(code).filter(|code| *code != 408));
            }
        }
        Ok(None)
    }

    fn transaction(
        &self,
        request: rsipstack::sip::Request,
        destination: SocketAddr,
    ) -> Result<Transaction, SignallingError> {
        let key = TransactionKey::from_request(&request, TransactionRole::Client)?;
        let mut transaction = Transaction::new_client(key, request, self.endpoint.clone(), None);
        transaction.destination = Some(transport::sip_address(self.transport, destination));
        Ok(transaction)
    }

    fn contact_uri(&self) -> Result<Uri, SignallingError> {
        match self.transport {
            Transport::Udp => uri(&format!("sip:{}", self.contact)),
            stream => uri(&format!("sip:{};transport={stream}", self.contact)),
        }
    }
}

impl Drop for Signalling {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn uri(text: &str) -> Result<Uri, SignallingError> {
    Uri::try_from(text).map_err(|_| SignallingError::Address(text.to_owned()))
}

fn headers(headers: Vec<(String, String)>) -> Vec<Header> {
    headers
        .into_iter()
        .map(|(name, value)| match name.as_str() {
            // The library looks for it by its type, to send a CANCEL the same way.
            "Route" => Header::Route(value.into()),
            _ => Header::Other(name, value),
        })
        .collect()
}
