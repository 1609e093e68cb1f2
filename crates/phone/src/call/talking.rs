//! An outgoing call that was answered: it plays, and stays until one side hangs up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::CallRequest;
use super::answer_check::{AnswerCheck, CheckStep};
use super::far_end::FarEnd;
use super::key_menu::{
    AFTER_THE_LAST_PACKET, ChoiceRecorded, KeyChoice, KeyMenu, MenuState, MenuStep,
};
use super::keys::{KeySource, PressedKeys};
use super::session_refresh::SessionRefresh;
use crate::ending::{Cause, Ending, Failure, Side};
use crate::leg_record::{AnsweredLeg, LegRecord, OpenLeg, WhyHungUp};
use crate::media::ears::Answerer;
use crate::media::session::{MediaSession, WatchEnd};
use crate::media::stream::PlaybackItem;
use crate::signalling::{Answer, EstablishedLeg, LegEvent, SessionChange, Signalling};

/// A leg that we have hung up ends at once. Should it ever not, the call must end all the same.
const HANG_UP_LIMIT: Duration = Duration::from_secs(2);

pub(super) struct TalkingCall {
    pub leg: EstablishedLeg,
    pub answer: Answer,
    /// What the peer says about its side; empty where that was said before.
    pub description: Vec<u8>,
    pub media: MediaSession,
    pub keys: PressedKeys,
    /// Told when the ears know more.
    pub heard: Arc<Notify>,
    /// Who has answered, where somebody wants to know.
    pub check: Option<AnswerCheck>,
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
    Over(WhyHungUp),
    Pressed(char),
    /// What the callee has confirmed is recorded; `false` for any other choice, and where it could not be.
    Recorded(bool),
    /// It is known who has answered: the message can be played.
    Known(Answerer),
    Quiet,
    /// Where our sound goes nobody listens any more.
    PortClosed,
    Gone,
    /// We have hung up, and the leg does not end.
    Stuck,
}

/// How a talk has ended: why we have hung up, or else the other side has.
#[derive(Clone, Copy)]
struct TalkEnd {
    why: Option<WhyHungUp>,
    at: Instant,
}

impl TalkEnd {
    fn ours(why: WhyHungUp, at: Instant) -> Self {
        Self { why: Some(why), at }
    }

    fn theirs() -> Self {
        let at = Instant::now();
        Self { why: None, at }
    }

    fn by(self) -> Side {
        self.why.map_or(Side::Them, |_| Side::Us)
    }
}

impl TalkingCall {
    /// Plays and stays until one side hangs up.
    pub async fn talk(
        mut self: Box<Self>,
        request: &CallRequest,
        signalling: &Signalling,
        hang_up: &CancellationToken,
    ) -> (Result<Ending, Failure>, LegRecord) {
        let answered_at = Instant::now();
        let started = self
            .media
            .answered(&self.description)
            .and_then(|()| self.media.play(&request.first_playback()));
        self.check = self.answer_check(request);
        let (ending, end) = match started {
            Ok(finished) => {
                let end = self
                    .until_hung_up(request, signalling, answered_at, finished, hang_up)
                    .await;
                let ending = Ending::Talked {
                    time: end.at - answered_at,
                    hung_up_by: end.by(),
                };
                (Ok(ending), end)
            }
            Err(error) => {
                tracing::warn!(%error, "an answer makes no sense, or its sound cannot be sent");
                let end = TalkEnd::ours(WhyHungUp::BadAnswer, Instant::now());
                self.leg.hang_up().await;
                (Err(Failure::after_answer(Cause::BadMedia)), end)
            }
        };
        let leg = AnsweredLeg {
            code: self.answer.code(),
            answered_at,
            ended_at: end.at,
            hung_up_by: end.by(),
            why_hung_up: end.why,
            keys: self.keys.kept(),
            heard: self.check.as_ref().map(AnswerCheck::line),
        };
        (ending, self.record.answered(&leg, self.media.stats()))
    }

