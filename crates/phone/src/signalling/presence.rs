//! Whether the far end of a call is still there: OPTIONS inside the dialog (RFC 3261 section 11).

use std::net::SocketAddr;
use std::sync::Arc;

use rsipstack::sip::{Method, SipMessage};
use rsipstack::transaction::endpoint::EndpointInnerRef;
use rsipstack::transaction::key::{TransactionKey, TransactionRole};
use rsipstack::transaction::transaction::Transaction;

use super::dialogs::LegDialog;
use super::established_leg::EstablishedLeg;
use super::orphan::DialogSnapshot;
use super::{Signalling, SignallingError, Transport};

/// What comes of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    There,
    /// It does not know the call any more.
    Gone,
    /// Nothing came back.
    Silent,
    /// Somebody on the way says that he did not get through, which may be his own trouble, and may pass.
    Unreached,
}

/// Asks about one call. The question is a transaction of its own: the library would end the dialog over a challenge.
#[derive(Clone)]
pub struct PresenceCheck {
    endpoint: EndpointInnerRef,
    transport: Transport,
    sent_to: SocketAddr,
    dialog: Arc<LegDialog>,
}

impl Signalling {
    /// For asking whether the far end of a leg of ours is there. `sent_to` is the address that its INVITE was sent to.
    pub fn presence_check(&self, leg: &EstablishedLeg, sent_to: SocketAddr) -> PresenceCheck {
        PresenceCheck {
            endpoint: self.endpoint.clone(),
            transport: self.transport,
            sent_to,
            dialog: leg.dialog(),
        }
    }
}

impl PresenceCheck {
    pub async fn ask(&self) -> Presence {
        match self.response().await {
            Ok(Some(code)) => judge(code),
            Ok(None) | Err(_) => Presence::Silent,
        }
    }

    /// The code of the final response, if one comes.
    async fn response(&self) -> Result<Option<u16>, SignallingError> {
        let Some(number) = self.dialog.next_number() else {
            return Ok(None);
        };
        let dialog = self.dialog.get().snapshot();
        let routes = dialog.route_set.iter();
        let question = DialogSnapshot {
            target: dialog.remote_uri.to_string(),
            from: dialog.from.to_string(),
            to: dialog.to.to_string(),
            call_id: dialog.id.call_id,
            cseq: number,
            routes: routes.map(|route| route.value().to_owned()).collect(),
            via: None,
            sent_to: Some(self.sent_to),
            ringing: None,
            repeats: 0,
        };
        let request = question.request(&self.endpoint, Method::Options, number)?;
        let destination = question.destination(self.transport);
        let key = TransactionKey::from_request(&request, TransactionRole::Client)?;
        let mut transaction = Transaction::new_client(key, request, self.endpoint.clone(), None);
        transaction.destination = destination;
        transaction.send().await?;
        while let Some(message) = transaction.receive().await {
            if let SipMessage::Response(response) = message
                && response.status_code.code() >= 200
            {
                return Ok(Some(response.status_code.code()));
            }
        }
        Ok(None)
    }
}

/// The library makes a 408 of its own out of silence; a proxy that waits for nobody sends one too. What proxies and gateways alone say is told
/// from what a far end may say that is busy or does not like the question.
fn judge(code: u16) -> Presence {
    match code {
        481 => Presence::Gone,
        408 => Presence::Silent,
        430 | 477 | 502 | 504 => Presence::Unreached,
        _ => Presence::There,
    }
}

impl std::fmt::Debug for PresenceCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PresenceCheck")
            .field("sent_to", &self.sent_to)
            .finish_non_exhaustive()
    }
}
