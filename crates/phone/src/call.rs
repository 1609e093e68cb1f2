//! A whole call: dial, wait for the answer, play, hang up. One future a call, and one typed value at its end.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::ending::{Cause, Ending, Failure, Side};
use crate::media::engine::{Engine, MediaError};
pub use crate::media::engine::{MediaConfig, Terms};
pub use crate::media::facts::Facts;
use crate::media::hearing::Heard;
use crate::media::session::Session;
use crate::media::stream::Step;
use crate::signalling::{
    Credentials, Invite, Leg, LegEvent, Reply, Signalling, SignallingConfig, SignallingError,
};

/// After the last packet the line stays up for a moment, so that nothing is clipped by a peer that plays from a buffer.
const AFTER_THE_LAST_PACKET: Duration = Duration::from_millis(300);

#[derive(Debug, Clone)]
pub struct PhoneConfig {
    pub sip: SignallingConfig,
    pub media: MediaConfig,
}

#[derive(Debug, Error)]
pub enum PhoneError {
    #[error(transparent)]
    Signalling(#[from] SignallingError),
    #[error("media cannot start: {0}")]
    Media(#[from] MediaError),
}

impl From<std::io::Error> for PhoneError {
    fn from(error: std::io::Error) -> Self {
        Self::Media(error.into())
    }
}

/// What is needed to place a call.
#[derive(Debug, Clone)]
pub struct Order {
    pub to: String,
    pub from: String,
    pub display_name: Option<String>,
    pub destination: Option<SocketAddr>,
    pub credentials: Option<Credentials>,
    pub headers: Vec<(String, String)>,
    /// What this call wants of its sound.
    pub media: Terms,
    /// Everything that is sent after the answer, lead-in and keys for an extension included.
    pub program: Vec<Step>,
    /// How long it may ring.
    pub ring_time: Duration,
    /// How long it may talk.
    pub talk_time: Duration,
}

/// What happens during a call, for whoever keeps its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallEvent {
    Ringing,
    Answered,
    /// The callee pressed a key.
    Key(char),
}

/// Places calls, any number at once.
#[derive(Debug)]
pub struct Phone {
    signalling: Signalling,
    media: Engine,
}

impl Phone {
    pub async fn start(config: &PhoneConfig) -> Result<Self, PhoneError> {
        Ok(Self {
            signalling: Signalling::start(&config.sip, None).await?,
            media: Engine::start(&config.media)?,
        })
    }

    /// For trunks whose calls share a pair of ports.
    pub fn media(&self) -> &Engine {
        &self.media
    }

    pub fn contact(&self) -> SocketAddr {
        self.signalling.contact()
    }

    /// Dialogs and transactions that are open now: for finding leaks.
    pub fn open(&self) -> (usize, usize) {
        self.signalling.open()
    }

    /// Makes the call and comes back when it is over. Cancelling `hang_up` ends it early, whatever its state; so does dropping the future.
    pub async fn call(
        &self,
        order: Order,
        events: &mpsc::UnboundedSender<CallEvent>,
        hang_up: &CancellationToken,
    ) -> (Ending, Facts) {
        let mut facts = Facts::default();
        let ending = match self.dial(&order, events) {
            Err(error) => {
                tracing::warn!(%error, "a call could not be placed");
                failed(Cause::TransportDown, false)
            }
            Ok(mut line) => match line.wait_for_answer(&order, events, hang_up).await {
                Err(failure) => {
                    // There may have been early media.
                    facts = line.sound.facts();
                    Ending::Failed(failure)
                }
                Ok(description) => {
                    line.talk(&order, &description, events, hang_up, &mut facts)
                        .await
                }
            },
        };
        (ending, facts)
    }

    fn dial(
        &self,
        order: &Order,
        events: &mpsc::UnboundedSender<CallEvent>,
    ) -> Result<Line, PhoneError> {
        let pressed = events.clone();
        let on_heard = move |heard: Heard<'_>| {
            if let Heard::Key(key) = heard {
                let _ = pressed.send(CallEvent::Key(key));
            }
        };
        let sound = self
            .media
            .open(order.media.clone(), on_heard)
            .map_err(MediaError::from)?;
        let leg = self.signalling.invite(Invite {
            to: order.to.clone(),
            from: order.from.clone(),
            display_name: order.display_name.clone(),
            destination: order.destination,
            credentials: order.credentials.clone(),
            headers: order.headers.clone(),
            offer: sound.offer(),
        })?;
        Ok(Line { leg, sound })
    }
}

