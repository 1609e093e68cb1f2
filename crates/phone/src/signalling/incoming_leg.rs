//! A leg that a caller places: it rings, is answered or refused, and is up when the caller has acknowledged the answer.

use std::collections::VecDeque;

use rsipstack::dialog::dialog::DialogStateReceiver;
use rsipstack::sip::{Header, StatusCode};

use super::dialog::OwnedDialog;
use super::dialog_states::{DialogEvent, interpret};
use super::established_leg::{EstablishedLeg, LegEvent};

/// An INVITE of a caller that we have not answered. Dropping it refuses the call.
pub struct IncomingLeg {
    dialog: OwnedDialog,
    states: DialogStateReceiver,
}

impl IncomingLeg {
    pub(super) fn new(dialog: OwnedDialog, states: DialogStateReceiver) -> Self {
        Self { dialog, states }
    }

    /// Tells the caller that it rings, with early media where a description is given.
    pub fn ring(&self, description: Option<String>) {
        let headers = description
            .as_ref()
            .map(|_| vec![Header::ContentType("application/sdp".into())]);
        let _ = self
            .dialog
            .get()
            .ringing(headers, description.map(String::into_bytes));
    }

    /// Comes back when the caller has given up.
    pub async fn given_up(&mut self) {
        while let Some(state) = self.states.recv().await {
            match interpret(state).await {
                Some(DialogEvent::Terminated { .. }) => return,
                Some(DialogEvent::Changed(change)) => change.reply.refuse().await,
                _ => {}
            }
        }
    }

    pub fn answer(self, description: String) -> UnacknowledgedLeg {
        let headers = vec![Header::ContentType("application/sdp".into())];
        let _ = self
            .dialog
            .get()
            .accept(Some(headers), Some(description.into_bytes()));
        UnacknowledgedLeg(self)
    }

    /// Refuses the call with a final response.
    pub fn refuse(self, code: u16) {
        let _ = self.dialog.get().reject(Some(StatusCode::from(code)), None);
    }
}

impl std::fmt::Debug for IncomingLeg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IncomingLeg").finish_non_exhaustive()
    }
}

/// A leg that we have answered, and whose caller has not acknowledged that yet.
#[derive(Debug)]
pub struct UnacknowledgedLeg(IncomingLeg);

impl UnacknowledgedLeg {
    /// Waits for the caller's ACK; `None` if the caller gave up instead.
    pub async fn acknowledged(self) -> Option<EstablishedLeg> {
        let IncomingLeg { dialog, mut states } = self.0;
        let mut early = VecDeque::new();
        loop {
            let state = states.recv().await?;
            match interpret(state).await {
                Some(DialogEvent::Confirmed) => {
                    return Some(EstablishedLeg::new(dialog, states, early));
                }
                Some(DialogEvent::Changed(change)) => early.push_back(LegEvent::Changed(change)),
                Some(DialogEvent::Terminated { .. }) => return None,
                _ => {}
            }
        }
    }
}
