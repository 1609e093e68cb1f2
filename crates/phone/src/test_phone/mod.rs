//! A phone that answers by a script and remembers what it heard: how people try Clarion without a trunk, and how we test.

mod heard;
mod script;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

pub use heard::{HeardCall, HeardPacket, Timing};
pub use script::{NUMBERS, Script, Then};

use crate::call::{MediaConfig, PhoneError};
use crate::media::engine::{Encryption, MediaEngine, MediaOptions};
use crate::media::inbound::InboundEvent;
use crate::media::session::MediaSession;
use crate::media::stream::PlaybackItem;
use crate::signalling::{
    Answering, IncomingCall, Leg, LegEvent, Signalling, SignallingConfig, SipCredentials,
};
use g711::{Codec, EncodedAudio, FRAME_BYTES};

/// How long it rings where nobody answers.
const LONGEST_RING: Duration = Duration::from_secs(60);
/// Nobody listens to a test for longer.
const LONGEST_CALL: Duration = Duration::from_secs(3600);
/// The packets of that time: what comes beyond is not kept.
const MOST_PACKETS: usize = 3600 * 50;

/// Where the phone listens, and how.
#[derive(Debug, Clone)]
pub struct TestPhoneConfig {
    pub sip: SignallingConfig,
    pub media: MediaConfig,
    pub codecs: Vec<Codec>,
    /// Callers must know these.
    pub credentials: Option<SipCredentials>,
}

#[derive(Debug)]
struct Shared {
    media: MediaEngine,
    codecs: Vec<Codec>,
}

/// Listens until it is dropped.
#[derive(Debug)]
pub struct TestPhone {
    signalling: Arc<Signalling>,
}

impl TestPhone {
    /// Starts listening. `script` says how a number behaves; what was heard is told when a call is over.
    pub async fn start(
        config: &TestPhoneConfig,
        script: impl Fn(&str) -> Script + Send + 'static,
    ) -> Result<(Self, mpsc::UnboundedReceiver<HeardCall>), PhoneError> {
        let (calls, mut incoming) = mpsc::unbounded_channel();
        let answering = Answering {
            calls,
            credentials: config.credentials.clone(),
        };
        let shared = Arc::new(Shared {
            media: MediaEngine::start(&config.media)?,
            codecs: config.codecs.clone(),
        });
        let signalling = Arc::new(Signalling::start(&config.sip, Some(answering)).await?);
        let (heard, hearing) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(call) = incoming.recv().await {
                let (shared, heard, script) =
                    (Arc::clone(&shared), heard.clone(), script(&call.number));
                tokio::spawn(async move {
                    let _ = heard.send(shared.take(call, script).await);
                });
            }
        });
        Ok((Self { signalling }, hearing))
    }

    pub fn contact(&self) -> SocketAddr {
        self.signalling.contact()
    }

    /// Dialogs and transactions that are open now: for finding leaks.
    pub fn open(&self) -> (usize, usize) {
        self.signalling.open()
    }
}

/// What is heard while a call lasts.
#[derive(Debug, Default)]
struct Memory {
    packets: Vec<HeardPacket>,
    keys: String,
}

