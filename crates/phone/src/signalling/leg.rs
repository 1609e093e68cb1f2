//! One leg of a call, placed or answered, as a sequence of events.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use rsipstack::dialog::dialog::{DialogState, DialogStateReceiver, TerminatedReason};
use rsipstack::dialog::dialog_layer::DialogLayer;
use rsipstack::dialog::invitation::InviteAsyncResult;
use rsipstack::dialog::invite_dialog::InviteDialog;
use rsipstack::sip::{HasHeaders, Header, HeadersExt, Response, StatusCode};
use tokio::task::JoinHandle;

use super::answer_hold::AnswerHold;
use super::invite_routes::InviteRoute;
use super::orphan::DialogSnapshot;
use super::refresher::Refresher;
use super::reply::SessionReply;
use super::session_timer::SessionTimer;
use crate::ending::{Cause, Failure, Side, q850_cause};

/// What happens on a leg.
#[derive(Debug)]
pub enum LegEvent {
    /// An 18x, with the description of early media where it carries one.
    Ringing { code: u16, early_media: Vec<u8> },
    /// Answered, with the peer's session description. For an incoming leg: the caller has confirmed our answer.
    Answered { description: Vec<u8> },
    /// The peer wants to change the session (re-INVITE or UPDATE) or only shows that it is still there; an empty offer is the latter.
    Changed { offer: Vec<u8>, reply: SessionReply },
    /// Never answered. Nothing comes after this.
    Failed(Failure),
    /// Hung up after it was answered. Nothing comes after this.
    Ended(Side),
}

/// How far an INVITE got before its final response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Silence,
    Trying,
    Ringing,
}

pub struct Leg {
    dialogs: Arc<DialogLayer>,
    dialog: InviteDialog,
    states: DialogStateReceiver,
    /// The INVITE that is under way; `None` once it has its final response, and on an incoming leg.
    outcome: Option<JoinHandle<InviteAsyncResult>>,
    progress: Progress,
    answered: bool,
    /// We hung up, or gave up.
    cancelled: bool,
    /// A hang-up that was noticed before the answer was told.
    ended: Option<Side>,
    /// Changes that were noticed before the answer was told.
    later: VecDeque<LegEvent>,
    /// The final response to our INVITE.
    answer: Option<Response>,
    /// The last 18x to it.
    ringing: Option<Response>,
    /// Where its answer waits until it is written down; `None` once we have given up, and on an incoming leg.
    gate: Option<AnswerHold>,
    /// For as long as a CANCEL may have to follow the INVITE.
    _way: Option<InviteRoute>,
}

impl Leg {
    pub(super) fn calling(
        dialogs: Arc<DialogLayer>,
        dialog: InviteDialog,
        states: DialogStateReceiver,
        outcome: JoinHandle<InviteAsyncResult>,
        (gate, way): (AnswerHold, InviteRoute),
    ) -> Self {
        Self {
            dialogs,
            dialog,
            states,
            outcome: Some(outcome),
            progress: Progress::Silence,
            answered: false,
            cancelled: false,
            ended: None,
            later: VecDeque::new(),
            answer: None,
            ringing: None,
            gate: Some(gate),
            _way: Some(way),
        }
    }

    pub(super) fn incoming(
        dialogs: Arc<DialogLayer>,
        dialog: InviteDialog,
        states: DialogStateReceiver,
    ) -> Self {
        Self {
            dialogs,
            dialog,
            states,
            outcome: None,
            progress: Progress::Trying,
            answered: false,
            cancelled: false,
            ended: None,
            later: VecDeque::new(),
            answer: None,
            ringing: None,
            gate: None,
            _way: None,
        }
    }

    /// The next thing that happens; `None` after the end.
    pub async fn next(&mut self) -> Option<LegEvent> {
        if let Some(event) = self.later.pop_front() {
            return Some(event);
        }
        if let Some(side) = self.ended.take_if(|_| self.answered) {
            return Some(LegEvent::Ended(side));
        }
        loop {
            let Some(outcome) = &mut self.outcome else {
                let state = self.states.recv().await?;
                match self.notice(state).await {
                    Some(event) => return Some(event),
                    None => continue,
                }
            };
            // States first: a 180 that came just before a 503 must be known when the 503 is judged.
            let state = tokio::select! {
                biased;
                Some(state) = self.states.recv() => state,
                result = outcome => {
                    // The peer may have gone on already: what it did comes after the answer.
                    while let Ok(state) = self.states.try_recv() {
                        if let Some(event @ LegEvent::Changed { .. }) = self.notice(state).await {
                            self.later.push_back(event);
                        }
                    }
                    self.outcome = None;
                    return Some(self.finish(result));
                }
            };
            if let Some(event) = self.notice(state).await {
                return Some(event);
            }
        }
    }

