//! Placing a call: the INVITE.

use std::net::SocketAddr;
use std::sync::Arc;

use rsipstack::dialog::invitation::InviteOption;
use rsipstack::sip::Header;

use super::answer_hold::{AnswerHold, OnAnswer};
use super::dialog::OwnedDialog;
use super::invite_routes::InviteRoute;
use super::outgoing_leg::OutgoingLeg;
use super::{Signalling, SignallingError, SipCredentials, transport, uri};

/// A call to be placed.
#[derive(Debug, Clone)]
pub struct Invite {
    /// `sip:number@trunk`
    pub to: String,
    /// `sip:caller@us`
    pub from: String,
    pub display_name: Option<String>,
    /// The address that the packet is sent to.
    pub destination: SocketAddr,
    /// Chosen by the caller, so that it is known before the first packet leaves.
    pub call_id: String,
    pub credentials: Option<SipCredentials>,
    pub headers: Vec<(String, String)>,
    pub offer: String,
}

impl Signalling {
    /// Sends the INVITE. The leg tells what becomes of it; an answer is acknowledged when `on_answer` has recorded it.
    pub async fn invite(
        &self,
        invite: Invite,
        on_answer: OnAnswer,
    ) -> Result<OutgoingLeg, SignallingError> {
        self.add_peer(invite.destination.ip());
        self.connect(invite.destination).await?;
        let address = transport::sip_address(self.transport, invite.destination);
        let option = InviteOption {
            caller: uri(&invite.from)?,
            caller_display_name: invite.display_name,
            callee: uri(&invite.to)?,
            destination: Some(address.clone()),
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
        let hold = AnswerHold::start(&self.answer_holds, invite.call_id, on_answer);
        let route = InviteRoute::remember(&self.invite_routes, &option.callee, address);
        let (dialog, outcome) = self.dialogs.do_invite_async(option, sender)?;
        let dialog = OwnedDialog::inviting(Arc::clone(&self.dialogs), dialog, outcome, route);
        Ok(OutgoingLeg::new(dialog, states, hold))
    }
}

fn headers(headers: Vec<(String, String)>) -> Vec<Header> {
    headers
        .into_iter()
        .map(|(name, value)| match name.as_str() {
            // The library looks for it by its type, to send a CANCEL along the same route.
            "Route" => Header::Route(value.into()),
            _ => Header::Other(name, value),
        })
        .collect()
}