impl Memory {
    fn keep(&mut self, heard: &InboundEvent<'_>) {
        match heard {
            InboundEvent::Key(key) => self.keys.push(*key),
            InboundEvent::Sound(packet, arrived) => {
                if self.packets.len() < MOST_PACKETS && packet.payload.len() <= FRAME_BYTES {
                    self.packets.push(HeardPacket {
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

impl Shared {
    async fn take(&self, mut call: IncomingCall, script: Script) -> HeardCall {
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
        let Some(mut hearing) = self.hear(&call.offer) else {
            call.leg.refuse(488);
            return heard;
        };
        tokio::time::sleep(script.slow).await;
        if let Some(after) = script.ring {
            tokio::time::sleep(after).await;
            call.leg
                .ring(script.early_media.then(|| hearing.answer.clone()));
            if script.early_media {
                let _ = hearing.session.play(&early_tone());
            }
        }
        match script.then {
            // As in a real network, somebody gives up at last.
            Then::Nothing => {
                if wait(&mut call.leg, LONGEST_RING).await {
                    call.leg.refuse(480);
                }
            }
            Then::Refuse { after, code } => {
                if wait(&mut call.leg, after).await {
                    call.leg.refuse(code);
                }
            }
            Then::Answer {
                after,
                hang_up,
                keys,
            } => {
                if wait(&mut call.leg, after).await {
                    answer(&mut call.leg, &mut hearing, hang_up, &keys, &mut heard).await;
                    hearing.recall(script.deaf_to_every, &mut heard);
                    return heard;
                }
            }
        }
        heard.ended = Instant::now();
        heard
    }

    /// Our side of the sound: it is listened to from now on. `None` if nothing can be agreed on.
    fn hear(&self, offer: &[u8]) -> Option<Inbound> {
        let encrypted = String::from_utf8_lossy(offer).contains("RTP/SAVP");
        let options = MediaOptions {
            codecs: self.codecs.clone(),
            encryption: if encrypted {
                Encryption::Sdes
            } else {
                Encryption::Off
            },
            ..MediaOptions::default()
        };
        let memory = Arc::new(Mutex::new(Memory::default()));
        let keep = Arc::clone(&memory);
        let on_heard = move |heard: InboundEvent<'_>| {
            keep.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .keep(&heard);
        };
        let mut session = self.media.open(options, on_heard).ok()?;
        let answer = session.answer(offer).ok()?;
        Some(Inbound {
            session,
            answer,
            memory,
        })
    }
}

async fn answer(
    leg: &mut Leg,
    hearing: &mut Inbound,
    hang_up: Option<Duration>,
    keys: &str,
    heard: &mut HeardCall,
) {
    leg.answer(hearing.answer.clone());
    let answered = Instant::now();
    heard.codec = hearing.session.facts().codec;
    if !keys.is_empty() {
        let _ = hearing.session.play(&[
            PlaybackItem::Silence { frames: 10 },
            PlaybackItem::Keys(keys.to_owned()),
        ]);
    }
    let too_long = tokio::time::sleep(hang_up.unwrap_or(LONGEST_CALL));
    tokio::pin!(too_long);
    let mut ours = None;
    while heard.hung_up_by.is_none() {
        let event = tokio::select! {
            event = leg.next() => event,
            () = hearing.session.watch() => continue,
            () = &mut too_long, if ours.is_none() && heard.answered => {
                ours = Some(Instant::now());
                leg.hang_up().await;
                continue;
            }
        };
        match event {
            Some(LegEvent::Answered { .. }) => heard.answered = true,
            Some(LegEvent::Ended(side)) => heard.hung_up_by = Some(side),
            Some(LegEvent::Changed { offer, reply }) => match hearing.session.answer(&offer) {
                Ok(answer) => reply.accept(Some(answer)).await,
                Err(_) if offer.is_empty() => reply.accept(None).await,
                Err(_) => reply.refuse().await,
            },
            Some(LegEvent::Ringing { .. }) => {}
            Some(LegEvent::Failed(_)) | None => break,
        }
    }
    heard.talked = answered.elapsed();
    heard.ended = ours.unwrap_or_else(Instant::now);
}

/// Our side of the sound of one call.
struct Inbound {
    session: MediaSession,
    answer: String,
    memory: Arc<Mutex<Memory>>,
}

impl Inbound {
    /// What was heard, without what we are deaf to.
    fn recall(&self, deaf_to_every: u32, heard: &mut HeardCall) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        heard.packets = std::mem::take(&mut memory.packets);
        heard.keys = std::mem::take(&mut memory.keys);
        if deaf_to_every > 0 {
            let mut place = 0;
            heard.packets.retain(|_| {
                place += 1;
                place % deaf_to_every != 0
            });
        }
    }
}

/// The sound of a line that rings: a second of 425 Hz, as long as it takes.
fn early_tone() -> [PlaybackItem; 1] {
    let samples: Vec<i16> = (0..8000)
        .map(|index| {
            let turn = f64::from(index) * 425.0 / 8000.0 * std::f64::consts::TAU;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a sine of 4000 fits a sample"
            )]
            let sample = (turn.sin() * 4000.0) as i16;
            sample
        })
        .collect();
    [PlaybackItem::Sound(EncodedAudio::encode(&samples))]
}

/// Waits on a leg that is not answered yet; false if the caller gave up meanwhile.
async fn wait(leg: &mut Leg, time: Duration) -> bool {
    let waited = tokio::time::sleep(time);
    tokio::pin!(waited);
    loop {
        tokio::select! {
            biased;
            () = &mut waited => return true,
            event = leg.next() => if over(event.as_ref()) { return false },
        }
    }
}

/// The caller has given up.
fn over(event: Option<&LegEvent>) -> bool {
    matches!(event, None | Some(LegEvent::Failed(_)))
}
