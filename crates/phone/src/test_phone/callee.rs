//! Whoever picks up the test phone: takes one call by its script.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{HeardCall, KeyForm, ReceivedPacket, Script, Then};
use crate::media::dtmf::{self, KeyTiming};
use crate::media::engine::{Encryption, HeardKeys, MediaEngine, MediaOptions};
use crate::media::inbound::InboundEvent;
use crate::media::session::MediaSession;
use crate::media::stream::PlaybackItem;
use crate::sdp::PacketTime;
use crate::signalling::{EstablishedLeg, IncomingCall, IncomingLeg, LegEvent, SessionChange};
use g711::{Codec, EncodedAudio};

/// How long it rings where nobody answers.
const LONGEST_RING: Duration = Duration::from_secs(60);
/// What has arrived is read within this time.
const LONGEST_READING: Duration = Duration::from_secs(10);
/// Nobody listens to a test for longer.
const LONGEST_CALL: Duration = Duration::from_secs(3600);
/// The packets of that time; further packets are not kept.
const PACKET_LIMIT: usize = 3600 * 50;
/// Longer ones hold no sound for us: nobody sends 60 ms of sound in more bytes.
const LONGEST_PACKET: usize = PacketTime::LONGEST.bytes();

#[derive(Debug)]
pub(super) struct ScriptedCallee {
    pub media: MediaEngine,
    pub codecs: Vec<Codec>,
}

/// What has been received until now.
#[derive(Debug, Default)]
struct Recording {
    packets: Vec<ReceivedPacket>,
    keys: String,
}

impl Recording {
    fn add(&mut self, event: &InboundEvent<'_>) {
        match event {
            InboundEvent::Key(key) | InboundEvent::Tone(key) => self.keys.push(*key),
            // This telephone listens to nobody.
            InboundEvent::Heard => {}
            InboundEvent::Sound(packet, arrived) => {
                if self.packets.len() < PACKET_LIMIT && packet.payload.len() <= LONGEST_PACKET {
                    self.packets.push(ReceivedPacket {
                        arrived: *arrived,
                        sequence: packet.sequence,
                        timestamp: packet.timestamp,
                        payload: packet.payload.to_vec(),
                    });
                }
            }
        }
    }
}

/// Our side of the media of one call.
struct CalleeMedia {
    session: MediaSession,
    answer: String,
    recording: Arc<Mutex<Recording>>,
}

impl ScriptedCallee {
    pub async fn take(&self, call: IncomingCall, script: Script) -> HeardCall {
        let mut leg = call.leg;
        let mut heard = HeardCall {
            number: call.number,
            caller: call.caller,
            call_id: call.call_id,
            answered: false,
            talked: Duration::ZERO,
            invited: Instant::now(),
            ended: Instant::now(),
            hung_up_by: None,
            codec: None,
            packets: Vec::new(),
            keys: String::new(),
        };
        let Some(mut media) = self.open_media(&call.offer, script.key_form) else {
            leg.refuse(488);
            return heard;
        };
        tokio::time::sleep(script.slow).await;
        if let Some(after) = script.ring {
            tokio::time::sleep(after).await;
            leg.ring(script.early_media.as_ref().map(|_| media.answer.clone()));
            if let Some(sound) = script.early_media {
                let _ = media.session.play(&[PlaybackItem::Sound(sound)]);
            }
        }
        match script.then {
            // As in a real network, somebody gives up at last.
            Then::Nothing => {
                if still_wanted(&mut leg, LONGEST_RING).await {
                    leg.refuse(480);
                }
            }
            Then::Refuse { after, code } => {
                if still_wanted(&mut leg, after).await {
                    leg.refuse(code);
                }
            }
            Then::Answer {
                after,
                hang_up,
                keys,
            } => {
                if still_wanted(&mut leg, after).await {
                    let says = script.says.map(PlaybackItem::Sound);
                    let mut plan: Vec<_> = says.into_iter().collect();
                    plan.extend(pressing(&keys, script.listens, script.key_form));
                    media.talk(leg, hang_up, &plan, &mut heard).await;
                    media.session.catch_up(LONGEST_READING).await;
                    media.move_recording(script.deaf_to_every, &mut heard);
                    return heard;
                }
            }
        }
        heard.ended = Instant::now();
        heard
    }

