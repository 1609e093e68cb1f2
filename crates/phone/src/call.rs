//! Whole calls: over one trunk after the addresses of it, dial, wait for the answer, play, hang up. One future a call, and one typed value at
//! its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::ending::{Cause, Ending, Failure};
use crate::event_order::EventOrder;
use crate::line::Line;
pub use crate::media::engine::{MediaConfig, MediaOptions};
use crate::media::engine::{MediaEngine, MediaError};
use crate::media::inbound::InboundEvent;
pub use crate::media::stats::MediaStats;
use crate::media::stream::PlaybackItem;
use crate::signalling::{DialogSnapshot, Invite, SignallingError};
use crate::trunk::Trunk;

/// A 3xx may lead to another one; so many are followed.
const REDIRECTS: usize = 3;

#[derive(Debug, Error)]
pub enum PhoneError {
    #[error(transparent)]
    Signalling(#[from] SignallingError),
    #[error("the sound cannot start: {0}")]
    Media(#[from] MediaError),
}

/// What is needed to place a call.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The called number, in the form that the trunk wants.
    pub number: String,
    /// The calling number, likewise.
    pub caller: String,
    /// Chosen by whoever orders the call, so that it is known before the first packet leaves.
    pub call_id: String,
    /// Everything that is sent after the answer, lead-in and keys for an extension included.
    pub plan: Vec<PlaybackItem>,
    /// How long it may ring.
    pub ring_time: Duration,
    /// How long it may talk.
    pub talk_time: Duration,
}

/// What happens during a call, for whoever keeps its record. The facts are what it takes to end the leg from another process; there are none
/// where a peer's answer cannot be made sense of.
#[derive(Debug)]
pub enum CallEvent {
    /// An INVITE has left. Nothing that follows from it is told before this.
    Dialling(Option<Box<DialogSnapshot>>),
    Ringing(Option<Box<DialogSnapshot>>),
    /// Somebody has answered, and is acknowledged as soon as this is written down. It is told at once, perhaps before the ringing that came just
    /// before it.
    Answered(Option<Box<DialogSnapshot>>, AnswerRecorded),
    /// The callee pressed a key.
    Key(char),
}

/// Given back, or dropped, when an event has been written down.
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
    pub fn start(media: &MediaConfig) -> Result<Self, PhoneError> {
        Ok(Self {
            media: MediaEngine::start(media)?,
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
        order: &CallRequest,
        events: &mpsc::UnboundedSender<CallEvent>,
        hang_up: &CancellationToken,
    ) -> (Ending, MediaStats) {
        let mut facts = MediaStats::default();
        let addresses = match trunk.addresses().await {
            Ok(addresses) => addresses,
            Err(error) => {
                tracing::warn!(trunk = trunk.config.name, %error, "the trunk has no address");
                return (transport_down(), facts);
            }
        };
        let mut ending = transport_down();
        for address in addresses {
            ending = self
                .call_at(trunk, address, order, events, hang_up, &mut facts)
                .await;
            match &ending {
                Ending::Failed(failure) if failure.may_fail_over() => trunk.doubt_addresses(),
                _ => break,
            }
            if hang_up.is_cancelled() {
                break;
            }
        }
        (ending, facts)
    }

    /// Tries one address of the trunk, and whatever that redirects to.
    async fn call_at(
        &self,
        trunk: &Trunk,
        address: SocketAddr,
        order: &CallRequest,
        events: &mpsc::UnboundedSender<CallEvent>,
        hang_up: &CancellationToken,
        facts: &mut MediaStats,
    ) -> Ending {
        let mut detour = Detour::default();
        for _ in 0..=REDIRECTS {
            let mut line = match self.dial(trunk, address, order, &detour, events).await {
                Ok(line) => line,
                Err(error) => {
                    tracing::warn!(trunk = trunk.config.name, %error, "a call could not be placed");
                    return transport_down();
                }
            };
            match line
                .wait_for_answer(order, trunk.config.progress_time, events, hang_up)
                .await
            {
                Ok(description) => {
                    return line.talk(order, &description, hang_up, facts).await;
                }
                Err(failure) => {
                    // There may have been early media.
                    *facts = line.sound.facts();
                    let follow = !hang_up.is_cancelled() && detour.follow(&line, trunk).await;
                    if !follow {
                        return Ending::Failed(failure);
                    }
                }
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
        order: &CallRequest,
        detour: &Detour,
        events: &mpsc::UnboundedSender<CallEvent>,
    ) -> Result<Line, PhoneError> {
        let pressed = events.clone();
        let on_heard = move |heard: InboundEvent<'_>| {
            if let InboundEvent::Key(key) = heard {
                let _ = pressed.send(CallEvent::Key(key));
            }
        };
        let options = trunk.config.media.clone();
        let sound = self
            .media
            .open(options, on_heard)
            .map_err(MediaError::from)?;
        let mut invite = trunk.invite(
            &order.number,
            &order.caller,
            &order.call_id,
            address,
            sound.offer(),
        );
        detour.apply(&mut invite);
        let sent_to = invite.destination;
        let order = Arc::new(EventOrder::new(events.clone()));
        let told = Arc::clone(&order);
        let on_answer = Box::new(move |facts: Option<DialogSnapshot>| {
            let (written, done) = oneshot::channel();
            told.answered(CallEvent::Answered(
                facts.map(Box::new),
                AnswerRecorded(written),
            ));
            done
        });
        let leg = trunk.signalling().invite(invite, on_answer).await?;
        let line = Line::new(leg, sound, sent_to);
        order.dialling(CallEvent::Dialling(line.facts()));
        Ok(line)
    }
}

fn transport_down() -> Ending {
    Ending::Failed(Failure {
        cause: Cause::TransportDown,
        response: None,
        rang: false,
    })
}

/// What a refusal taught us about the next try.
#[derive(Debug, Default)]
struct Detour {
    redirected: Option<(String, SocketAddr)>,
    shortest_session: Option<u32>,
    /// A call that is tried anew is a new call to the peer.
    tries: u32,
}

impl Detour {
    /// True if there is another way that the trunk's configuration lets us go.
    async fn follow(&mut self, line: &Line, trunk: &Trunk) -> bool {
        self.tries += 1;
        if let Some(seconds) = line.leg.shortest_session() {
            let first_time = self.shortest_session.is_none();
            self.shortest_session = Some(seconds.min(86_400));
            return first_time && trunk.config.session_interval.is_some();
        }
        let Some(target) = line
            .leg
            .redirected_to()
            .filter(|_| trunk.config.follow_redirects)
        else {
            return false;
        };
        match trunk.locate(&target).await {
            Ok(address) => {
                self.redirected = Some((target, address));
                true
            }
            Err(error) => {
                tracing::warn!(trunk = trunk.config.name, %error, "a redirect leads nowhere");
                false
            }
        }
    }

    fn apply(&self, invite: &mut Invite) {
        if self.tries > 0 {
            invite.call_id = format!("{}-{}", self.tries, invite.call_id);
        }
        if let Some((target, address)) = &self.redirected {
            invite.to.clone_from(target);
            invite.destination = *address;
        }
        if let Some(seconds) = self.shortest_session {
            for (name, value) in &mut invite.headers {
                if name == "Session-Expires" {
                    *value = seconds.to_string();
                }
            }
            invite
                .headers
                .push(("Min-SE".to_owned(), seconds.to_string()));
        }
    }
}
