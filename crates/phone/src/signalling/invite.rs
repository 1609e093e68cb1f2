//! Placing a call: the INVITE is made ready, and sent when there is leave to.

use std::net::SocketAddr;
use std::sync::Arc;

use rsipstack::dialog::authenticate::Credential;
use rsipstack::dialog::dialog::{DialogStateReceiver, DialogStateSender};
use rsipstack::dialog::invitation::InviteOption;
use rsipstack::sip::Header;
use rsipstack::transaction::transaction::Transaction;
use tokio_util::sync::CancellationToken;

use super::answer_hold::{AnswerHold, OnAnswer};
use super::conversations::Conversation;
use super::dialog::{InviteTask, OwnedDialog};
use super::dialogs::{Dialogs, LegDialog};
use super::headers::ALLOWED;
use super::invite_routes::InviteRoute;
use super::inviting::{Inviting, MAX_REPEATS, Opening, Repeats};
use super::leave::Leave;
use super::orphan::DialogSnapshot;
use super::outgoing_leg::OutgoingLeg;
use super::{Signalling, SignallingError, SipCredentials, Transport, transport, uri};

/// A call to be placed.
#[derive(Debug, Clone)]
pub struct Invite {
    /// The address of the request: `sip:number@trunk:port`
    pub target: String,
    /// `sip:number@trunk`
    pub to: String,
    /// `sip:caller@us`
    pub from: String,
    /// The user part of our Contact.
    pub contact_user: String,
    pub display_name: Option<String>,
    /// The address that the packet is sent to.
    pub destination: SocketAddr,
    /// Chosen by the caller, so that it is known before the first packet leaves.
    pub call_id: String,
    pub credentials: Option<SipCredentials>,
    pub headers: Vec<(String, String)>,
    pub offer: String,
}

/// A leg that has everything but leave: its INVITE is written, its connection is there, and nothing has been sent.
pub struct ReadyLeg {
    snapshot: DialogSnapshot,
    dialogs: Arc<Dialogs>,
    dialog: Arc<LegDialog>,
    transaction: Transaction,
    sender: DialogStateSender,
    states: DialogStateReceiver,
    transport: Transport,
    credentials: Option<Credential>,
    repeats: Repeats,
    hold: AnswerHold,
    route: InviteRoute,
    conversation: Arc<Conversation>,
}

impl Signalling {
    /// Makes an INVITE ready. When it has been sent, an answer is acknowledged as soon as `on_answer` has recorded it.
    pub async fn prepare(
        &self,
        invite: Invite,
        on_answer: OnAnswer,
    ) -> Result<ReadyLeg, SignallingError> {
        self.add_peer(invite.destination.ip());
        let contact = self.connect(invite.destination).await?;
        let address = transport::sip_address(self.transport, invite.destination);
        let contact = self.contact_uri(&invite.contact_user, contact)?;
        let credentials = invite.credentials.map(SipCredentials::in_library);
        let option = InviteOption {
            caller: uri(&invite.from)?,
            caller_display_name: invite.display_name,
            callee: uri(&invite.to)?,
            destination: Some(address.clone()),
            contact: contact.clone(),
            headers: Some(headers(invite.headers)),
            support_prack: true,
            call_id: Some(invite.call_id.clone()),
            ..InviteOption::default()
        };
        let layer = &self.dialogs.layer;
        let mut request = layer.make_invite_request(&option)?;
        // The library knows no other address for the request than that of To.
        request.uri = uri(&invite.target)?;
        request.body = invite.offer.into_bytes();
        let length = u32::try_from(request.body.len()).unwrap_or(u32::MAX);
        request.headers.push(Header::ContentLength(length.into()));
        let target = request.uri.clone();
        let (sender, states) = layer.new_dialog_state_channel();
        let opening = Opening {
            endpoint: &self.endpoint,
            states: &sender,
            credentials: credentials.clone(),
            destination: Some(address.clone()),
            connection: None,
            contact: Some(contact),
        };
        let (dialog, transaction) = opening.by(request)?;
        let unreadable = || SignallingError::Library("its own INVITE makes no sense".to_owned());
        let request = &transaction.original;
        let snapshot = DialogSnapshot::of_invite(request, Some(invite.destination));
        let repeats = Repeats::of(request).ok_or_else(unreadable)?;
        let conversation = self.converse(request, invite.destination);
        let conversation = Arc::new(conversation.ok_or_else(unreadable)?);
        let connector = Arc::clone(&self.connector);
        let way = (self.transport != Transport::Udp).then_some((connector, invite.destination));
        Ok(ReadyLeg {
            snapshot: DialogSnapshot {
                repeats: credentials.as_ref().map_or(0, |_| MAX_REPEATS),
                ..snapshot.ok_or_else(unreadable)?
            },
            dialogs: Arc::clone(&self.dialogs),
            dialog: Arc::new(LegDialog::placed(
                dialog,
                repeats.first_branch().to_owned(),
                sender.clone(),
                way,
            )),
            transaction,
            sender,
            states,
            transport: self.transport,
            credentials,
            repeats,
            hold: AnswerHold::start(&self.answer_holds, invite.call_id, on_answer),
            route: InviteRoute::remember(
                &self.invite_routes,
                &target,
                address,
                Arc::clone(&conversation),
            ),
            conversation,
        })
    }
}

impl ReadyLeg {
    /// What it takes to end the leg from another process, whatever has become of its INVITE.
    pub fn snapshot(&self) -> &DialogSnapshot {
        &self.snapshot
    }

    /// Sends the INVITE, if the leave holds. The leg tells what becomes of it.
    pub fn send(self, leave: Leave) -> OutgoingLeg {
        self.dialogs.add(&self.dialog);
        let unwanted = CancellationToken::new();
        let inviting = Inviting {
            transaction: self.transaction,
            dialog: Arc::clone(&self.dialog),
            states: self.sender,
            transport: self.transport,
            credentials: self.credentials,
            leave,
            unwanted: unwanted.clone(),
            repeats: self.repeats,
            conversation: self.conversation,
        };
        let invite = InviteTask {
            result: tokio::spawn(Box::new(inviting).run()),
            wanted: unwanted.drop_guard(),
        };
        let dialog = OwnedDialog::inviting(self.dialogs, self.dialog, invite, self.route);
        OutgoingLeg::new(dialog, self.snapshot, self.states, self.hold)
    }
}

impl std::fmt::Debug for ReadyLeg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadyLeg")
            .field("snapshot", &self.snapshot)
            .finish_non_exhaustive()
    }
}

fn headers(headers: Vec<(String, String)>) -> Vec<Header> {
    let able = std::iter::once(Header::Allow(ALLOWED.into()));
    let headers = headers
        .into_iter()
        .map(|(name, value)| match name.as_str() {
            // The library looks for it by its type, to send a CANCEL along the same route.
            "Route" => Header::Route(value.into()),
            _ => Header::Other(name, value),
        });
    able.chain(headers).collect()
}
