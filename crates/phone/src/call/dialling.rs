//! An outgoing call while it is being placed: a leg without an answer, and the media session that it offers.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::keys::PressedKeys;
use super::talking::TalkingCall;
use super::{CallEvent, CallRequest, Events};
use crate::ending::{Cause, Failure, Side};
use crate::leg_record::{LegRecord, OpenLeg};
use crate::media::session::MediaSession;
use crate::signalling::{DialEvent, DialogSnapshot, FailedInvite, OutgoingLeg, SILENCE};

pub(super) struct DiallingCall {
    leg: OutgoingLeg,
    media: MediaSession,
    keys: PressedKeys,
    record: OpenLeg,
}

/// A call that nobody answered.
pub(super) struct Unanswered {
    pub failure: Failure,
    /// `None` if we gave the call up ourselves.
    pub refusal: Option<FailedInvite>,
    /// `None` if its INVITE has not left.
    pub leg: Option<LegRecord>,
}

impl DiallingCall {
    pub fn new(leg: OutgoingLeg, media: MediaSession, keys: PressedKeys, record: OpenLeg) -> Self {
        Self {
            leg,
            media,
            keys,
            record,
        }
    }

    /// What it takes to end the leg from another process.
    fn snapshot(&self) -> Option<Box<DialogSnapshot>> {
        self.leg.snapshot(self.record.address()).map(Box::new)
    }

    /// Waits for the answer, and gives the call up where that takes too long or is asked for.
    pub async fn wait_for_answer(
        mut self,
        request: &CallRequest,
        progress_time: Option<Duration>,
        events: &Events,
        hang_up: &CancellationToken,
    ) -> Result<TalkingCall, Unanswered> {
        let too_long = tokio::time::sleep(request.ring_time);
        let no_progress = tokio::time::sleep(progress_time.unwrap_or(request.ring_time));
        tokio::pin!(too_long, no_progress);
        let mut rang = false;
        let cause = loop {
            let event = tokio::select! {
                event = self.leg.next() => event,
                () = &mut too_long => break Cause::NoAnswer,
                () = &mut no_progress, if !rang && progress_time.is_some() => break Cause::TimedOut,
                () = hang_up.cancelled() => break Cause::Cancelled,
            };
            match event {
                DialEvent::Ringing { early_media, .. } => {
                    self.receive_early(&early_media);
                    if self.record.rings() {
                        rang = true;
                        let _ = events.send(CallEvent::Ringing(self.snapshot()));
                    }
                }
                // Early dialogs may be changed too (RFC 3311); we have nothing to change.
                DialEvent::Changed(change) => change.reply.refuse().await,
                DialEvent::Answered(answer) => {
                    let leg = self.leg.established(&answer);
                    return Ok(TalkingCall::new(
                        leg,
                        answer,
                        self.media,
                        self.keys,
                        self.record,
                    ));
                }
                DialEvent::Failed(refusal) => {
                    // There may have been early media.
                    let media = self.media.stats();
                    return Err(Unanswered {
                        leg: Some(self.record.failed(&refusal.failure, None, media)),
                        failure: refusal.failure.clone(),
                        refusal: Some(refusal),
                    });
                }
                DialEvent::Withheld => {
                    return Err(Unanswered {
                        failure: Failure::plain(Cause::Withheld),
                        refusal: None,
                        leg: None,
                    });
                }
            }
        };
        Err(self.give_up(cause).await)
    }

    fn receive_early(&mut self, description: &[u8]) {
        if !description.is_empty()
            && let Err(error) = self.media.listen_early(description)
        {
            tracing::debug!(%error, "early media makes no sense");
        }
    }

    /// A peer that is gone does not answer the CANCEL either, so that this waits no longer than for silence. Dropping the leg still ends
    /// whatever comes of it.
    async fn give_up(self, cause: Cause) -> Unanswered {
        let mut leg = self.leg.cancel().await;
        let failure = match tokio::time::timeout(SILENCE, leg.ended()).await {
            Ok(failure) => failure,
            Err(_) => leg.unanswered(),
        };
        let failure = Failure {
            cause,
            given_up: true,
            ..failure
        };
        let media = self.media.stats();
        Unanswered {
            leg: Some(self.record.failed(&failure, Some(Side::Us), media)),
            failure,
            refusal: None,
        }
    }
}
