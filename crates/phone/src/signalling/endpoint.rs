//! One SIP endpoint: sockets, transactions, dialogs.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use rsipstack::EndpointBuilder;
use rsipstack::sip::{HeadersExt, Method, Request, Uri};
use rsipstack::transaction::endpoint::{EndpointInnerRef, EndpointOption};
use rsipstack::transport::TransportLayer;
use supervisor::{Supervisor, TaskGuard};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::accepting;
use super::answer_hold::AnswerHolds;
use super::connector::{OpenedConnections, TrunkConnector};
use super::conversations::{Conversation, Conversations};
use super::dialogs::Dialogs;
use super::doorkeeper::Doorkeeper;
use super::head;
use super::incoming::{self, Answering};
use super::invite_routes::{InviteLocator, InviteRoutes};
use super::listeners;
use super::opening;
use super::peer_tls::PeerTls;
use super::peers::KnownPeers;
use super::response_filter::{FilterParts, ResponseFilter};
use super::route_guard::{RouteGuard, RouteResolver};
use super::trace::{MessageTap, TraceInspector};
use super::transport::{self, Transport};
use super::udp_filter::UdpFilter;
use super::{Host, SILENCE, SignallingConfig, SignallingError, uri};

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
    /// Peers can connect to us. Otherwise what a peer sends has to come back on the connection that we have opened, and we are reached at
    /// its address.
    is_reachable: bool,
    pub(super) answer_holds: Arc<AnswerHolds>,
    pub(super) invite_routes: Arc<InviteRoutes>,
    pub(super) conversations: Arc<Conversations>,
    peers: Arc<KnownPeers>,
    pub(super) tap: Arc<MessageTap>,
    pub(super) connector: Arc<TrunkConnector>,
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
    /// Starts listening. Requests that open a dialog go to `calls`, where there is one, and then anybody is heard; otherwise they are
    /// refused, and strangers are not heard. `supervisor` knows the tasks as `sip-listener`.
    pub async fn start(
        supervisor: &Supervisor,
        config: &SignallingConfig,
        calls: Option<Answering>,
    ) -> Result<Self, SignallingError> {
        let stop = CancellationToken::new();
        let stop_on_drop = stop.clone().drop_guard();
        let tls = (config.transport == Transport::Tls).then(|| PeerTls::new(&config.tls));
        let tls = tls.transpose()?;
        let peers = Arc::new(KnownPeers::default());
        let heard = calls.is_none().then(|| Arc::clone(&peers));
        let conversations = Arc::new(Conversations::default());
        let filtered = |socket| UdpFilter {
            socket,
            peers: heard.clone(),
            conversations: Arc::clone(&conversations),
            refusals: Arc::clone(&config.refusals),
        };
        let opened = opening::open(config, calls.is_some(), filtered, &stop).await?;
        let contact = opened.contact;
        let answer_holds = Arc::new(AnswerHolds::default());
        let invite_routes = Arc::new(InviteRoutes::default());
        let tap = MessageTap::new(config.trace.clone(), config.transport, opened.own());
        let tap = Arc::new(tap);
        let opened_connections = Arc::new(OpenedConnections::default());
        let doorkeeper = Doorkeeper::new(heard.clone(), Arc::clone(&config.refusals));
        let filter = ResponseFilter::new(FilterParts {
            transport: config.transport,
            peers: Arc::clone(&peers),
            conversations: Arc::clone(&conversations),
            holds: Arc::clone(&answer_holds),
            tap: Arc::clone(&tap),
            doorkeeper: Arc::clone(&doorkeeper),
            opened: Arc::clone(&opened_connections),
        });
        let inspector = TraceInspector {
            tap: Arc::clone(&tap),
            placing: Arc::clone(&answer_holds),
        };
        let guard = RouteGuard {
            transport: config.transport,
            peers: heard,
        };
        let locator = InviteLocator {
            routes: Arc::clone(&invite_routes),
            guard: guard.clone(),
        };
        let layer = transport_layer(config, guard, &stop);
        let mut builder = builder(config, layer, contact, &stop);
        let endpoint = builder
            .with_transport_inspector(Box::new(filter.clone()))
            .with_target_locator(Box::new(locator))
            .with_inspector(Box::new(inspector))
            .build();
        let dialogs = Arc::new(Dialogs::new(endpoint.inner.clone()));
        filter.belong_to(&endpoint.inner, &dialogs);
        let requests = endpoint.incoming_transactions()?;
        let is_reachable = opened.is_reachable();
        let mut listening =
            listeners::start(supervisor, &endpoint.inner, opened.listener, &filter).await;
        let connector = Arc::new(TrunkConnector {
            endpoint: endpoint.inner.clone(),
            transport: config.transport,
            tap: Arc::clone(&tap),
            tls,
            opened: opened_connections,
            stop: stop.clone(),
        });
        if let Some(entrance) = opened.entrance {
            let (endpoint, stop) = (endpoint.inner.clone(), stop.clone());
            listening.push(supervisor.require(listeners::NAME, None, move |watch| {
                accepting::accept(entrance, endpoint, doorkeeper, stop, watch)
            }));
        }
        let answering = Arc::clone(&dialogs);
        listening.push(supervisor.require(listeners::NAME, None, move |watch| {
            incoming::answer_requests(requests, answering, calls, watch)
        }));
        Ok(Self {
            _listeners: listening,
            endpoint: endpoint.inner.clone(),
            dialogs,
            transport: config.transport,
            contact,
            is_reachable,
            answer_holds,
            invite_routes,
            conversations,
            peers,
            connector,
            tap,
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

    /// The dialogs of those, by their ids and states: for finding out which leg stays up.
    pub fn open_dialogs(&self) -> Vec<String> {
        self.dialogs.described()
    }

    /// From now on this peer is heard and may connect to us, and a stray answer of it is ended, even one to a call of an earlier process.
    pub fn add_peer(&self, peer: IpAddr) {
        self.peers.add(peer, Instant::now());
    }

    /// The same for all hosts of a network, which the operator has named.
    pub fn add_peer_network(&self, network: IpNet) {
        self.peers.add_network(network);
    }

    /// From now on a peer at this address has to prove over TLS that it is this host. One without a name proves that of the trunk.
    pub fn expect_host(&self, peer: SocketAddr, host: &Host) {
        if let Some(tls) = &self.connector.tls
            && host.address().is_none()
        {
            tls.expect(peer, &host.name);
        }
    }

    /// Hears the answers to a request of ours, wherever they come from, until the result is dropped.
    pub(super) fn converse(&self, request: &Request, trunk: SocketAddr) -> Option<Conversation> {
        let call_id = request.call_id_header().ok()?.value();
        let tag = head::tag(request.from_header().ok()?.value().as_bytes());
        Some(self.conversations.begin(call_id, tag, trunk))
    }

    /// Makes sure that there is a connection, where the transport has connections, and returns the address at which this peer reaches us.
    pub async fn connect(&self, destination: SocketAddr) -> Result<SocketAddr, SignallingError> {
        match self.connector.connection(destination).await? {
            Some(connection) if !self.is_reachable => connection
                .get_addr()
                .get_socketaddr()
                .map_err(|error| SignallingError::Unreachable(destination, error.to_string())),
            _ => Ok(self.contact),
        }
    }

    /// Closes the connection to a peer that was asked at that moment and has said nothing on it since. The next request opens another one.
    pub async fn close_if_silent(&self, peer: SocketAddr, since: Instant) {
        if self.transport != Transport::Udp {
            self.connector.close_if_silent(peer, since).await;
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

fn transport_layer(
    config: &SignallingConfig,
    guard: RouteGuard,
    stop: &CancellationToken,
) -> TransportLayer {
    let resolver = RouteResolver {
        resolver: config.resolver.clone(),
        guard,
    };
    let layer = TransportLayer::new_with_domain_resolver(stop.child_token(), Box::new(resolver));
    layer.set_stream_idle_timeout(config.idle_time);
    if config.transport == Transport::Tls {
        layer.set_tls_config(transport::tls_config(&config.tls));
    }
    layer
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
