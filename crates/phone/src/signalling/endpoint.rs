//! One SIP endpoint: sockets, transactions, dialogs.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rsipstack::EndpointBuilder;
use rsipstack::sip::{Method, Uri};
use rsipstack::transaction::endpoint::{EndpointInnerRef, EndpointOption};
use rsipstack::transport::{SipConnection, TransportLayer};
use supervisor::{Supervisor, TaskGuard};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::answer_hold::AnswerHolds;
use super::dialogs::Dialogs;
use super::incoming::{self, Answering};
use super::invite_routes::{InviteLocator, InviteRoutes};
use super::listeners;
use super::peers::KnownPeers;
use super::response_filter::ResponseFilter;
use super::trace::{MessageTap, TraceInspector};
use super::transport::{self, Transport};
use super::{SILENCE, SignallingConfig, SignallingError, uri};

/// Longer than anybody may let it ring.
const LONGEST_RINGING: Duration = Duration::from_secs(3600);

/// It listens until it is dropped.
pub struct Signalling {
    /// Dropped first: without the rest they would end unasked.
    _listeners: Vec<TaskGuard>,
    pub(super) endpoint: EndpointInnerRef,
    pub(super) dialogs: Arc<Dialogs>,
    pub(super) transport: Transport,
    pub(super) contact: SocketAddr,
    /// Peers can connect to us. Without a certificate of ours nobody can over TLS: then what a peer sends has to come back on the connection
    /// that we have opened, and we are reached at its address.
    is_reachable: bool,
    pub(super) answer_holds: Arc<AnswerHolds>,
    pub(super) invite_routes: Arc<InviteRoutes>,
    peers: Arc<KnownPeers>,
    pub(super) tap: Arc<MessageTap>,
    /// One connection at a time is opened, so that a burst of calls shares it.
    connecting: tokio::sync::Mutex<()>,
    _stop: DropGuard,
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

impl Signalling {
    /// Starts listening. Requests that open a dialog go to `calls`, where there is one; otherwise they are refused. `supervisor` knows
    /// the tasks as `sip-listener`.
    pub async fn start(
        supervisor: &Supervisor,
        config: &SignallingConfig,
        calls: Option<Answering>,
    ) -> Result<Self, SignallingError> {
        let stop = CancellationToken::new();
        let stop_on_drop = stop.clone().drop_guard();
        let layer = TransportLayer::new(stop.child_token());
        let opened = transport::open(config, &layer, &stop).await?;
        let (local, contact) = (opened.local, opened.contact);
        let peers = Arc::new(KnownPeers::default());
        let answer_holds = Arc::new(AnswerHolds::default());
        let invite_routes = Arc::new(InviteRoutes::default());
        let tap = MessageTap::new(config.trace.clone(), config.transport, opened.own());
        let tap = Arc::new(tap);
        let filter = ResponseFilter::new(
            Arc::clone(&peers),
            Arc::clone(&answer_holds),
            Arc::clone(&tap),
        );
        let inspector = TraceInspector {
            tap: Arc::clone(&tap),
            placing: Arc::clone(&answer_holds),
        };
        let locator = InviteLocator(Arc::clone(&invite_routes));
        let mut builder = builder(config, layer, contact, &stop);
        let endpoint = builder
            .with_transport_inspector(Box::new(filter.clone()))
            .with_target_locator(Box::new(locator))
            .with_inspector(Box::new(inspector))
            .build();
        let dialogs = Arc::new(Dialogs::new(endpoint.inner.clone()));
        filter.belong_to(&endpoint.inner, &dialogs);
        let requests = endpoint.incoming_transactions()?;
        let mut listening =
            listeners::start(supervisor, &endpoint.inner, opened.udp, &filter).await;
        transport::listens(config, local).await?;
        let answering = Arc::clone(&dialogs);
        listening.push(supervisor.require("sip-listener", None, move |watch| {
            incoming::answer_requests(requests, answering, calls, watch)
        }));
        Ok(Self {
            _listeners: listening,
            endpoint: endpoint.inner.clone(),
            dialogs,
            transport: config.transport,
            contact,
            is_reachable: transport::is_reachable(config),
            answer_holds,
            invite_routes,
            peers,
            tap,
            connecting: tokio::sync::Mutex::new(()),
            _stop: stop_on_drop,
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

    /// From now on a stray answer of this peer is ended, even one to a call of an earlier process.
    pub fn add_peer(&self, peer: IpAddr) {
        self.peers.add(peer);
    }

    /// Makes sure that there is a connection, where the transport has connections, and returns the address at which this peer reaches us.
    pub async fn connect(&self, destination: SocketAddr) -> Result<SocketAddr, SignallingError> {
        match self.connection(destination).await? {
            Some(connection) if !self.is_reachable => connection
                .get_addr()
                .get_socketaddr()
                .map_err(|error| SignallingError::Unreachable(destination, error.to_string())),
            _ => Ok(self.contact),
        }
    }

    /// The connection to a peer, opened if there is none; `None` where the transport has no connections. The library would go on trying in
    /// silence and report a closed port or a bad certificate like a peer that says nothing.
    pub(super) async fn connection(
        &self,
        destination: SocketAddr,
    ) -> Result<Option<SipConnection>, SignallingError> {
        if self.transport == Transport::Udp {
            return Ok(None);
        }
        let address = transport::sip_address(self.transport, destination);
        let unreachable = |reason: String| SignallingError::Unreachable(destination, reason);
        let _alone = self.connecting.lock().await;
        let lookup = self.endpoint.transport_layer.lookup(&address, None);
        match tokio::time::timeout(transport::CONNECT_TIME, lookup).await {
            Ok(Ok((connection, _))) => {
                self.tap.connected(&connection, destination);
                Ok(Some(connection))
            }
            Ok(Err(error)) => Err(unreachable(error.to_string())),
            Err(_) => Err(unreachable(format!(
                "no connection within {} s",
                transport::CONNECT_TIME.as_secs()
            ))),
        }
    }

    /// Where we are reached. `user` is empty, or a user part.
    pub(super) fn contact_uri(
        &self,
        user: &str,
        contact: SocketAddr,
    ) -> Result<Uri, SignallingError> {
        let at = if user.is_empty() { "" } else { "@" };
        match self.transport {
            Transport::Udp => uri(&format!("sip:{user}{at}{contact}")),
            stream => uri(&format!("sip:{user}{at}{contact};transport={stream}")),
        }
    }
}

fn builder(
    config: &SignallingConfig,
    layer: TransportLayer,
    contact: SocketAddr,
    stop: &CancellationToken,
) -> EndpointBuilder {
    let mut builder = EndpointBuilder::new();
    builder
        .with_user_agent(&config.user_agent)
        .with_transport_layer(layer)
        .with_cancel_token(stop.child_token())
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
            // How long it may ring is our own matter (`DiallingCall::wait_for_answer`); the library would end it without a CANCEL.
            timerc: LONGEST_RINGING,
            callid_suffix: Some(contact.ip().to_string()),
            ..EndpointOption::default()
        });
    builder
}
