//! SIP signalling. The library is used in this module only, behind our own types.
//!
//! What the library leaves to us, and where it is done:
//! - an INVITE leaves when there is leave to, not when it is made, and so does its repetition with credentials (`inviting`);
//! - a dialog is found by its requests while it lasts (`dialogs`), and removed when it has ended (`dialog`);
//! - every request inside a dialog is answered (`incoming`, `dialog_states`);
//! - a target that stays silent is told from one that refuses (`outgoing_leg`), and its timers are short (`SILENCE`);
//! - a connection that cannot be made is noticed at once, one to a peer that has vanished soon (`connector`), and one that a peer opens has limits
//!   (`accepting`, `doorkeeper`);
//! - each host over TLS is checked by its own name (`peer_tls`);
//! - what strangers send is dropped before the library sees it (`udp_filter`), unless it is about something that we have begun
//!   (`conversations`);
//! - requests inside a dialog keep the transport of their trunk, and lead to no service of ours (`first_hop`, `route_guard`, `udp_filter`);
//! - an answer to a call that nobody remembers is acknowledged and ended (`response_filter`);
//! - any other answer is acknowledged only when it has been recorded (`answer_hold`);
//! - a session is refreshed (`refresher`);
//! - challenges are translated into what the library understands (`challenge`);
//! - requests are written as the RFCs want them where the library writes them otherwise (`request_form`);
//! - a message that makes us or the library panic costs nobody else anything (`listeners`).

mod abandoned_invite;
mod accepting;
mod address_kind;
mod answer_hold;
mod branch;
mod challenge;
mod config;
mod connector;
mod conversations;
mod dialog;
mod dialog_states;
mod dialogs;
#[doc(hidden)]
pub mod dissect;
mod doorkeeper;
mod early_update;
mod endpoint;
mod established_leg;
mod first_hop;
mod head;
mod headers;
mod incoming;
mod incoming_leg;
mod info;
mod invite;
mod invite_outcome;
mod invite_routes;
mod inviting;
mod keepalive;
mod leave;
mod listeners;
mod masking;
mod opening;
mod options;
mod orphan;
mod outgoing_leg;
mod peer_tls;
mod peers;
mod presence;
mod redirect_target;
mod refresher;
mod refusals;
mod registration;
mod reply;
mod request_form;
mod resolve;
mod response_filter;
mod route_guard;
mod session_timer;
#[cfg(test)]
mod tests;
mod trace;
mod transport;
mod udp_filter;

use std::net::SocketAddr;
use std::time::Duration;

use rsipstack::sip::Uri;
use thiserror::Error;

pub use answer_hold::OnAnswer;
pub use config::{SignallingConfig, SipCredentials};
pub use dialog::ByeAnswer;
pub use dialog_states::SessionChange;
pub use endpoint::Signalling;
pub use established_leg::{EstablishedLeg, LegEvent};
pub use incoming::{Answering, CallSender, IncomingCall};
pub use incoming_leg::{IncomingLeg, UnacknowledgedLeg};
pub use invite::{Invite, ReadyLeg};
pub use invite_outcome::{Answer, FailedInvite};
pub use leave::Leave;
pub use orphan::DialogSnapshot;
pub use outgoing_leg::{CancelledLeg, DialEvent, OutgoingLeg};
pub use presence::{Presence, PresenceCheck};
pub(crate) use redirect_target::split_target;
pub use refresher::{Refreshed, Refresher};
pub use refusals::{RefusalCounts, SipRefusal};
pub use registration::{Registered, Registration};
pub use reply::SessionReply;
pub use resolve::{Host, LookupSource, Resolver, SrvRecord};
pub use session_timer::SessionTimer;
pub use trace::{Direction, Trace, TracedMessage};
pub use transport::{TlsFiles, Transport, own_address};

/// 64 times T1 of RFC 3261, cut from 32 seconds: a trunk that says nothing at all for this long is down, and the next one is waiting.
pub const SILENCE: Duration = Duration::from_secs(8);

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

fn uri(text: &str) -> Result<Uri, SignallingError> {
    let uri = Uri::try_from(text).map_err(|_| SignallingError::Address(text.to_owned()))?;
    Ok(unescaped(uri))
}

/// The library escapes user parts when it writes them, and does not undo that when it reads them.
fn unescaped(mut uri: Uri) -> Uri {
    if let Some(auth) = &mut uri.auth {
        auth.user = unescaped_text(&auth.user);
    }
    uri
}

/// The text without `%23` and the like. What is no escape, or stands for no plain letter, stays.
pub(crate) fn unescaped_text(text: &str) -> String {
    let mut parts = text.split('%');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(code) = code.filter(|code| code.is_ascii() && !code.is_ascii_control()) {
            plain.push(code.into());
            plain.push_str(&part[2..]);
        } else {
            plain.push('%');
            plain.push_str(part);
        }
    }
    plain
}
