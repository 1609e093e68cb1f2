//! SIP signalling. The library is used in this module only, behind our own types.
//!
//! What the library leaves to us, and where it is done: a dialog is removed when it has ended (`Leg`'s drop), every request inside a dialog
//! is answered (`incoming`, `Leg::next`), a target that stays silent is told from one that says no (`Leg::failure`), its timers are
//! short (`ENDPOINT_TIMEOUT`).

mod incoming;
mod leg;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rsipstack::EndpointBuilder;
use rsipstack::dialog::authenticate::Credential;
use rsipstack::dialog::dialog_layer::DialogLayer;
use rsipstack::dialog::invitation::InviteOption;
use rsipstack::sip::{Header, Method, Uri};
use rsipstack::transaction::endpoint::{EndpointInnerRef, EndpointOption};
use rsipstack::transport::udp::UdpConnection;
use rsipstack::transport::{SipAddr, TransportLayer};
use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

pub use incoming::{CallSender, IncomingCall};
pub use leg::{Leg, LegEvent, Reply};

/// 64 times T1 of RFC 3261, cut from 32 seconds: a trunk that says nothing at all for so long is down, and the next one is waiting.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(8);
/// Room for a burst of thousands of messages while the receiving task is busy elsewhere.
const SOCKET_BUFFER: usize = 4 << 20;

#[derive(Debug, Error)]
pub enum SignallingError {
    #[error("cannot listen on {0}: {1}")]
    Bind(SocketAddr, std::io::Error),
    #[error("not a SIP address: {0}")]
    Address(String),
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
    pub bind: SocketAddr,
    /// What peers shall see in Via and Contact, where it differs from what we are bound to.
    pub advertised: Option<SocketAddr>,
    pub user_agent: String,
}

/// A call to be placed.
#[derive(Debug, Clone)]
pub struct Invite {
    /// `sip:number@trunk`
    pub to: String,
    /// `sip:caller@us`
    pub from: String,
    pub display_name: Option<String>,
    /// Where the packet goes; the host of `to` where it is absent.
    pub destination: Option<SocketAddr>,
    pub credentials: Option<Credentials>,
    pub headers: Vec<(String, String)>,
    pub offer: String,
}

#[derive(Clone)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

impl std::fmt::Debug for Credentials {
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
    contact: SocketAddr,
    stop: CancellationToken,
}

impl std::fmt::Debug for Signalling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signalling")
            .field("contact", &self.contact)
            .field("dialogs", &self.dialogs.len())
            .finish_non_exhaustive()
    }
}

impl Signalling {
    /// Starts listening. Requests that open a dialog go to `calls`, where there is one; otherwise they are refused.
    pub async fn start(
        config: &SignallingConfig,
        calls: Option<CallSender>,
    ) -> Result<Self, SignallingError> {
        let stop = CancellationToken::new();
        let socket =
            udp_socket(config.bind).map_err(|error| SignallingError::Bind(config.bind, error))?;
        let local = socket
            .local_addr()
            .map_err(|error| SignallingError::Bind(config.bind, error))?;
        let transport = TransportLayer::new(stop.child_token());
        let udp = UdpConnection::from_socket(
            Arc::new(socket),
            config.advertised,
            Some(stop.child_token()),
        )
        .await?;
        transport.add_transport(udp.into());
        let contact = config.advertised.unwrap_or(local);
        let endpoint = EndpointBuilder::new()
            .with_user_agent(&config.user_agent)
            .with_transport_layer(transport)
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
                t1x64: ENDPOINT_TIMEOUT,
                callid_suffix: Some(contact.ip().to_string()),
                ..EndpointOption::default()
            })
            .build();
        let dialogs = Arc::new(DialogLayer::new(endpoint.inner.clone()));
        let requests = endpoint.incoming_transactions()?;
        let serving = endpoint.inner.clone();
        tokio::spawn(async move {
            if let Err(error) = serving.serve().await {
                tracing::error!(%error, "SIP is not served any more");
            }
        });
        tokio::spawn(incoming::answer_requests(
            requests,
            Arc::clone(&dialogs),
            calls,
        ));
        Ok(Self {
            endpoint: endpoint.inner.clone(),
            dialogs,
            contact,
            stop,
        })
    }

    pub fn contact(&self) -> SocketAddr {
        self.contact
    }

    /// Dialogs and transactions that are open now: for finding leaks.
    pub fn open(&self) -> (usize, usize) {
        (
            self.dialogs.len(),
            self.endpoint
                .get_running_transactions()
                .map_or(0, |keys| keys.len()),
        )
    }

    /// Sends the INVITE. What becomes of it is told by the leg.
    pub fn invite(&self, invite: Invite) -> Result<Leg, SignallingError> {
        let option = InviteOption {
            caller: uri(&invite.from)?,
            caller_display_name: invite.display_name,
            callee: uri(&invite.to)?,
            destination: invite.destination.map(SipAddr::from),
            content_type: Some("application/sdp".to_owned()),
            offer: Some(invite.offer.into_bytes()),
            contact: uri(&format!("sip:{}", self.contact))?,
            credential: invite.credentials.map(|credentials| Credential {
                username: credentials.user,
                password: credentials.password,
                realm: None,
                auth_username: None,
            }),
            headers: Some(
                invite
                    .headers
                    .into_iter()
                    .map(|(name, value)| Header::Other(name, value))
                    .collect(),
            ),
            support_prack: true,
            ..InviteOption::default()
        };
        let (sender, states) = self.dialogs.new_dialog_state_channel();
        let (dialog, outcome) = self.dialogs.do_invite_async(option, sender)?;
        Ok(Leg::calling(
            Arc::clone(&self.dialogs),
            dialog,
            states,
            outcome,
        ))
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

fn udp_socket(bind: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(bind), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    // The kernel gives what it is allowed to; less is no reason to stop.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    socket.bind(&bind.into())?;
    UdpSocket::from_std(socket.into())
}
