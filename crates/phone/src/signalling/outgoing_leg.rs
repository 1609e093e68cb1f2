//! A leg that we place: from the INVITE to its final response. Then it is an `EstablishedLeg`, or it is over.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rsipstack::dialog::dialog::DialogStateReceiver;
use rsipstack::sip::Response;

use super::answer_hold::AnswerHold;
use super::dialog::OwnedDialog;
use super::dialog_states::{DialogEvent, SessionChange, interpret};
use super::established_leg::{EstablishedLeg, LegEvent};
use super::headers::{peer_tag, q850, retry_after};
use super::invite_outcome::{Answer, FailedInvite, InviteResult, code_and_reason};
use super::orphan::DialogSnapshot;
use crate::ending::{Cause, Failure, Side};

/// What happens on a leg until it is answered.
#[derive(Debug)]
pub enum DialEvent {
    /// An 18x, with the description of early media where it carries one, and which of those that one INVITE has called sends it.
    Ringing {
        code: u16,
        early_media: Vec<u8>,
        peer_tag: Option<String>,
    },
    /// The peer wants to change the early session.
    Changed(SessionChange),
    /// Nothing comes after this: the leg goes on as `OutgoingLeg::established`.
    Answered(Answer),
    /// Nothing comes after this.
    Failed(FailedInvite),
    /// There was no leave any more, and nothing has left. Nothing comes after this.
    Withheld,
}

/// How far an INVITE got before its final response.
#[derive(Debug)]
enum Progress {
    Silence,
    Trying,
    /// With the last 18x.
    Ringing(Box<Response>),
}

impl Progress {
    fn rang(&self) -> bool {
        matches!(self, Progress::Ringing(_))
    }

    /// The library makes this response itself when nothing came back. Whoever sends one adds a tag (RFC 3261 section 8.2.6.2).
    fn is_made_up(&self, response: &Response) -> bool {
        response.status_code.code() == 408
            && matches!(self, Progress::Silence)
            && peer_tag(response).is_none()
    }

    fn failure(&self, cause: Cause) -> Failure {
        Failure {
            rang: self.rang(),
            trying: !matches!(self, Progress::Silence),
            ..Failure::plain(cause)
        }
    }
}

/// An INVITE without a final response. Dropping it cancels the INVITE.
pub struct OutgoingLeg {
    dialog: OwnedDialog,
    /// What it took to end the leg when its first INVITE left.
    first: DialogSnapshot,
    states: DialogStateReceiver,
    progress: Progress,
    /// What the peer did before its answer was known.
    early: VecDeque<LegEvent>,
    /// Keeps the answer from being acknowledged before it is recorded.
    hold: AnswerHold,
}

impl OutgoingLeg {
    pub(super) fn new(
        dialog: OwnedDialog,
        first: DialogSnapshot,
        states: DialogStateReceiver,
        hold: AnswerHold,
    ) -> Self {
        Self {
            dialog,
            first,
            states,
            progress: Progress::Silence,
            early: VecDeque::new(),
            hold,
        }
    }

    /// The next thing that happens. May be dropped and asked again at any time.
    pub async fn next(&mut self) -> DialEvent {
        loop {
            // States first: a 180 that came just before a 503 must be known when the 503 is judged.
            let state = tokio::select! {
                biased;
                Some(state) = self.states.recv() => state,
                outcome = self.dialog.outcome() => {
                    self.catch_up().await;
                    return self.finish(outcome);
                }
            };
            match interpret(state).await {
                Some(DialogEvent::Early(response)) => return self.rings(response),
                Some(DialogEvent::Changed(change)) => return DialEvent::Changed(change),
                event => self.notice(event),
            }
        }
    }

    /// The peer may have gone on already: what it did comes after the answer.
    async fn catch_up(&mut self) {
        while let Ok(state) = self.states.try_recv() {
            match interpret(state).await {
                Some(DialogEvent::Changed(change)) => {
                    self.early.push_back(LegEvent::Changed(change));
                }
                event => self.notice(event),
            }
        }
    }

    fn notice(&mut self, event: Option<DialogEvent>) {
        match event {
            Some(DialogEvent::Trying) if matches!(self.progress, Progress::Silence) => {
                self.progress = Progress::Trying;
            }
            Some(DialogEvent::Early(response)) => self.progress = Progress::Ringing(response),
            Some(DialogEvent::Key(key)) => self.early.push_back(LegEvent::Key(key)),
            // Answered and hung up at once: first the answer is told, then the end.
            Some(DialogEvent::Terminated { by_bye: true }) => {
                self.early.push_back(LegEvent::Ended(Side::Them));
            }
            _ => {}
        }
    }

    fn rings(&mut self, response: Box<Response>) -> DialEvent {
        let event = DialEvent::Ringing {
            code: response.status_code.code(),
            early_media: response.body.clone(),
            peer_tag: peer_tag(&response).map(str::to_owned),
        };
        self.progress = Progress::Ringing(response);
        event
    }

