//! Whole calls over one trunk: try its addresses, dial, wait for the answer, play, hang up. A call is one future, with one typed value at
//! its end.

mod answer_check;
mod dialling;
mod far_end;
mod key_menu;
mod keys;
mod next_invite;
mod placing;
mod request_playback;
mod session_refresh;
mod talking;

use std::sync::Arc;
use std::time::Duration;

use supervisor::Supervisor;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub use self::answer_check::{LONGEST_CHECK, LONGEST_GREETING, MachineAction};
pub use self::key_menu::{ChoiceRecorded, KeyChoice, KeyMenu, MAX_REPLAYS};
use crate::ending::Ending;
use crate::leg_record::LegRecord;
pub use crate::media::engine::{MediaConfig, MediaOptions};
use crate::media::engine::{MediaEngine, MediaError};
pub use crate::media::stats::MediaStats;
use crate::media::stream::PlaybackItem;
use crate::signalling::{DialogSnapshot, Leave, SignallingError};
use crate::trunk::{RedirectGuard, Trunk};
use placing::Placing;

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
    /// What is sent after the answer before the message: lead-in, and keys for an extension.
    pub opening: Vec<PlaybackItem>,
    /// The message.
    pub plan: Vec<PlaybackItem>,
    /// What is asked of the callee, if anything. Keys count from the first sample of the message on.
    pub menu: Option<KeyMenu>,
    /// Listen to the line, to know who answers or what the network says; and what is done about a machine.
    pub machine: Option<MachineAction>,
    /// Asked about each number that the trunk leads it to, where there is something to ask.
    pub redirect_guard: Option<Arc<dyn RedirectGuard>>,
    /// How long it may ring.
    pub ring_time: Duration,
    /// How long it may talk.
    pub talk_time: Duration,
}

/// What happens during a call, to be recorded. The snapshot is what it takes to end the leg from another process; there is
/// none where a peer's answer makes no sense.
#[derive(Debug)]
pub enum CallEvent {
    /// An INVITE is ready: with leave it is sent, otherwise it is not. This comes for every leg.
    Ready(Box<DialogSnapshot>, LeaveRequest),
    Ringing(Option<Box<DialogSnapshot>>),
    /// Somebody has answered, and is acknowledged as soon as this is recorded. It is sent at once, perhaps before the ringing that came
    /// just before it.
    Answered(Option<Box<DialogSnapshot>>, AnswerRecorded),
    /// The callee pressed a key.
    Key(char),
    /// The callee has answered what was asked. It is confirmed to them as soon as this is recorded.
    Chosen(KeyChoice, ChoiceRecorded),
}

/// An INVITE waits for its leave. Dropping this refuses it.
#[derive(Debug)]
pub struct LeaveRequest(oneshot::Sender<Leave>);

impl LeaveRequest {
    /// Whoever makes a leg ready waits at the other end.
    pub fn new() -> (Self, oneshot::Receiver<Leave>) {
        let (granted, leave) = oneshot::channel();
        (Self(granted), leave)
    }

    /// The INVITE is sent, if the leave holds in that very moment.
    pub fn grant(self, leave: Leave) {
        // Nobody waits any more if the call was given up meanwhile.
        let _ = self.0.send(leave);
    }
}

/// Done, or dropped, when an answer has been recorded.
#[derive(Debug)]
pub struct AnswerRecorded(Option<oneshot::Sender<()>>);

impl AnswerRecorded {
    /// Whoever holds the answer waits at the other end.
    pub fn new() -> (Self, oneshot::Receiver<()>) {
        let (recorded, done) = oneshot::channel();
        (Self(Some(recorded)), done)
    }

    pub fn done(&mut self) {
        // Dropping it is the message.
        self.0 = None;
    }

    pub fn is_done(&self) -> bool {
        self.0.is_none()
    }
}

/// A call that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedCall {
    pub ending: Ending,
    /// Every INVITE that was sent, in order.
    pub legs: Vec<LegRecord>,
}

impl PlacedCall {
    /// The figures of the last leg: the only one that can have been answered.
    pub fn media(&self) -> MediaStats {
        let last = self.legs.last();
        last.map(|leg| leg.media.clone()).unwrap_or_default()
    }
}

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
    ) -> PlacedCall {
        let mut placing = Placing {
            media: &self.media,
            trunk,
            request,
            events,
            hang_up,
            legs: Vec::new(),
        };
        let ending = placing.run().await;
        PlacedCall {
            ending,
            legs: placing.legs,
        }
    }
}
