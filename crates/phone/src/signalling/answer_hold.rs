//! ResponseFilter wait here for a moment. The library acknowledges an answer as soon as it sees it, and a peer that has been acknowledged considers the
//! call to be up. So an answer is shown to it only when what it takes to end the leg has been written down: if this process dies before that, the
//! peer is never acknowledged, and ends the call itself, or is told to by the next life of the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rsipstack::sip::{HeadersExt, Method, Response, StatusCodeKind};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::orphan::DialogSnapshot;

/// A callee who has picked up waits for no longer than this, whatever the writer does.
pub(super) const LONGEST: Duration = Duration::from_millis(250);

/// Honest peers need few.
const MAX_BEHIND: usize = 8;

/// Writes the facts of an answered leg down; what it returns comes when that is done, or is dropped.
pub type OnAnswer = Box<dyn FnOnce(Option<DialogSnapshot>) -> oneshot::Receiver<()> + Send>;

enum Gate {
    Closed(OnAnswer),
    /// An answer waits in it, and perhaps others behind it.
    Opening {
        opened: CancellationToken,
        behind: usize,
    },
}

/// What is to be done with an answer that has come.
pub(super) enum Arrival {
    /// Nobody wants to write anything down, or that is done.
    Pass,
    /// The first one: the gate opens when it has been written down.
    Hold(OnAnswer),
    /// One that repeats itself while the first waits, or another telephone that was called by the same INVITE.
    Follow(CancellationToken),
    /// There are too many of them. An answer that is not acknowledged comes again.
    Drop,
}

/// A gate for as long as its call is being placed.
#[derive(Debug)]
pub(super) struct AnswerHold {
    gates: Arc<AnswerHolds>,
    call_id: String,
}

impl AnswerHold {
    pub fn close(gates: &Arc<AnswerHolds>, call_id: String, on_answer: OnAnswer) -> Self {
        gates
            .lock()
            .insert(call_id.clone(), Gate::Closed(on_answer));
        Self {
            gates: Arc::clone(gates),
            call_id,
        }
    }
}

impl Drop for AnswerHold {
    fn drop(&mut self) {
        self.gates.open(&self.call_id);
    }
}

/// The gates of the calls that are being placed, by Call-ID.
#[derive(Default)]
pub(super) struct AnswerHolds(Mutex<HashMap<String, Gate>>);

impl AnswerHolds {
    pub fn open(&self, call_id: &str) {
        if let Some(Gate::Opening { opened, .. }) = self.lock().remove(call_id) {
            opened.cancel();
        }
    }

    pub fn arrive(&self, call_id: &str) -> Arrival {
        let mut gates = self.lock();
        let Some(gate) = gates.get_mut(call_id) else {
            return Arrival::Pass;
        };
        if let Gate::Opening { opened, behind } = gate {
            *behind += 1;
            return if *behind > MAX_BEHIND {
                Arrival::Drop
            } else {
                Arrival::Follow(opened.clone())
            };
        }
        let opening = Gate::Opening {
            opened: CancellationToken::new(),
            behind: 0,
        };
        match std::mem::replace(gate, opening) {
            Gate::Closed(on_answer) => Arrival::Hold(on_answer),
            Gate::Opening { .. } => Arrival::Drop,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Gate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for AnswerHolds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Gates").field(&self.lock().len()).finish()
    }
}

/// The Call-ID of a response that answers an INVITE.
pub(super) fn answered_call(answer: &Response) -> Option<&str> {
    let answers = answer.status_code.kind() == StatusCodeKind::Successful
        && answer.cseq_header().ok()?.method().ok()? == Method::Invite;
    let call_id = answer.call_id_header().ok()?.value();
    answers.then_some(call_id)
}
