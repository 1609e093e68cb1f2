//! A leg that is up: somebody has answered, here or there.

use std::collections::VecDeque;
use std::sync::Arc;

use rsipstack::dialog::dialog::DialogStateReceiver;
use rsipstack::sip::HeadersExt;

use super::dialog::{ByeAnswer, OwnedDialog};
use super::dialog_states::{DialogEvent, SessionChange, interpret};
use super::dialogs::LegDialog;
use super::invite_outcome::Answer;
use super::refresher::Refresher;
use crate::ending::Side;

/// What happens on a leg that is up.
#[derive(Debug)]
pub enum LegEvent {
    Changed(SessionChange),
    /// The peer has acknowledged our answer to its INVITE of this number, and describes the session by it.
    Acknowledged {
        number: u32,
        answer: Vec<u8>,
    },
    /// The peer tells of a key that was pressed.
    Key(char),
    /// One side has hung up. Nothing comes after this.
    Ended(Side),
}

/// Dropping it hangs up.
pub struct EstablishedLeg {
    dialog: OwnedDialog,
    states: DialogStateReceiver,
    /// What the peer did before the leg was known to be up.
    early: VecDeque<LegEvent>,
    we_hung_up: bool,
}

impl EstablishedLeg {
    pub(super) fn new(
        dialog: OwnedDialog,
        states: DialogStateReceiver,
        early: VecDeque<LegEvent>,
    ) -> Self {
        Self {
            dialog,
            states,
            early,
            we_hung_up: false,
        }
    }

    /// The next thing that happens; `None` after the end.
    pub async fn next(&mut self) -> Option<LegEvent> {
        if let Some(event) = self.early.pop_front() {
            return Some(event);
        }
        loop {
            let state = self.states.recv().await?;
            match interpret(state).await {
                Some(DialogEvent::Changed(change)) => {
                    self.dialog.follow(&change.reply);
                    return Some(LegEvent::Changed(change));
                }
                Some(DialogEvent::Confirmed) => {
                    if let Some(acknowledged) = self.acknowledged() {
                        return Some(acknowledged);
                    }
                }
                Some(DialogEvent::Key(key)) => return Some(LegEvent::Key(key)),
                Some(DialogEvent::Terminated { .. }) => {
                    let side = if self.we_hung_up {
                        Side::Us
                    } else {
                        Side::Them
                    };
                    return Some(LegEvent::Ended(side));
                }
                _ => {}
            }
        }
    }

    /// The last ACK of the peer, if it describes the session.
    fn acknowledged(&self) -> Option<LegEvent> {
        let ack = self.dialog.get().last_remote_ack()?;
        let number = ack.cseq_header().ok()?.seq().ok()?;
        let answer = Some(ack.body).filter(|body| !body.is_empty())?;
        Some(LegEvent::Acknowledged { number, answer })
    }

    /// Sends BYE. The end comes from `next`.
    pub async fn hang_up(&mut self) -> ByeAnswer {
        self.we_hung_up = true;
        self.dialog.hang_up().await
    }

    pub(super) fn dialog(&self) -> Arc<LegDialog> {
        self.dialog.share()
    }

    /// Refreshes the session, beside the leg.
    pub fn refresher(&self, answer: &Answer) -> Refresher {
        Refresher {
            dialog: self.dialog.share(),
            by_update: answer.allows("UPDATE"),
        }
    }
}

impl std::fmt::Debug for EstablishedLeg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EstablishedLeg")
            .field("we_hung_up", &self.we_hung_up)
            .finish_non_exhaustive()
    }
}