fn failed(cause: Cause, rang: bool) -> Ending {
    Ending::Failed(Failure {
        cause,
        response: None,
        rang,
    })
}

/// One call that is under way.
struct Line {
    leg: Leg,
    sound: Session,
}

impl Line {
    /// The answer's session description, or why there is none.
    async fn wait_for_answer(
        &mut self,
        order: &Order,
        events: &mpsc::UnboundedSender<CallEvent>,
        hang_up: &CancellationToken,
    ) -> Result<Vec<u8>, Failure> {
        let too_long = tokio::time::sleep(order.ring_time);
        tokio::pin!(too_long);
        // Why we gave up, if we did: then the end that the leg tells is ours.
        let mut given_up = None;
        loop {
            let event = tokio::select! {
                event = self.leg.next() => event,
                () = &mut too_long, if given_up.is_none() => {
                    given_up = Some(Cause::NoAnswer);
                    self.leg.hang_up().await;
                    continue;
                }
                () = hang_up.cancelled(), if given_up.is_none() => {
                    given_up = Some(Cause::Cancelled);
                    self.leg.hang_up().await;
                    continue;
                }
            };
            match event {
                Some(LegEvent::Ringing { early_media, .. }) => {
                    if !early_media.is_empty()
                        && let Err(error) = self.sound.listen_early(&early_media)
                    {
                        tracing::debug!(%error, "early media makes no sense");
                    }
                    let _ = events.send(CallEvent::Ringing);
                }
                Some(LegEvent::Answered { description }) => return Ok(description),
                Some(LegEvent::Failed(failure)) => {
                    return Err(Failure {
                        cause: given_up.unwrap_or(failure.cause),
                        ..failure
                    });
                }
                // Early dialogs may be changed too (RFC 3311); we have nothing to change.
                Some(LegEvent::Changed { reply, .. }) => reply.refuse().await,
                Some(LegEvent::Ended(_)) | None => {
                    return Err(Failure {
                        cause: Cause::Cancelled,
                        response: None,
                        rang: false,
                    });
                }
            }
        }
    }

    /// Plays the program and stays until one side hangs up.
    async fn talk(
        &mut self,
        order: &Order,
        description: &[u8],
        events: &mpsc::UnboundedSender<CallEvent>,
        hang_up: &CancellationToken,
        facts: &mut Facts,
    ) -> Ending {
        let answered = Instant::now();
        let _ = events.send(CallEvent::Answered);
        let started = self
            .sound
            .answered(description)
            .and_then(|()| self.sound.play(&order.program));
        let finished = match started {
            Ok(finished) => finished,
            Err(error) => {
                tracing::warn!(%error, "an answer makes no sense, or its sound cannot be sent");
                self.leg.hang_up().await;
                return failed(Cause::BadMedia, true);
            }
        };
        let hung_up_by = self.until_hung_up(order, finished, hang_up).await;
        *facts = self.sound.facts();
        Ending::Talked {
            time: answered.elapsed(),
            hung_up_by,
        }
    }

    async fn until_hung_up(
        &mut self,
        order: &Order,
        finished: oneshot::Receiver<Instant>,
        hang_up: &CancellationToken,
    ) -> Side {
        let over = async {
            tokio::select! {
                last = finished => if last.is_ok() { tokio::time::sleep(AFTER_THE_LAST_PACKET).await },
                () = tokio::time::sleep(order.talk_time) => {}
                () = hang_up.cancelled() => {}
            }
        };
        tokio::pin!(over);
        let mut ours = false;
        loop {
            let event = tokio::select! {
                event = self.leg.next() => event,
                () = self.sound.watch(), if !ours => {
                    tracing::info!("the peer has vanished");
                    ours = true;
                    self.sound.stop();
                    self.leg.hang_up().await;
                    continue;
                }
                () = &mut over, if !ours => {
                    ours = true;
                    self.sound.stop();
                    self.leg.hang_up().await;
                    continue;
                }
            };
            match event {
                Some(LegEvent::Changed { offer, reply }) => self.change(&offer, reply).await,
                Some(LegEvent::Ended(side)) => return side,
                Some(_) => {}
                None => return if ours { Side::Us } else { Side::Them },
            }
        }
    }

    /// The peer holds, resumes, moves, or only shows that it is still there.
    async fn change(&mut self, offer: &[u8], reply: Reply) {
        if offer.is_empty() {
            return reply.accept(None).await;
        }
        match self.sound.answer(offer) {
            Ok(answer) => reply.accept(Some(answer)).await,
            Err(error) => {
                tracing::debug!(%error, "a change of the session is refused");
                reply.refuse().await;
            }
        }
    }
}