    /// What a state of the library's dialog means.
    async fn notice(&mut self, state: DialogState) -> Option<LegEvent> {
        match state {
            DialogState::Trying(_) => {
                self.progress = self.progress.max(Progress::Trying);
                None
            }
            DialogState::Early(_, response) => {
                self.progress = Progress::Ringing;
                self.ringing = Some(response.clone());
                Some(LegEvent::Ringing {
                    code: response.status_code.code(),
                    early_media: response.body,
                })
            }
            // The caller's ACK to our answer. On a leg that we placed the answer is told by `finish`.
            DialogState::Confirmed(..) if self.outcome.is_none() && !self.answered => {
                self.answered = true;
                Some(LegEvent::Answered {
                    description: Vec::new(),
                })
            }
            DialogState::Updated(_, request, handle) => Some(LegEvent::Changed {
                reply: SessionReply::to(&request, handle),
                offer: request.body,
            }),
            DialogState::Info(_, _, handle) | DialogState::Options(_, _, handle) => {
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
            DialogState::Terminated(_, reason) => self.terminated(&reason),
            DialogState::Calling(_) | DialogState::WaitAck(..) | DialogState::Confirmed(..) => None,
        }
    }

    fn terminated(&mut self, reason: &TerminatedReason) -> Option<LegEvent> {
        let by_bye = matches!(reason, TerminatedReason::UacBye | TerminatedReason::UasBye);
        let side = if self.cancelled { Side::Us } else { Side::Them };
        match (self.answered, self.outcome.is_some()) {
            (true, _) => Some(LegEvent::Ended(side)),
            // Answered and hung up at once: first the answer is told, then the end.
            (false, true) => {
                self.ended = by_bye.then_some(side);
                None
            }
            // An incoming leg that was given up by the caller before it was answered.
            (false, false) => Some(LegEvent::Failed(Failure {
                cause: Cause::Cancelled,
                response: None,
                rang: self.rang(),
            })),
        }
    }

    /// The final response to our INVITE, or none at all.
    fn finish(&mut self, result: Result<InviteAsyncResult, tokio::task::JoinError>) -> LegEvent {
        match result {
            Ok(Ok((_, Some(response))))
                if response.status_code.code() / 100 == 2 && !self.cancelled =>
            {
                self.answered = true;
                let description = response.body.clone();
                self.answer = Some(response);
                LegEvent::Answered { description }
            }
            Ok(Ok((_, Some(response)))) => {
                let failure = self.failure(&response);
                self.answer = Some(response);
                LegEvent::Failed(failure)
            }
            Ok(Ok((_, None))) => LegEvent::Failed(self.without_response(Cause::TimedOut)),
            // A challenge that the library has no answer to: the peer has spoken, and the transport is not to blame.
            Ok(Err(rsipstack::Error::DialogError(_, _, status))) if !self.cancelled => {
                LegEvent::Failed(Failure {
                    cause: Cause::from_response(status.code(), None),
                    response: Some((status.code(), status.text().to_owned())),
                    rang: self.rang(),
                })
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "an INVITE could not be sent");
                LegEvent::Failed(self.without_response(Cause::TransportDown))
            }
            Err(_) => LegEvent::Failed(self.without_response(Cause::TransportDown)),
        }
    }

    fn rang(&self) -> bool {
        self.progress == Progress::Ringing
    }

    fn without_response(&self, cause: Cause) -> Failure {
        let cause = if self.cancelled {
            Cause::Cancelled
        } else {
            cause
        };
        Failure {
            cause,
            response: None,
            rang: self.rang(),
        }
    }

    fn failure(&self, response: &Response) -> Failure {
        let code = response.status_code.code();
        let q850 = q850(response);
        let cause = match code {
            _ if self.cancelled => Cause::Cancelled,
            // The library makes this response itself when nothing came back.
            408 if self.progress == Progress::Silence => {
                return self.without_response(Cause::TimedOut);
            }
            _ => Cause::from_response(code, q850),
        };
        Failure {
            cause,
            // In the peer's own words, where it has some.
            response: Some((
                code,
                response
                    .wire_reason
                    .clone()
                    .unwrap_or_else(|| response.status_code.text().to_owned()),
            )),
            // An answer that crossed our CANCEL: somebody was there.
            rang: self.rang() || code / 100 == 2,
        }
    }

    /// What it takes to end this leg from elsewhere, as far as the peer has told it. `None` on an incoming leg.
    pub fn facts(&self, sent_to: SocketAddr) -> Option<DialogSnapshot> {
        let answer = self.answer.as_ref().filter(|_| self.answered);
        if let Some(facts) =
            answer.and_then(|answer| DialogSnapshot::of_answer(answer, Some(sent_to)))
        {
            return Some(facts);
        }
        let ringing = self.ringing.as_ref().filter(|ringing| has_tag(ringing));
        let facts = DialogSnapshot::of_invite(&self.dialog.initial_request(), Some(sent_to))?;
        Some(DialogSnapshot {
            ringing: ringing
                .and_then(|ringing| DialogSnapshot::of_answer(ringing, Some(sent_to)))
                .map(Box::new),
            ..facts
        })
    }