    /// Opens our side of the media, which receives from now on. `None` if nothing can be agreed on.
    fn open_media(&self, offer: &[u8], key_form: KeyForm) -> Option<CalleeMedia> {
        let encrypted = String::from_utf8_lossy(offer).contains("RTP/SAVP");
        let options = MediaOptions {
            codecs: self.codecs.clone(),
            encryption: if encrypted {
                Encryption::Sdes
            } else {
                Encryption::Off
            },
            heard_keys: match key_form {
                KeyForm::Tones => HeardKeys::Tones,
                KeyForm::Packets | KeyForm::TonesAllTheSame => HeardKeys::PacketsOrTones,
            },
            ..MediaOptions::default()
        };
        let recording = Arc::new(Mutex::new(Recording::default()));
        let recorder = Arc::clone(&recording);
        let on_inbound = move |event: InboundEvent<'_>| {
            recorder
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .add(&event);
        };
        let mut session = self.media.open(options, on_inbound).ok()?;
        let answer = session.answer(offer).ok()?;
        Some(CalleeMedia {
            session,
            answer,
            recording,
        })
    }
}

impl CalleeMedia {
    /// Answers and stays until one side hangs up.
    async fn talk(
        &mut self,
        leg: IncomingLeg,
        hang_up: Option<Duration>,
        plan: &[PlaybackItem],
        heard: &mut HeardCall,
    ) {
        let acknowledged = leg.answer(self.answer.clone()).acknowledged();
        let answered = Instant::now();
        heard.codec = self.session.stats().codec;
        if !plan.is_empty() {
            let _ = self.session.play(plan);
        }
        let over = tokio::time::sleep(hang_up.unwrap_or(LONGEST_CALL));
        tokio::pin!(acknowledged, over);
        let leg = loop {
            tokio::select! {
                leg = &mut acknowledged => break leg,
                _ = self.session.watch() => {}
            }
        };
        let hung_up = match leg {
            Some(leg) => {
                heard.answered = true;
                self.until_hung_up(leg, over, heard).await
            }
            None => None,
        };
        heard.talked = answered.elapsed();
        heard.ended = hung_up.unwrap_or_else(Instant::now);
    }

    /// Returns when we hung up, if we did.
    async fn until_hung_up(
        &mut self,
        mut leg: EstablishedLeg,
        mut over: std::pin::Pin<&mut tokio::time::Sleep>,
        heard: &mut HeardCall,
    ) -> Option<Instant> {
        let mut ours = None;
        loop {
            let event = tokio::select! {
                event = leg.next() => event,
                _ = self.session.watch() => continue,
                () = &mut over, if ours.is_none() => {
                    ours = Some(Instant::now());
                    leg.hang_up().await;
                    continue;
                }
            };
            match event {
                Some(LegEvent::Changed(change)) => self.change(change).await,
                Some(LegEvent::Key(_) | LegEvent::Acknowledged { .. }) => {}
                Some(LegEvent::Ended(side)) => {
                    heard.hung_up_by = Some(side);
                    return ours;
                }
                None => return ours,
            }
        }
    }

    async fn change(&mut self, change: SessionChange) {
        let SessionChange { offer, reply, .. } = change;
        match self.session.answer(&offer) {
            Ok(answer) => reply.accept(Some(answer)).await,
            Err(_) if offer.is_empty() => reply.accept(None).await,
            Err(_) => reply.refuse().await,
        }
    }

    /// Moves what was received to the report of the call, without the packets that the script drops.
    fn move_recording(&self, deaf_to_every: u32, heard: &mut HeardCall) {
        let mut recording = self
            .recording
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        heard.packets = std::mem::take(&mut recording.packets);
        heard.keys = std::mem::take(&mut recording.keys);
        if deaf_to_every > 0 {
            let mut count = 0;
            heard.packets.retain(|_| {
                count += 1;
                count % deaf_to_every != 0
            });
        }
    }
}

/// What is played to press keys.
fn pressing(keys: &str, after: Duration, form: KeyForm) -> Vec<PlaybackItem> {
    if keys.is_empty() {
        return Vec::new();
    }
    let frames = after.as_millis() / u128::from(g711::FRAME_MILLIS);
    let frames = u32::try_from(frames).unwrap_or(u32::MAX);
    let mut plan = vec![PlaybackItem::Silence { frames }];
    match form {
        KeyForm::Packets | KeyForm::Tones => plan.push(PlaybackItem::Keys(keys.to_owned())),
        KeyForm::TonesAllTheSame => {
            plan.extend(keys.chars().filter_map(tone).map(PlaybackItem::Sound));
        }
    }
    plan
}

/// A key as sound.
fn tone(key: char) -> Option<EncodedAudio> {
    let event = dtmf::event_of(key)?;
    let tone = |codec| dtmf::tone(event, codec, KeyTiming::default()).into();
    EncodedAudio::from_parts(tone(Codec::Pcma), tone(Codec::Pcmu))
}

/// Waits; false if the caller gave up meanwhile.
async fn still_wanted(leg: &mut IncomingLeg, time: Duration) -> bool {
    tokio::select! {
        biased;
        () = tokio::time::sleep(time) => true,
        () = leg.given_up() => false,
    }
}
