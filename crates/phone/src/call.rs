//! Whole calls over one trunk: try its addresses, dial, wait for the answer, play, hang up. A call is one future, with one typed value at
//! its end.

mod dialling;
mod next_attempt;
mod session_refresh;
mod talking;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use supervisor::Supervisor;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::ending::{Cause, Ending, Failure};
use crate::event_order::EventOrder;
pub use crate::media::engine::{MediaConfig, MediaOptions};
use crate::media::engine::{MediaEngine, MediaError};
use crate::media::inbound::InboundEvent;
pub use crate::media::stats::MediaStats;
use crate::media::stream::PlaybackItem;
use crate::signalling::{DialogSnapshot, SignallingError};
use crate::trunk::Trunk;
use dialling::DiallingCall;
use next_attempt::NextAttempt;

/// A 3xx may lead to another one; this many are followed.
const REDIRECTS: usize = 3;

type Events = mpsc::UnboundedSender<CallEvent>;

#[derive(Debug, Error)]
pub enum PhoneError {
    #[error(transparent)]
    Signalling(#[from] SignallingError),
    #[error("the media engine cannot start: {0}")]
    Media(#[from] MediaError),
}

/// What is needed to place a call.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The called number, in the form that the trunk wants.
    pub number: String,
    /// The calling number, likewise.
    pub caller: String,
    /// Chosen by the caller of this crate, so that it is known before the first packet leaves.
    pub call_id: String,
    /// Everything that is sent after the answer, lead-in and keys for an extension included.
    pub plan: Vec<PlaybackItem>,
    /// How long it may ring.
    pub ring_time: Duration,
    /// How long it may talk.
    pub talk_time: Duration,
}

/// What happens during a call, to be recorded. The snapshot is what it takes to end the leg from another process; there is
/// none where a peer's answer makes no sense.
#[derive(Debug)]
pub enum CallEvent {
    /// An INVITE has left. Nothing that follows from it is told before this.
    Dialling(Option<Box<DialogSnapshot>>),
    Ringing(Option<Box<DialogSnapshot>>),
    /// Somebody has answered, and is acknowledged as soon as this is recorded. It is sent at once, perhaps before the ringing that came
    /// just before it.
    Answered(Option<Box<DialogSnapshot>>, AnswerRecorded),
    /// The callee pressed a key.
    Key(char),
}

/// Dropped when an answer has been recorded.
#[derive(Debug)]
pub struct AnswerRecorded(
    #[expect(dead_code, reason = "dropping it is the message")] pub(crate) oneshot::Sender<()>,
);

/// Places calls, any number at once.
#[derive(Debug)]
pub struct Phone {
    media: MediaEngine,
}

impl Phone {
    pub fn start(supervisor: &Supervisor, media: &MediaConfig) -> Result<Self, PhoneError> {
        Ok(Self {
            media: MediaEngine::start(supervisor, media)?,
        })
    }

    /// For trunks whose calls share a pair of ports.
    pub fn media(&self) -> &MediaEngine {
        &self.media
    }

    /// Makes the call and comes back when it is over. Cancelling `hang_up` ends it early, whatever its state; so does dropping the future.
    pub async fn call(
        &self,
        trunk: &Trunk,
        request: &CallRequest,
        events: &Events,
        hang_up: &CancellationToken,
    ) -> (Ending, MediaStats) {
        let mut stats = MediaStats::default();
        let addresses = match trunk.addresses().await {
            Ok(addresses) => addresses,
            Err(error) => {
                tracing::warn!(trunk = trunk.config.name, %error, "the trunk has no address");
                return (transport_down(), stats);
            }
        };
        let mut ending = transport_down();
        for address in addresses {
            ending = self
                .call_at(trunk, address, request, events, hang_up, &mut stats)
                .await;
            match &ending {
                Ending::Failed(failure) if failure.may_fail_over() => trunk.expire_addresses(),
                _ => break,
            }
            if hang_up.is_cancelled() {
                break;
            }
        }
        (ending, stats)
    }

    /// Tries one address of the trunk, and whatever that redirects to.
    async fn call_at(
        &self,
        trunk: &Trunk,
        address: SocketAddr,
        request: &CallRequest,
        events: &Events,
        hang_up: &CancellationToken,
        stats: &mut MediaStats,
    ) -> Ending {
        let mut next = NextAttempt::default();
        for _ in 0..=REDIRECTS {
            let call = match self.dial(trunk, address, request, &next, events).await {
                Ok(call) => call,
                Err(error) => {
                    tracing::warn!(trunk = trunk.config.name, %error, "a call could not be placed");
                    return transport_down();
                }
            };
            let answered = call
                .wait_for_answer(request, trunk.config.progress_time, events, hang_up)
                .await;
            let unanswered = match answered {
                Ok(call) => return call.talk(request, hang_up, stats).await,
                Err(unanswered) => unanswered,
            };
            *stats = unanswered.stats;
            let again = match &unanswered.refusal {
                Some(refusal) if !hang_up.is_cancelled() => next.learn(refusal, trunk).await,
                _ => false,
            };
            if !again {
                return Ending::Failed(unanswered.failure);
            }
        }
        Ending::Failed(Failure {
            cause: Cause::Rejected,
            response: None,
            rang: false,
        })
    }

    async fn dial(
        &self,
        trunk: &Trunk,
        address: SocketAddr,
        request: &CallRequest,
        next: &NextAttempt,
        events: &Events,
    ) -> Result<DiallingCall, PhoneError> {
        let keys = events.clone();
        let on_inbound = move |event: InboundEvent<'_>| {
            if let InboundEvent::Key(key) = event {
                let _ = keys.send(CallEvent::Key(key));
            }
        };
        let options = trunk.config.media.clone();
        let media = self
            .media
            .open(options, on_inbound)
            .map_err(MediaError::from)?;
        let mut invite = trunk.invite(
            &request.number,
            &request.caller,
            &request.call_id,
            address,
            media.offer(),
        );
        next.apply(&mut invite);
        let sent_to = invite.destination;
        let order = Arc::new(EventOrder::new(events.clone()));
        let answers = Arc::clone(&order);
        let on_answer = Box::new(move |snapshot: Option<DialogSnapshot>| {
            let (recorded, done) = oneshot::channel();
            answers.answered(CallEvent::Answered(
                snapshot.map(Box::new),
                AnswerRecorded(recorded),
            ));
            done
        });
        let leg = trunk.signalling().invite(invite, on_answer).await?;
        let call = DiallingCall::new(leg, media, sent_to);
        order.dialling(CallEvent::Dialling(call.snapshot()));
        Ok(call)
    }
}

fn transport_down() -> Ending {
    Ending::Failed(Failure {
        cause: Cause::TransportDown,
        response: None,
        rang: false,
    })
}
