//! An outgoing call that was answered: it plays, and stays until one side hangs up.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::CallRequest;
use super::far_end::FarEnd;
use super::keys::{KeySource, PressedKeys};
use super::session_refresh::SessionRefresh;
use crate::ending::{Cause, Ending, Failure, Side};
use crate::leg_record::{AnsweredLeg, LegRecord, OpenLeg};
use crate::media::session::{MediaSession, WatchEnd};
use crate::signalling::{Answer, EstablishedLeg, LegEvent, SessionChange, Signalling};

/// After the last packet the call stays up for a moment, so that nothing is clipped by a peer that plays from a buffer.
const AFTER_THE_LAST_PACKET: Duration = Duration::from_millis(300);

/// A leg that we have hung up ends at once. Should it ever not, the call must end all the same.
const HANG_UP_LIMIT: Duration = Duration::from_secs(2);

pub(super) struct TalkingCall {
    pub leg: EstablishedLeg,
    pub answer: Answer,
    /// What the peer says about its side; empty where that was said before.
    pub description: Vec<u8>,
    pub media: MediaSession,
    pub keys: PressedKeys,
    pub record: OpenLeg,
    /// The number of the INVITE that has asked us for an offer: its ACK brings the answer.
    pub offered: Option<u32>,
    /// A change that came with the answer.
    pub early_change: Option<SessionChange>,
}

/// What happens in a call.
enum Happening {
    Leg(Option<LegEvent>),
    /// There is a reason to hang up.
    Over(&'static str),
    Quiet,
    Gone,
    /// We have hung up, and the leg does not end.
    Stuck,
}

impl TalkingCall {
    /// Plays and stays until one side hangs up.
    pub async fn talk(
        mut self,
        request: &CallRequest,
        signalling: &Signalling,
        hang_up: &CancellationToken,
    ) -> (Result<Ending, Failure>, LegRecord) {
        let answered_at = Instant::now();
        let started = self
            .media
            .answered(&self.description)
            .and_then(|()| self.media.play(&request.plan));
        let (ending, hung_up_by, ended_at) = match started {
            Ok(finished) => {
                let (side, ended_at) = self
                    .until_hung_up(request, signalling, answered_at, finished, hang_up)
                    .await;
                let ending = Ending::Talked {
                    time: ended_at - answered_at,
                    hung_up_by: side,
                };
                (Ok(ending), side, ended_at)
            }
            Err(error) => {
                tracing::warn!(%error, "an answer makes no sense, or its sound cannot be sent");
                let ended_at = Instant::now();
                self.leg.hang_up().await;
                (
                    Err(Failure::after_answer(Cause::BadMedia)),
                    Side::Us,
                    ended_at,
                )
            }
        };
        let leg = AnsweredLeg {
            code: self.answer.code(),
            answered_at,
            ended_at,
            hung_up_by,
            keys: self.keys.kept(),
        };
        (ending, self.record.answered(&leg, self.media.stats()))
    }

    /// Who hung up, and when.
    async fn until_hung_up(
        &mut self,
        request: &CallRequest,
        signalling: &Signalling,
        answered_at: Instant,
        finished: oneshot::Receiver<Instant>,
        hang_up: &CancellationToken,
    ) -> (Side, Instant) {
        let over = async {
            tokio::select! {
                reason = played(finished) => reason,
                () = tokio::time::sleep(request.talk_time) => "it has talked for as long as it may",
                () = hang_up.cancelled() => "it was asked to",
            }
        };
        tokio::pin!(over);
        let mut refresh = SessionRefresh::new(
            self.answer.session_timer(),
            self.leg.refresher(&self.answer),
            self.media.said(),
        );
        if let Some(change) = self.early_change.take() {
            self.change(change).await;
        }
        let check = signalling.presence_check(&self.leg, self.record.address());
        let mut far_end = FarEnd::new(check, self.media.inbound().clone(), answered_at);
        // Once we have hung up, the peer's confirmation adds nothing to the time.
        let mut ours = None;
        loop {
            let up = ours.is_none();
            let happening = tokio::select! {
                event = self.leg.next() => Happening::Leg(event),
                reason = &mut over, if up => Happening::Over(reason),
                () = refresh.peer_gone(), if up => Happening::Gone,
                () = far_end.gone(), if up => Happening::Gone,
                end = self.media.watch(), if up => match end {
                    WatchEnd::Quiet => Happening::Quiet,
                    WatchEnd::HeldTooLong => Happening::Over("it was held for too long"),
                },
                () = tokio::time::sleep(HANG_UP_LIMIT), if !up => Happening::Stuck,
            };
            match happening {
                Happening::Leg(Some(LegEvent::Ended(side))) => {
                    return (side, ours.unwrap_or_else(Instant::now));
                }
                Happening::Leg(Some(event)) => {
                    far_end.seen();
                    self.follow(event, &mut refresh).await;
                }
                Happening::Leg(None) | Happening::Stuck => {
                    let side = ours.map_or(Side::Them, |_| Side::Us);
                    return (side, ours.unwrap_or_else(Instant::now));
                }
                Happening::Quiet => far_end.ask(),
                Happening::Over(reason) => {
                    tracing::debug!(reason, "hanging up");
                    let now = Instant::now();
                    self.media.stop();
                    let bye = self.leg.hang_up().await;
                    let gone = far_end.there_until(now, bye);
                    if gone.is_some() {
                        self.media.set_vanished();
                    }
                    ours = Some(gone.unwrap_or(now));
                }
                Happening::Gone => {
                    tracing::debug!("the far end is gone: hanging up");
                    self.media.stop();
                    self.media.set_vanished();
                    self.leg.hang_up().await;
                    ours = Some(far_end.last_sign().max(refresh.last()));
                }
            }
        }
    }

    async fn follow(&mut self, event: LegEvent, refresh: &mut SessionRefresh) {
        match event {
            LegEvent::Changed(change) if refresh.offers() && change.is_about_the_session() => {
                change.reply.refuse_for_now().await;
            }
            LegEvent::Changed(change) => {
                self.change(change).await;
                refresh.refreshed_by_peer(self.media.said());
            }
            LegEvent::Acknowledged { number, answer } if self.offered == Some(number) => {
                self.offered = None;
                if let Err(error) = self.media.answered(&answer) {
                    tracing::debug!(%error, "the answer to our offer makes no sense, and changes nothing");
                }
            }
            LegEvent::Key(key) => self.keys.heard(key, KeySource::Info, Instant::now()),
            LegEvent::Acknowledged { .. } | LegEvent::Ended(_) => {}
        }
    }

    /// The peer holds, resumes, moves, or only shows that it is still there.
    async fn change(&mut self, change: SessionChange) {
        let SessionChange { offer, reply, .. } = change;
        if offer.is_empty() {
            self.offered = reply.wants_offer();
            let ours = self.offered.map(|_| self.media.offer());
            return reply.accept(ours).await;
        }
        match self.media.answer(&offer) {
            Ok(answer) => reply.accept(Some(answer)).await,
            Err(error) => {
                tracing::debug!(%error, "a change of the session is refused");
                reply.refuse().await;
            }
        }
    }
}

/// Waits for the end of the playback, and says how it ended.
async fn played(finished: oneshot::Receiver<Instant>) -> &'static str {
    match finished.await {
        Ok(_) => {
            tokio::time::sleep(AFTER_THE_LAST_PACKET).await;
            "everything was played"
        }
        // The pacer has said why.
        Err(_) => "the playback failed",
    }
}
