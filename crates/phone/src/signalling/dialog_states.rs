//! What happens in a dialog, as far as a leg has to know it. Requests that no leg cares about are answered here.

use rsipstack::dialog::dialog::{DialogState, TerminatedReason};
use rsipstack::sip::{Response, StatusCode};

use super::info;
use super::reply::SessionReply;

/// The peer wants to change the session (re-INVITE or UPDATE), or only shows that it is still there: then the offer is empty.
#[derive(Debug)]
pub struct SessionChange {
    pub offer: Vec<u8>,
    pub reply: SessionReply,
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
        DialogState::Updated(_, request, handle) => Some(DialogEvent::Changed(SessionChange {
            reply: SessionReply::to(&request, handle),
            offer: request.body,
        })),
        DialogState::Info(_, request, handle) => {
            let _ = handle.reply(StatusCode::OK).await;
            info::key(&request).map(DialogEvent::Key)
        }
        DialogState::Options(_, _, handle) => {
            let _ = handle.reply(StatusCode::OK).await;
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
