//! One leg of a call with its sound: from the INVITE to the hang-up.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::call::{CallEvent, CallRequest, MediaStats};
use crate::ending::{Cause, Ending, Failure, Side};
use crate::media::session::MediaSession;
use crate::signalling::{
    DialogSnapshot, Leg, LegEvent, Refreshed, Refresher, SILENCE, SessionReply, SessionTimer,
};

/// After the last packet the line stays up for a moment, so that nothing is clipped by a peer that plays from a buffer.
const AFTER_THE_LAST_PACKET: Duration = Duration::from_millis(300);

/// A leg that we have hung up tells so at once. Should it ever not, the call must end all the same.
const LAST_WORD: Duration = Duration::from_secs(2);

type Events = mpsc::UnboundedSender<CallEvent>;

pub struct Line {
    pub leg: Leg,
    pub sound: MediaSession,
    sent_to: SocketAddr,
}

impl Line {
    pub fn new(leg: Leg, sound: MediaSession, sent_to: SocketAddr) -> Self {
        Self {
            leg,
            sound,
            sent_to,
        }
    }

    /// What it takes to end the leg from another process.
    pub fn facts(&self) -> Option<Box<DialogSnapshot>> {
        self.leg.facts(self.sent_to).map(Box::new)
    }

    /// The answer's session description, or why there is none.
    pub async fn wait_for_answer(
        &mut self,
        order: &CallRequest,
        progress_time: Option<Duration>,
        events: &Events,
        hang_up: &CancellationToken,
    ) -> Result<Vec<u8>, Failure> {
        let too_long = tokio::time::sleep(order.ring_time);
        let no_progress = tokio::time::sleep(progress_time.unwrap_or(order.ring_time));
        // Once we have given up, a peer that is gone does not answer the CANCEL either.
        let last_word = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(too_long, no_progress, last_word);
        let mut rang = false;
        // Why we gave up, if we did: then the end that the leg tells is ours.
        let mut given_up = None;
        loop {
            let (event, cause) = tokio::select! {
                event = self.leg.next() => (event, None),
                () = &mut too_long, if given_up.is_none() => (None, Some(Cause::NoAnswer)),
                () = &mut no_progress, if given_up.is_none() && !rang && progress_time.is_some() => (None, Some(Cause::TimedOut)),
                () = hang_up.cancelled(), if given_up.is_none() => (None, Some(Cause::Cancelled)),
                // Dropping the leg still ends whatever comes of it.
                () = &mut last_word, if given_up.is_some() => (None, None),
            };
            if let Some(cause) = cause {
                given_up = Some(cause);
                self.leg.hang_up().await;
                last_word
                    .as_mut()
                    .reset(tokio::time::Instant::now() + SILENCE);
                continue;
            }
            match event {
                Some(LegEvent::Ringing { early_media, .. }) => {
                    if !early_media.is_empty()
                        && let Err(error) = self.sound.listen_early(&early_media)
                    {
                        tracing::debug!(%error, "early media makes no sense");
                    }
                    // Many a switch rings in every few seconds anew; once is enough for the record.
                    if !std::mem::replace(&mut rang, true) {
                        let _ = events.send(CallEvent::Ringing(self.facts()));
                    }
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
                        cause: given_up.unwrap_or(Cause::Cancelled),
                        response: None,
                        rang,
                    });
                }
            }
        }
    }

    /// Plays the program and stays until one side hangs up.
    pub async fn talk(
        &mut self,
        order: &CallRequest,
        description: &[u8],
        hang_up: &CancellationToken,
        facts: &mut MediaStats,
    ) -> Ending {
        let answered = Instant::now();
        let started = self
            .sound
            .answered(description)
            .and_then(|()| self.sound.play(&order.plan));
        let finished = match started {
            Ok(finished) => finished,
            Err(error) => {
                tracing::warn!(%error, "an answer makes no sense, or its sound cannot be sent");
                return self.bad_media().await;
            }
        };
        let (hung_up_by, ended) = self.until_hung_up(order, finished, hang_up).await;
        *facts = self.sound.facts();
        Ending::Talked {
            time: ended - answered,
            hung_up_by,
        }
    }

    async fn bad_media(&mut self) -> Ending {
        self.leg.hang_up().await;
        Ending::Failed(Failure {
            cause: Cause::BadMedia,
            response: None,
            rang: true,
        })
    }

    /// Who hung up, and when.
    async fn until_hung_up(
        &mut self,
        order: &CallRequest,
        finished: oneshot::Receiver<Instant>,
        hang_up: &CancellationToken,
    ) -> (Side, Instant) {
        let over = async {
            tokio::select! {
                last = finished => if last.is_ok() { tokio::time::sleep(AFTER_THE_LAST_PACKET).await },
                () = tokio::time::sleep(order.talk_time) => {}
                () = hang_up.cancelled() => {}
            }
        };
        tokio::pin!(over);
        let mut session = Session::new(&self.leg, self.sound.offer());
        // Once we have hung up, the peer's confirmation adds nothing to the time.
        let mut ours = None;
        loop {
            let event = tokio::select! {
                event = self.leg.next() => event,
                () = tokio::time::sleep(LAST_WORD), if ours.is_some() => None,
                why = async {
                    tokio::select! {
                        () = &mut over => "it is over",
                        () = session.gone() => "the session was not refreshed in time",
                        () = self.sound.watch() => "the peer has vanished",
                    }
                }, if ours.is_none() => {
                    tracing::debug!(why, "hanging up");
                    ours = Some(Instant::now());
                    self.sound.stop();
                    self.leg.hang_up().await;
                    continue;
                }
            };
            match event {
                Some(LegEvent::Changed { offer, reply }) => {
                    session.refreshed_by_peer();
                    self.change(&offer, reply).await;
                }
                Some(LegEvent::Ended(side)) => return (side, ours.unwrap_or_else(Instant::now)),
                Some(_) => {}
                None => {
                    let side = ours.map_or(Side::Them, |_| Side::Us);
                    return (side, ours.unwrap_or_else(Instant::now));
                }
            }
        }
    }

    /// The peer holds, resumes, moves, or only shows that it is still there.
    async fn change(&mut self, offer: &[u8], reply: SessionReply) {
        if offer.is_empty() {
            // A re-INVITE without an offer wants ours (RFC 3261 section 14.2); the answer to it changes nothing for us.
            let ours = reply.wants_offer().then(|| self.sound.offer());
            return reply.accept(ours).await;
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

/// Keeps the session refreshed where that was agreed on (RFC 4028).
struct Session {
    timer: Option<SessionTimer>,
    refresher: Refresher,
    /// What we agreed on, for a refresh that has to say it again.
    description: String,
    since: tokio::time::Instant,
    refreshing: Option<std::pin::Pin<Box<dyn Future<Output = Refreshed> + Send>>>,
}

impl Session {
    fn new(leg: &Leg, description: String) -> Self {
        Self {
            timer: leg.session_timer(),
            refresher: leg.refresher(),
            description,
            since: tokio::time::Instant::now(),
            refreshing: None,
        }
    }

    fn refreshed_by_peer(&mut self) {
        self.since = tokio::time::Instant::now();
    }

    /// Refreshes when it is due; comes back when the peer is gone. May be dropped and asked again at any time.
    async fn gone(&mut self) {
        let Some(timer) = self.timer else {
            return std::future::pending().await;
        };
        loop {
            if let Some(refreshing) = &mut self.refreshing {
                let refreshed = refreshing.await;
                self.refreshing = None;
                self.since = tokio::time::Instant::now();
                if refreshed == Refreshed::Gone {
                    return;
                }
            }
            tokio::time::sleep_until(self.since + timer.due()).await;
            if !timer.ours {
                return;
            }
            let (refresher, description) = (self.refresher.clone(), self.description.clone());
            self.refreshing = Some(Box::pin(async move {
                refresher.refresh(timer, description).await
            }));
        }
    }
}