    /// Listens for who has answered, after the keys of an extension.
    fn answer_check(&self, request: &CallRequest) -> Option<AnswerCheck> {
        let opening = &request.opening;
        let is_keys = |item: &PlaybackItem| matches!(item, PlaybackItem::Keys(_));
        let keys = opening.iter().rposition(is_keys).map_or(0, |last| last + 1);
        let action = request.machine?;
        Some(AnswerCheck::new(
            action,
            self.media.inbound().clone(),
            Arc::clone(&self.heard),
            self.media.length_of(&opening[..keys]),
            self.media.length_of(opening),
        ))
    }

    async fn until_hung_up(
        &mut self,
        request: &CallRequest,
        signalling: &Signalling,
        answered_at: Instant,
        finished: oneshot::Receiver<Instant>,
        hang_up: &CancellationToken,
    ) -> TalkEnd {
        let over = async {
            tokio::select! {
                () = tokio::time::sleep(request.talk_time) => WhyHungUp::LongestTalk,
                () = hang_up.cancelled() => WhyHungUp::Asked,
            }
        };
        let stays = request.menu.is_none();
        let playing = played(finished, stays);
        tokio::pin!(over, playing);
        let mut dialogue = request.menu.as_ref().map(KeyDialogue::new);
        let mut refresh = SessionRefresh::new(
            self.answer.session_timer(),
            self.leg.refresher(&self.answer),
            self.media.said(),
        );
        if let Some(change) = self.early_change.take() {
            self.follow(LegEvent::Changed(change), &mut refresh).await;
        }
        let check = signalling.presence_check(&self.leg, self.record.address());
        let mut far_end = FarEnd::new(check, self.media.inbound().clone(), answered_at);
        // Once we have hung up, the peer's confirmation adds nothing to the time.
        let mut ours: Option<TalkEnd> = None;
        loop {
            let up = ours.is_none();
            let happening = tokio::select! {
                event = self.leg.next() => Happening::Leg(event),
                reason = &mut over, if up => Happening::Over(reason),
                reason = &mut playing, if up => Happening::Over(reason),
                happening = next_in(&mut dialogue, &self.keys), if up && dialogue.is_some() => happening,
                happening = next_known(&mut self.check), if up && self.check.is_some() => happening,
                () = refresh.peer_gone(), if up => Happening::Gone,
                () = far_end.gone(), if up => Happening::Gone,
                end = self.media.watch(), if up => match end {
                    WatchEnd::Quiet => Happening::Quiet,
                    WatchEnd::PortClosed => Happening::PortClosed,
                    WatchEnd::HeldTooLong => Happening::Over(WhyHungUp::HeldTooLong),
                },
                () = tokio::time::sleep(HANG_UP_LIMIT), if !up => Happening::Stuck,
            };
            match happening {
                Happening::Leg(Some(LegEvent::Ended(Side::Them))) => {
                    let at = ours.map_or_else(Instant::now, |end| end.at);
                    return TalkEnd { why: None, at };
                }
                Happening::Leg(Some(LegEvent::Ended(Side::Us)) | None) | Happening::Stuck => {
                    return ours.unwrap_or_else(TalkEnd::theirs);
                }
                Happening::Leg(Some(event)) => {
                    far_end.seen();
                    self.follow(event, &mut refresh).await;
                }
                Happening::Quiet => far_end.quiet(),
                Happening::PortClosed => far_end.port_closed(),
                Happening::Pressed(key) => {
                    let Some(dialogue) = &mut dialogue else {
                        continue;
                    };
                    let step = dialogue.step(key, &mut self.media, &self.keys, request);
                    if let Some(finished) = step {
                        playing.set(played(finished, stays));
                    }
                }
                Happening::Recorded(is_recorded) => {
                    let thanks = request.menu.as_ref();
                    let thanks = thanks.map(|menu| menu.thanked(is_recorded));
                    let finished = self.media.change(thanks.unwrap_or_default());
                    playing.set(played(finished, stays));
                }
                Happening::Known(answerer) => {
                    let finished = self.media.change(request.message_for(answerer));
                    playing.set(played(finished, stays));
                }
                Happening::Over(reason) => {
                    tracing::debug!(?reason, "hanging up");
                    let now = Instant::now();
                    self.media.stop();
                    let bye = self.leg.hang_up().await;
                    let gone = far_end.there_until(now, bye);
                    ours = Some(match gone {
                        Some(last) => TalkEnd::ours(WhyHungUp::Vanished, last),
                        None => TalkEnd::ours(reason, now),
                    });
                }
                Happening::Gone => {
                    tracing::debug!("the far end is gone: hanging up");
                    self.media.stop();
                    self.leg.hang_up().await;
                    let last = far_end.last_there().max(refresh.last());
                    ours = Some(TalkEnd::ours(WhyHungUp::Vanished, last));
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
                let timer = change.reply.session_timer();
                self.change(change).await;
                refresh.refreshed_by_peer(self.media.said(), timer);
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

/// What is asked of the callee, while the call is up.
struct KeyDialogue<'a> {
    state: MenuState<'a>,
    recorded: Option<(KeyChoice, oneshot::Receiver<()>)>,
}

impl<'a> KeyDialogue<'a> {
    fn new(menu: &'a KeyMenu) -> Self {
        Self {
            state: MenuState::new(menu),
            recorded: None,
        }
    }

    /// What is played from now on because of a key, if anything else is: the end of that.
    fn step(
        &mut self,
        key: char,
        media: &mut MediaSession,
        keys: &PressedKeys,
        request: &CallRequest,
    ) -> Option<oneshot::Receiver<Instant>> {
        // Whoever presses keys before the message has not heard it.
        if !media.has_sounded() {
            return None;
        }
        match self.state.pressed(key) {
            MenuStep::Nothing => None,
            MenuStep::PlayAgain => Some(media.change(request.message())),
            MenuStep::Chosen(choice) => {
                let (recorded, done) = ChoiceRecorded::new();
                self.recorded = Some((choice, done));
                keys.chosen(choice, recorded);
                Some(media.change(KeyMenu::recording()))
            }
        }
    }
}

/// What comes next of the callee's keys. Dropping it half-way and calling it again loses nothing.
async fn next_in(dialogue: &mut Option<KeyDialogue<'_>>, keys: &PressedKeys) -> Happening {
    let Some(dialogue) = dialogue else {
        return std::future::pending().await;
    };
    if let Some((choice, recorded)) = &mut dialogue.recorded {
        let is_recorded = recorded.await.is_ok();
        let is_confirmed = is_recorded && matches!(choice, KeyChoice::Confirmed(_));
        dialogue.recorded = None;
        return Happening::Recorded(is_confirmed);
    }
    Happening::Pressed(keys.next().await)
}

/// What comes of listening for who has answered. Dropping it half-way and calling it again loses nothing.
async fn next_known(check: &mut Option<AnswerCheck>) -> Happening {
    let Some(check) = check else {
        return std::future::pending().await;
    };
    match check.next().await {
        CheckStep::Speak(answerer) => Happening::Known(answerer),
        CheckStep::HangUp(reason) => Happening::Over(reason),
    }
}

/// Waits for the end of the playback, and says how it ended. Where keys count, the moment after it is part of the playback: it can still be changed then.
async fn played(finished: oneshot::Receiver<Instant>, stays: bool) -> WhyHungUp {
    match finished.await {
        Ok(_) => {
            if stays {
                tokio::time::sleep(AFTER_THE_LAST_PACKET).await;
            }
            WhyHungUp::Played
        }
        // The pacer has said why.
        Err(_) => WhyHungUp::PlaybackFailed,
    }
}