    /// Where a 3xx sends us.
    pub fn redirected_to(&self) -> Option<String> {
        let answer = self.answer.as_ref()?;
        if answer.status_code.code() / 100 != 3 {
            return None;
        }
        let contacts = answer.typed_contact_headers().ok()?;
        Some(contacts.first()?.uri.to_string())
    }

    /// The interval that a 422 asks for (RFC 4028 section 6).
    pub fn shortest_session(&self) -> Option<u32> {
        let answer = self.answer.as_ref()?;
        if answer.status_code.code() != 422 {
            return None;
        }
        header_value(answer, "Min-SE")?.trim().parse().ok()
    }

    /// The refreshes that the answer agrees to, if any.
    pub fn session_timer(&self) -> Option<SessionTimer> {
        SessionTimer::from_answer(&header_value(self.answer.as_ref()?, "Session-Expires")?)
    }

    /// Refreshes the session, beside the leg.
    pub fn refresher(&self) -> Refresher {
        let allowed = self
            .answer
            .as_ref()
            .and_then(|answer| header_value(answer, "Allow"))
            .unwrap_or_default();
        Refresher {
            dialog: self.dialog.clone(),
            by_update: allowed
                .split(',')
                .any(|method| method.trim().eq_ignore_ascii_case("UPDATE")),
        }
    }

    /// Ends the leg, whatever its state: CANCEL before the answer, BYE after it. The end is told by `next`.
    pub async fn hang_up(&mut self) {
        self.cancelled = true;
        self.gate = None;
        if self.outcome.is_some()
            && let Err(error) = self.dialog.cancel().await
        {
            tracing::debug!(%error, "a CANCEL was not confirmed");
        }
        // The answer may have come in the same moment, before we have told it: then there was nothing to cancel.
        if let Err(error) = end_confirmed(&self.dialog).await {
            // A BYE that nobody answers has ended the leg all the same.
            tracing::debug!(%error, "a BYE was not confirmed");
        }
    }

    /// For an incoming leg: it rings, with early media where a description is given.
    pub fn ring(&self, description: Option<String>) {
        let headers = description
            .as_ref()
            .map(|_| vec![Header::ContentType("application/sdp".into())]);
        let _ = self
            .dialog
            .ringing(headers, description.map(String::into_bytes));
    }

    /// For an incoming leg: answers it.
    pub fn answer(&self, description: String) {
        let headers = vec![Header::ContentType("application/sdp".into())];
        let _ = self
            .dialog
            .accept(Some(headers), Some(description.into_bytes()));
    }

    /// For an incoming leg: refuses it with a final response.
    pub fn refuse(&self, code: u16) {
        let _ = self.dialog.reject(Some(StatusCode::from(code)), None);
    }
}

/// The cause in the network's words, where a response has some.
pub(super) fn q850(response: &Response) -> Option<u8> {
    let reasons = response.headers().iter().filter_map(|header| match header {
        Header::Reason(reason) => Some(reason.value()),
        _ => None,
    });
    reasons.into_iter().find_map(q850_cause)
}

/// Only a response with a tag has opened a dialog.
fn has_tag(response: &Response) -> bool {
    response
        .to_header()
        .is_ok_and(|to| to.tag().is_ok_and(|tag| tag.is_some()))
}

/// Some headers have a type of their own in the library and some have not, depending on its version: by name both are found.
pub(super) fn header_value(message: &impl HasHeaders, name: &str) -> Option<String> {
    message
        .headers()
        .iter()
        .find(|header| header.name().eq_ignore_ascii_case(name))
        .map(|header| header.value().to_owned())
}

impl std::fmt::Debug for Leg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leg")
            .field("answered", &self.answered)
            .finish_non_exhaustive()
    }
}

/// BYE, if there is anything to end by it.
async fn end_confirmed(dialog: &InviteDialog) -> rsipstack::Result<()> {
    let state = dialog.state();
    if state.is_confirmed() || state.waiting_ack() {
        return dialog.bye().await;
    }
    Ok(())
}

impl Drop for Leg {
    fn drop(&mut self) {
        let (dialogs, dialog) = (Arc::clone(&self.dialogs), self.dialog.clone());
        let _ = dialog.reject(Some(StatusCode::TemporarilyUnavailable), None);
        let outcome = self.outcome.take();
        if outcome.is_none() && dialog.state().is_terminated() {
            return dialogs.remove_dialog(&dialog.id());
        }
        // Nobody is left to hang up: an INVITE that is under way is cancelled by the library, and a leg that is up, or was answered in this
        // very moment, is ended here.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            if let Some(outcome) = outcome {
                outcome.abort();
                let _ = outcome.await;
            }
            let _ = end_confirmed(&dialog).await;
            dialogs.remove_dialog(&dialog.id());
        });
    }
}
