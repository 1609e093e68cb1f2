//! What becomes of an INVITE of ours: an answer, or why there is none.

use std::cmp::Reverse;

use rsipstack::dialog::invitation::InviteAsyncResult;
use rsipstack::sip::{HeadersExt, Param, Response, StatusCode};

use super::headers::{header_value, peer_tag};
use super::session_timer::SessionTimer;
use super::unescaped;
use crate::ending::Failure;

/// The contacts of one redirect that are looked at.
const MAX_CONTACTS: usize = 5;

/// The response that answered our INVITE.
#[derive(Debug)]
pub struct Answer(pub(super) Box<Response>);

impl Answer {
    pub fn code(&self) -> u16 {
        self.0.status_code.code()
    }

    /// The peer's session description.
    pub fn description(&self) -> &[u8] {
        &self.0.body
    }

    /// Which of those that one INVITE has called answered.
    pub fn peer_tag(&self) -> Option<String> {
        peer_tag(&self.0).map(str::to_owned)
    }

    /// The refreshes that the answer agrees to, if any.
    pub fn session_timer(&self) -> Option<SessionTimer> {
        SessionTimer::from_answer(&header_value(&*self.0, "Session-Expires")?)
    }

    /// True if the peer says that it understands this method.
    pub(super) fn allows(&self, method: &str) -> bool {
        allows(&self.0, method)
    }
}

pub(super) fn allows(response: &Response, method: &str) -> bool {
    let allowed = header_value(response, "Allow").unwrap_or_default();
    allowed
        .split(',')
        .any(|allowed| allowed.trim().eq_ignore_ascii_case(method))
}

/// Why a leg was not answered, and what the peer suggests instead.
#[derive(Debug)]
pub struct FailedInvite {
    pub failure: Failure,
    pub(super) response: Option<Box<Response>>,
}

impl FailedInvite {
    /// The addresses that a 3xx sends us to, the one that the peer likes best first (RFC 3261 section 8.1.3.4).
    pub fn redirected_to(&self) -> Vec<String> {
        let response = self.response.as_deref();
        response.map(redirect_targets).unwrap_or_default()
    }

    /// The interval that a 422 asks for (RFC 4028 section 6).
    pub fn shortest_session(&self) -> Option<u32> {
        shortest_session(self.response.as_deref()?)
    }
}

pub(super) fn shortest_session(response: &Response) -> Option<u32> {
    if response.status_code.code() != 422 {
        return None;
    }
    header_value(response, "Min-SE")?.trim().parse().ok()
}

/// The addresses that a response sends us to, if it is a 3xx.
pub(super) fn redirect_targets(response: &Response) -> Vec<String> {
    if response.status_code.code() / 100 != 3 {
        return Vec::new();
    }
    let mut contacts = response.typed_contact_headers().unwrap_or_default();
    contacts.sort_by_key(|contact| Reverse(thousandths(&contact.params)));
    contacts.truncate(MAX_CONTACTS);
    let targets = contacts
        .into_iter()
        .map(|contact| without_headers(unescaped(contact.uri).to_string()));
    targets.collect()
}

/// An address of a request has no headers in it (RFC 3261 section 19.1.1).
fn without_headers(mut address: String) -> String {
    let end = address.find('?').unwrap_or(address.len());
    address.truncate(end);
    address
}

/// How much a peer likes a contact; without a word about it, wholly.
fn thousandths(parameters: &[Param]) -> u16 {
    let q = parameters.iter().find_map(|parameter| match parameter {
        Param::Q(q) => q.value().trim().parse::<f32>().ok(),
        _ => None,
    });
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it lies between 0 and 1000"
    )]
    let thousandths = (q.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u16;
    thousandths
}

/// The end of an INVITE in our words.
#[derive(Debug)]
pub(super) enum InviteResult {
    Final(Box<Response>),
    /// A challenge that the library cannot answer: the peer has spoken, and the transport is not to blame.
    Challenged(StatusCode),
    Silence,
    NotSent,
    /// It rings, and the library has given up waiting for more: what it wanted to say to the peer could not be sent.
    Broken,
    /// There was no leave any more before anything left.
    Withheld,
    /// There was no leave any more to answer the challenge.
    Unproved(Box<Response>),
    /// There was no leave any more after it had left: it is not repeated, and whoever answers it is told that it is over.
    LeaveLost,
}

impl From<InviteAsyncResult> for InviteResult {
    fn from(result: InviteAsyncResult) -> Self {
        match result {
            Ok((_, Some(response))) => InviteResult::Final(Box::new(response)),
            Ok((_, None)) => InviteResult::Silence,
            Err(rsipstack::Error::DialogError(_, _, status)) => InviteResult::Challenged(status),
            Err(error) => {
                tracing::debug!(%error, "an INVITE could not be sent");
                InviteResult::NotSent
            }
        }
    }
}

/// The code, and the reason in the peer's own words, where it has some.
pub(super) fn code_and_reason(response: &Response) -> (u16, String) {
    let reason = response.wire_reason.clone();
    (
        response.status_code.code(),
        reason.unwrap_or_else(|| response.status_code.text().to_owned()),
    )
}
