//! Answers are held here for a moment. The library acknowledges an answer as soon as it sees it, and a peer that has been acknowledged
//! considers the call to be up. So an answer is passed to the library only when what it takes to end the leg has been recorded. If this
//! process dies before that, the peer is never acknowledged: it ends the call itself, or the next process tells it to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rsipstack::sip::{HeadersExt, Method, Response, StatusCodeKind};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::headers::peer_tag;
use super::orphan::DialogSnapshot;

/// A callee who has picked up waits for no longer than this, whatever the recording does. It is there for a process that cannot record anything:
/// whoever records finds another way sooner where the usual one is slow.
pub(super) const LONGEST_HOLD: Duration = Duration::from_secs(1);

/// The most answers that are held for one call. Honest peers need few.
const MAX_HELD: usize = 8;

/// Records the snapshot of an answered leg. What it returns comes, or is dropped, when that is done.
pub type OnAnswer = Box<dyn FnOnce(Option<DialogSnapshot>) -> oneshot::Receiver<()> + Send>;

enum HoldState {
    /// No answer has come yet.
    Waiting(OnAnswer),
    /// An answer is held until it is recorded, and perhaps others with it.
    Holding {
        released: CancellationToken,
        others: usize,
    },
}

/// What is to be done with an answer that has come.
pub(super) enum ArrivingAnswer {
    /// Nobody wants to record it, or that is done.
    Pass,
    /// It is the first one: it is released when it has been recorded.
    Record(OnAnswer),
    /// It repeats the first one, or comes from another telephone that the same INVITE called: it is released with the first one.
    Wait(CancellationToken),
    /// Too many are held. An answer that is not acknowledged comes again.
    Ignore,
}

/// Holds the answer of a call for as long as the call is being placed.
#[derive(Debug)]
pub(super) struct AnswerHold {
    holds: Arc<AnswerHolds>,
    call_id: String,
}

impl AnswerHold {
    pub fn start(holds: &Arc<AnswerHolds>, call_id: String, on_answer: OnAnswer) -> Self {
        holds
            .lock()
            .insert(call_id.clone(), HoldState::Waiting(on_answer));
        Self {
            holds: Arc::clone(holds),
            call_id,
        }
    }
}

impl Drop for AnswerHold {
    fn drop(&mut self) {
        self.holds.release(&self.call_id);
    }
}

/// The holds of the calls that are being placed, by Call-ID.
#[derive(Default)]
pub(super) struct AnswerHolds(Mutex<HashMap<String, HoldState>>);

impl AnswerHolds {
    /// Answers to this call are not held any more.
    pub fn release(&self, call_id: &str) {
        if let Some(HoldState::Holding { released, .. }) = self.lock().remove(call_id) {
            released.cancel();
        }
    }

    /// True for a response to the INVITE of a call that is being placed.
    pub fn is_awaited_by(&self, response: &Response) -> bool {
        let call_id = response.call_id_header();
        is_about_invite(response)
            && call_id.is_ok_and(|call_id| self.lock().contains_key(call_id.value()))
    }

    /// Judges an answer that has come.
    pub fn judge(&self, call_id: &str) -> ArrivingAnswer {
        let mut holds = self.lock();
        let Some(state) = holds.get_mut(call_id) else {
            return ArrivingAnswer::Pass;
        };
        if let HoldState::Holding { released, others } = state {
            *others += 1;
            return if *others > MAX_HELD {
                ArrivingAnswer::Ignore
            } else {
                ArrivingAnswer::Wait(released.clone())
            };
        }
        let holding = HoldState::Holding {
            released: CancellationToken::new(),
            others: 0,
        };
        match std::mem::replace(state, holding) {
            HoldState::Waiting(on_answer) => ArrivingAnswer::Record(on_answer),
            HoldState::Holding { .. } => ArrivingAnswer::Ignore,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, HoldState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for AnswerHolds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AnswerHolds")
            .field(&self.lock().len())
            .finish()
    }
}

/// True for a 2xx to an INVITE.
pub(super) fn is_answer(response: &Response) -> bool {
    response.status_code.kind() == StatusCodeKind::Successful && is_about_invite(response)
}

/// True for an 18x to an INVITE that has opened a dialog.
pub(super) fn is_ringing(response: &Response) -> bool {
    (101..200).contains(&response.status_code.code())
        && peer_tag(response).is_some()
        && is_about_invite(response)
}

fn is_about_invite(response: &Response) -> bool {
    let method = response
        .cseq_header()
        .and_then(rsipstack::sip::CSeq::method);
    method == Ok(Method::Invite)
}
