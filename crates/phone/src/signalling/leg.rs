//! One leg of a call, placed or answered, as a sequence of events.

use std::sync::Arc;

use rsipstack::dialog::dialog::{
    DialogState, DialogStateReceiver, TerminatedReason, TransactionHandle,
};
use rsipstack::dialog::dialog_layer::DialogLayer;
use rsipstack::dialog::invitation::InviteAsyncResult;
use rsipstack::dialog::invite_dialog::InviteDialog;
use rsipstack::sip::{HasHeaders, Header, Response, StatusCode};
use tokio::task::JoinHandle;

use crate::ending::{Cause, Failure, Side, q850_cause};

/// What happens on a leg.
#[derive(Debug)]
pub enum LegEvent {
    /// An 18x, with the description of early media where it carries one.
    Ringing { code: u16, early_media: Vec<u8> },
    /// Answered, with the peer's session description. For an incoming leg: the caller has confirmed our answer.
    Answered { description: Vec<u8> },
    /// The peer wants to change the session (re-INVITE or UPDATE) or only shows that it is still there; an empty offer is the latter.
    Changed { offer: Vec<u8>, reply: Reply },
    /// Never answered. Nothing comes after this.
    Failed(Failure),
    /// Hung up after it was answered. Nothing comes after this.
    Ended(Side),
}

/// Answers one request of the peer; dropping it refuses.
#[derive(Debug)]
pub struct Reply(TransactionHandle);

impl Reply {
    pub async fn accept(self, description: Option<String>) {
        let headers = description
            .as_ref()
            .map(|_| vec![Header::ContentType("application/sdp".into())]);
        // The peer may have gone; then the leg tells so.
        let _ = self
            .0
            .respond(StatusCode::OK, headers, description.map(String::into_bytes))
            .await;
    }

    pub async fn refuse(self) {
        let _ = self
            .0
            .respond(StatusCode::NotAcceptableHere, None, None)
            .await;
    }
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
}

impl Leg {
    pub(super) fn calling(
        dialogs: Arc<DialogLayer>,
        dialog: InviteDialog,
        states: DialogStateReceiver,
        outcome: JoinHandle<InviteAsyncResult>,
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
        }
    }

    /// The next thing that happens; `None` after the end.
    pub async fn next(&mut self) -> Option<LegEvent> {
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
                    self.outcome = None;
                    while let Ok(state) = self.states.try_recv() {
                        self.notice(state).await;
                    }
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
                offer: request.body,
                reply: Reply(handle),
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
                LegEvent::Answered {
                    description: response.body,
                }
            }
            Ok(Ok((_, Some(response)))) => LegEvent::Failed(self.failure(&response)),
            Ok(Ok((_, None))) => LegEvent::Failed(self.without_response(Cause::TimedOut)),
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
        let reasons = response.headers().iter().filter_map(|header| match header {
            Header::Reason(reason) => Some(reason.to_string()),
            _ => None,
        });
        let q850 = reasons
            .into_iter()
            .find_map(|reason| q850_cause(reason.trim_start_matches("Reason:").trim()));
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
            response: Some((code, response.status_code.text().to_owned())),
            rang: self.rang(),
        }
    }

    /// Ends the leg, whatever its state: CANCEL before the answer, BYE after it. The end is told by `next`.
    pub async fn hang_up(&mut self) {
        self.cancelled = true;
        let result = if self.answered {
            self.dialog.bye().await
        } else {
            self.dialog.cancel().await
        };
        if let Err(error) = result {
            // A BYE that nobody answers has ended the leg all the same.
            tracing::debug!(%error, "hanging up was not confirmed");
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

impl std::fmt::Debug for Leg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leg")
            .field("answered", &self.answered)
            .finish_non_exhaustive()
    }
}

impl Drop for Leg {
    fn drop(&mut self) {
        // An INVITE that nobody waits for any more is cancelled by the library, and a late answer to it acknowledged and ended.
        if let Some(outcome) = self.outcome.take() {
            outcome.abort();
        }
        self.dialogs.remove_dialog(&self.dialog.id());
    }
}
