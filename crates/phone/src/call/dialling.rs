//! An outgoing call while it is being placed: a leg without an answer, and the media session that it offers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::keys::PressedKeys;
use super::talking::TalkingCall;
use super::{CallEvent, CallRequest, Events};
use crate::ending::{Cause, Failure};
use crate::leg_record::{HeardLine, LegRecord, OpenLeg, WhyHungUp};
use crate::media::ears::LineTone;
use crate::media::inbound_handle::InboundHandle;
use crate::media::session::MediaSession;
use crate::signalling::{
    Answer, DialEvent, DialogSnapshot, FailedInvite, OutgoingLeg, SILENCE, SessionChange,
};

pub(super) struct DiallingCall {
    leg: OutgoingLeg,
    media: MediaSession,
    keys: PressedKeys,
    /// Told when the ears know more.
    heard: Arc<Notify>,
    record: OpenLeg,
    /// Who has changed the session before the answer, and so has agreed on it with us.
    changed_by: Option<String>,
    /// What those that ring have described, by their tags.
    described: Vec<(Option<String>, Vec<u8>)>,
    /// A change that has come before the description that it changes: the library tells of a reliable 183 only when the peer has confirmed
    /// our PRACK, and the change may follow at once.
    early_change: Option<(SessionChange, Instant)>,
}

/// Shorter than a peer waits before it repeats a request.
const DESCRIPTION_LIMIT: Duration = Duration::from_millis(400);

/// More telephones than one INVITE calls.
const MAX_DESCRIBED: usize = 10;

/// A call that nobody answered.
pub(super) struct Unanswered {
    pub failure: Failure,
    /// `None` if we gave the call up ourselves.
    pub refusal: Option<FailedInvite>,
    /// `None` if its INVITE has not left.
    pub leg: Option<LegRecord>,
}

impl DiallingCall {
    pub fn new(
        leg: OutgoingLeg,
        media: MediaSession,
        keys: PressedKeys,
        heard: Arc<Notify>,
        record: OpenLeg,
    ) -> Self {
        Self {
            leg,
            media,
            keys,
            heard,
            record,
            changed_by: None,
            described: Vec::new(),
            early_change: None,
        }
    }

    /// What it takes to end the leg from another process.
    fn snapshot(&self) -> Option<Box<DialogSnapshot>> {
        self.leg.snapshot(self.record.address()).map(Box::new)
    }