    fn finish(&self, outcome: InviteResult) -> DialEvent {
        let failed = |cause| FailedInvite {
            failure: self.progress.failure(cause),
            response: None,
        };
        DialEvent::Failed(match outcome {
            InviteResult::Final(response) if response.status_code.code() / 100 == 2 => {
                return DialEvent::Answered(Answer(response));
            }
            InviteResult::Final(response) if self.progress.is_made_up(&response) => {
                failed(Cause::TimedOut)
            }
            InviteResult::Final(response) => FailedInvite {
                failure: failure_of(&response, self.progress.rang()),
                response: Some(response),
            },
            InviteResult::Challenged(status) => FailedInvite {
                failure: Failure {
                    response: Some((status.code(), status.text().to_owned())),
                    ..self
                        .progress
                        .failure(Cause::from_response(status.code(), None))
                },
                response: None,
            },
            InviteResult::Silence => failed(Cause::TimedOut),
            InviteResult::NotSent => failed(Cause::TransportDown),
            InviteResult::Broken => FailedInvite {
                failure: Failure {
                    rang: true,
                    ..Failure::plain(Cause::TransportDown)
                },
                response: None,
            },
            InviteResult::LeaveLost => failed(Cause::LeaveLost),
            InviteResult::Unproved(challenge) => FailedInvite {
                failure: Failure {
                    cause: Cause::Withheld,
                    given_up: true,
                    ..failure_of(&challenge, self.progress.rang())
                },
                response: None,
            },
            InviteResult::Withheld => return DialEvent::Withheld,
        })
    }

    /// What it takes to end this leg from another process, as far as the peer has told it.
    pub fn snapshot(&self, sent_to: SocketAddr) -> Option<DialogSnapshot> {
        let invite = match self.dialog.repeated_invite() {
            Some(invite) => DialogSnapshot::of_invite(&invite, Some(sent_to))?,
            None => self.first.clone(),
        };
        let ringing = match &self.progress {
            Progress::Ringing(response) if peer_tag(response).is_some() => {
                DialogSnapshot::of_answer(response, Some(sent_to))
            }
            _ => None,
        };
        Some(DialogSnapshot {
            ringing: ringing.map(Box::new),
            // Whoever rings has taken it up.
            repeats: 0,
            ..invite
        })
    }

    /// The leg after `DialEvent::Answered`.
    pub fn established(self, _answer: &Answer) -> EstablishedLeg {
        EstablishedLeg::new(self.dialog, self.states, self.early)
    }

    /// Gives the call up: CANCEL, or BYE if the answer came in the same moment.
    pub async fn cancel(self) -> CancelledLeg {
        // An answer need not be recorded any more, so that it can be ended at once.
        drop(self.hold);
        self.dialog.cancel().await;
        CancelledLeg {
            dialog: self.dialog,
            states: self.states,
            progress: self.progress,
        }
    }
}

/// An INVITE that we have given up, until its final response.
pub struct CancelledLeg {
    dialog: OwnedDialog,
    states: DialogStateReceiver,
    progress: Progress,
}

impl CancelledLeg {
    /// Waits for the final response.
    pub async fn ended(&mut self) -> Failure {
        loop {
            let state = tokio::select! {
                biased;
                Some(state) = self.states.recv() => state,
                outcome = self.dialog.outcome() => return self.finish(outcome),
            };
            match interpret(state).await {
                Some(DialogEvent::Early(response)) => self.progress = Progress::Ringing(response),
                Some(DialogEvent::Changed(change)) => change.reply.refuse().await,
                _ => {}
            }
        }
    }

    /// What is known without the final response.
    pub fn unanswered(&self) -> Failure {
        self.progress.failure(Cause::Cancelled)
    }

    fn finish(&self, outcome: InviteResult) -> Failure {
        let response = match outcome {
            InviteResult::Final(response) if !self.progress.is_made_up(&response) => response,
            _ => return self.unanswered(),
        };
        // An answer that crossed our CANCEL: somebody was there.
        let rang = self.progress.rang() || response.status_code.code() / 100 == 2;
        Failure {
            cause: Cause::Cancelled,
            given_up: true,
            ..failure_of(&response, rang)
        }
    }
}

/// What a final response means.
fn failure_of(response: &Response, rang: bool) -> Failure {
    let q850 = q850(response);
    let told = q850.as_ref().map(|q850| q850.cause);
    let cause = Cause::from_response(response.status_code.code(), told);
    Failure {
        response: Some(code_and_reason(response)),
        q850,
        rang,
        retry_after: retry_after(response),
        ..Failure::plain(cause)
    }
}

impl std::fmt::Debug for OutgoingLeg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutgoingLeg")
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for CancelledLeg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancelledLeg").finish_non_exhaustive()
    }
}
