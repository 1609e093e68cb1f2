//! What happens in a dialog, as far as a leg has to know it. Requests that no leg cares about are answered here.

use rsipstack::dialog::dialog::{DialogState, TerminatedReason};
use rsipstack::sip::{Header, HeadersExt, Request, Response, StatusCode};

use super::headers::{DESCRIPTION, capabilities, header_value, tag};
use super::info;
use super::reply::SessionReply;

/// The peer wants to change the session (re-INVITE or UPDATE), or only shows that it is still there: then the offer is empty.
#[derive(Debug)]
pub struct SessionChange {
    pub offer: Vec<u8>,
    pub reply: SessionReply,
    /// Which of those that one INVITE has called wants it.
    pub peer_tag: Option<String>,
}

impl SessionChange {
    /// It carries an offer, or wants one.
    pub fn is_about_the_session(&self) -> bool {
        !self.offer.is_empty() || self.reply.wants_offer().is_some()
    }
}

pub(super) enum DialogEvent {
    /// A 100.
    Trying,
    /// An 18x.
    Early(Box<Response>),
    /// The ACK to an answer of ours has come, or our own has left.
    Confirmed,
    Changed(SessionChange),
    /// The peer tells of a key that was pressed.
    Key(char),
    /// By a BYE, or before the answer.
    Terminated {
        by_bye: bool,
    },
}

/// What a state of the library's dialog means.
pub(super) async fn interpret(state: DialogState) -> Option<DialogEvent> {
    match state {
        DialogState::Trying(_) => Some(DialogEvent::Trying),
        DialogState::Early(_, response) => Some(DialogEvent::Early(Box::new(response))),
        DialogState::Confirmed(..) => Some(DialogEvent::Confirmed),
        DialogState::Updated(_, request, handle) if is_something_else(&request) => {
            let accept = vec![Header::Accept(DESCRIPTION.into())];
            let status = StatusCode::UnsupportedMediaType;
            let _ = handle.respond(status, Some(accept), None).await;
            None
        }
        DialogState::Updated(_, request, handle) => Some(DialogEvent::Changed(SessionChange {
            reply: SessionReply::to(&request, handle),
            peer_tag: peer_tag(&request),
            offer: request.body,
        })),
        DialogState::Info(_, request, handle) => {
            let _ = handle.reply(StatusCode::OK).await;
            info::key(&request).map(DialogEvent::Key)
        }
        DialogState::Options(_, _, handle) => {
            let able = Some(capabilities());
            let _ = handle.respond(StatusCode::OK, able, None).await;
            None
        }
        DialogState::Notify(_, _, handle)
        | DialogState::Refer(_, _, handle)
        | DialogState::Message(_, _, handle)
        | DialogState::Publish(_, _, handle) => {
            let _ = handle.reply(StatusCode::MethodNotAllowed).await;
            None
        }
        DialogState::Terminated(_, reason) => Some(DialogEvent::Terminated {
            by_bye: matches!(reason, TerminatedReason::UacBye | TerminatedReason::UasBye),
        }),
        DialogState::Calling(_) | DialogState::WaitAck(..) => None,
    }
}

/// The body of a change is no description.
fn is_something_else(request: &Request) -> bool {
    let kind = header_value(request, "Content-Type").or_else(|| header_value(request, "c"));
    let is_description = kind.is_none_or(|kind| {
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case(DESCRIPTION)
    });
    !request.body.is_empty() && !is_description
}

fn peer_tag(request: &Request) -> Option<String> {
    tag(request.from_header().ok()?.value()).map(str::to_owned)
}