    /// Waits for the answer, and gives the call up where that takes too long or is asked for.
    pub async fn wait_for_answer(
        mut self: Box<Self>,
        request: &CallRequest,
        progress_time: Option<Duration>,
        events: &Events,
        hang_up: &CancellationToken,
    ) -> Result<Box<TalkingCall>, Unanswered> {
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
                cause = refused_by_tone(self.media.inbound(), &self.heard) => break cause,
                () = until(self.early_change.as_ref()) => {
                    self.refuse_early_change().await;
                    continue;
                }
            };
            match event {
                DialEvent::Ringing {
                    early_media,
                    peer_tag,
                    ..
                } => {
                    self.receive_early(early_media, peer_tag).await;
                    if self.record.rings() {
                        rang = true;
                        let _ = events.send(CallEvent::Ringing(self.snapshot()));
                    }
                }
                DialEvent::Changed(change) => self.change(change).await,
                DialEvent::Answered(answer) => return Ok(Box::new(self.answered(answer))),
                DialEvent::Failed(refusal) => {
                    return Err(Unanswered {
                        leg: Some(failed(&self.record, &self.media, &refusal.failure, None)),
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
        Err(Box::pin(self.give_up(cause)).await)
    }

    /// The peer wants its early media somewhere else (RFC 3311), as networks do that play the sound of ringing themselves.
    async fn change(&mut self, change: SessionChange) {
        if change.offer.is_empty() {
            return change.reply.accept(None).await;
        }
        if !self.media.is_described() {
            self.refuse_early_change().await;
            self.early_change = Some((change, Instant::now() + DESCRIPTION_LIMIT));
            return;
        }
        match self.media.answer_early(&change.offer) {
            Ok(answer) => {
                self.changed_by = change.peer_tag;
                change.reply.accept(Some(answer)).await;
            }
            Err(error) => {
                tracing::debug!(%error, "a change of the early session is refused");
                change.reply.refuse().await;
            }
        }
    }

    /// Our own offer waits for its answer (RFC 3311 section 5.2).
    async fn refuse_early_change(&mut self) {
        if let Some((change, _)) = self.early_change.take() {
            change.reply.refuse_for_now().await;
        }
    }

    /// After a change the description of the answer says what was said before it, and does not count (RFC 6337 section 3.1.1). An answer
    /// without one means what the same peer has described while it rang.
    fn answered(self, answer: Answer) -> TalkingCall {
        let leg = self.leg.established(&answer);
        let tag = answer.peer_tag();
        let is_agreed = self.changed_by.is_some() && self.changed_by == tag;
        let described = self.described.into_iter().find(|(by, _)| *by == tag);
        let description = match answer.description() {
            _ if is_agreed => Vec::new(),
            [] => described
                .map(|(_, description)| description)
                .unwrap_or_default(),
            description => description.to_vec(),
        };
        TalkingCall {
            leg,
            description,
            answer,
            media: self.media,
            keys: self.keys,
            heard: self.heard,
            check: None,
            record: self.record,
            offered: None,
            early_change: self.early_change.map(|(change, _)| change),
        }
    }

    async fn receive_early(&mut self, description: Vec<u8>, peer_tag: Option<String>) {
        if description.is_empty() {
            return;
        }
        // What was changed is not described anew by a repeated 18x, and what others play is not listened to then.
        if self.changed_by.is_none()
            && let Err(error) = self.media.listen_early(&description)
        {
            tracing::debug!(%error, "early media makes no sense");
            return;
        }
        self.described.retain(|(by, _)| *by != peer_tag);
        if self.described.len() < MAX_DESCRIBED {
            self.described.push((peer_tag, description));
        }
        if let Some((change, _)) = self.early_change.take() {
            self.change(change).await;
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
        let why = Some(match cause {
            Cause::NoAnswer => WhyHungUp::NoAnswer,
            Cause::TimedOut => WhyHungUp::NoProgress,
            Cause::Cancelled => WhyHungUp::Asked,
            _ => WhyHungUp::Tone,
        });
        Unanswered {
            leg: Some(failed(&self.record, &self.media, &failure, why)),
            failure,
            refusal: None,
        }
    }
}

/// The record of a leg that nobody answered. There may have been early media.
fn failed(
    record: &OpenLeg,
    media: &MediaSession,
    failure: &Failure,
    why_hung_up: Option<WhyHungUp>,
) -> LegRecord {
    LegRecord {
        heard: heard_early(media, failure),
        ..record.failed(failure, why_hung_up, media.stats())
    }
}

/// What the network has said before it refused. A voice that we did not wait for may be what somebody lets callers hear while it rings.
fn heard_early(media: &MediaSession, failure: &Failure) -> Option<HeardLine> {
    let report = media.inbound().ear_report()?;
    let is_announcement = report.is_announcement() && !failure.given_up;
    let announcement = is_announcement.then_some(LineTone::Announcement);
    Some(HeardLine {
        answered_by: None,
        tone: Some(report.tone.or(announcement)?),
        after: report.after,
    })
}

/// Waits for a tone by which the network says that nobody will answer: it may go on for as long as we listen.
async fn refused_by_tone(inbound: &InboundHandle, heard: &Notify) -> Cause {
    loop {
        match inbound.ear_report().and_then(|report| report.tone) {
            Some(LineTone::Busy) => return Cause::Busy,
            Some(LineTone::Congestion) => return Cause::Unavailable,
            _ => heard.notified().await,
        }
    }
}

async fn until(early_change: Option<&(SessionChange, Instant)>) {
    match early_change {
        Some((_, limit)) => tokio::time::sleep_until(*limit).await,
        None => std::future::pending().await,
    }
}
