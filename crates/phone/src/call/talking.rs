//! An outgoing call that was answered: it plays, and stays until one side hangs up.

use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::CallRequest;
use super::keys::{KeySource, PressedKeys};
use super::session_refresh::SessionRefresh;
use crate::ending::{Cause, Ending, Failure, Side};
use crate::leg_record::{AnsweredLeg, LegRecord, OpenLeg};
use crate::media::session::{MediaSession, WatchEnd};
use crate::signalling::{Answer, EstablishedLeg, LegEvent, SessionChange};

/// After the last packet the call stays up for a moment, so that nothing is clipped by a peer that plays from a buffer.
const AFTER_THE_LAST_PACKET: Duration = Duration::from_millis(300);

/// A leg that we have hung up ends at once. Should it ever not, the call must end all the same.
const HANG_UP_LIMIT: Duration = Duration::from_secs(2);

pub(super) struct TalkingCall {
    leg: EstablishedLeg,
    answer: Answer,
    media: MediaSession,
    keys: PressedKeys,
    record: OpenLeg,
}

impl TalkingCall {
    pub fn new(
        leg: EstablishedLeg,
        answer: Answer,
        media: MediaSession,
        keys: PressedKeys,
        record: OpenLeg,
    ) -> Self {
        Self {
            leg,
            answer,
            media,
            keys,
            record,
        }
    }

    /// Plays and stays until one side hangs up.
    pub async fn talk(
        mut self,
        request: &CallRequest,
        hang_up: &CancellationToken,
    ) -> (Result<Ending, Failure>, LegRecord) {
        let answered_at = Instant::now();
        let started = self
            .media
            .answered(self.answer.description())
            .and_then(|()| self.media.play(&request.plan));
        let (ending, hung_up_by, ended_at) = match started {
            Ok(finished) => {
                let (side, ended_at) = self.until_hung_up(request, finished, hang_up).await;
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
        let refresher = self.leg.refresher(&self.answer);
        let mut refresh =
            SessionRefresh::new(self.answer.session_timer(), refresher, self.media.offer());
        // Once we have hung up, the peer's confirmation adds nothing to the time.
        let mut ours = None;
        loop {
            let event = tokio::select! {
                event = self.leg.next() => event,
                () = tokio::time::sleep(HANG_UP_LIMIT), if ours.is_some() => None,
                reason = async {
                    tokio::select! {
                        reason = &mut over => reason,
                        () = refresh.peer_gone() => "the session was not refreshed in time",
                        end = self.media.watch() => match end {
                            WatchEnd::Vanished => "the peer has vanished",
                            WatchEnd::HeldTooLong => "it was held for too long",
                        },
                    }
                }, if ours.is_none() => {
                    tracing::debug!(reason, "hanging up");
                    ours = Some(Instant::now());
                    self.media.stop();
                    self.leg.hang_up().await;
                    continue;
                }
            };
            match event {
                Some(LegEvent::Changed(change)) => {
                    refresh.refreshed_by_peer();
                    self.change(change).await;
                }
                Some(LegEvent::Key(key)) => self.keys.heard(key, KeySource::Info, Instant::now()),
                Some(LegEvent::Ended(side)) => return (side, ours.unwrap_or_else(Instant::now)),
                None => {
                    let side = ours.map_or(Side::Them, |_| Side::Us);
                    return (side, ours.unwrap_or_else(Instant::now));
                }
            }
        }
    }

    /// The peer holds, resumes, moves, or only shows that it is still there.
    async fn change(&mut self, SessionChange { offer, reply }: SessionChange) {
        if offer.is_empty() {
            // A re-INVITE without an offer wants ours (RFC 3261 section 14.2); the answer to it changes nothing for us.
            let ours = reply.wants_offer().then(|| self.media.offer());
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
