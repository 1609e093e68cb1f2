//! A phone that answers by a script and remembers what it heard: how people try Clarion without a trunk, and how we test.

mod heard;
mod script;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

pub use heard::{HeardCall, HeardPacket, Timing};
pub use script::{NUMBERS, Script, Then};

use crate::call::{MediaConfig, PhoneError};
use crate::codec::{Codec, FRAME_BYTES, Sound};
use crate::media::clock::{Clock, Outgoing, Playing};
use crate::media::dtmf::KeyListener;
use crate::media::ports::{PortPair, Ports};
use crate::media::receive::{Listening, Receiver};
use crate::media::rtp::{Numbers, Packet};
use crate::media::stream::{Step, Stream};
use crate::sdp::{self, LocalMedia, RemoteMedia};
use crate::signalling::{
    Answering, Credentials, IncomingCall, Leg, LegEvent, Signalling, SignallingConfig,
};

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
    pub credentials: Option<Credentials>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    receiver: Receiver,
    ports: Ports,
    media: MediaConfig,
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
        let ports = Ports::new(&config.media.ports)
            .ok_or_else(|| PhoneError::Ports(config.media.ports.clone()))?;
        let shared = Arc::new(Shared {
            clock: Clock::start()?,
            receiver: Receiver::start()?,
            ports,
            media: config.media.clone(),
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
    listener: KeyListener,
}

impl Shared {
    async fn take(&self, mut call: IncomingCall, script: Script) -> HeardCall {
        let mut heard = HeardCall {
            number: call.number,
            caller: call.caller,
            call_id: call.call_id,
            answered: false,
            talked: Duration::ZERO,
            hung_up_by: None,
            codec: None,
            packets: Vec::new(),
            keys: String::new(),
        };
        let Some(media) = self.media(&call.offer) else {
            call.leg.refuse(488);
            return heard;
        };
        tokio::time::sleep(script.slow).await;
        let mut tone = None;
        if let Some(after) = script.ring {
            tokio::time::sleep(after).await;
            call.leg
                .ring(script.early_media.then(|| media.answer.clone()));
            tone = script.early_media.then(|| self.send(&media, &early_tone()));
        }
        match script.then {
            Then::Nothing => while !over(call.leg.next().await.as_ref()) {},
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
                    drop(tone.take());
                    self.answer(&mut call.leg, &media, hang_up, &keys, &mut heard)
                        .await;
                    media.recall(script.deaf_to_every, &mut heard);
                }
            }
        }
        heard
    }

    /// Our side of the sound: it is listened to from now on. `None` if nothing can be agreed on.
    fn media(&self, offer: &[u8]) -> Option<Hearing> {
        let address = self.media.advertised.unwrap_or(self.media.bind);
        let pair = self.ports.open(self.media.bind).ok()?;
        let local = local_media(address, pair.port, &self.codecs);
        let (answer, remote) = sdp::answer(offer, &local).ok()?;
        let memory = Arc::new(Mutex::new(Memory::default()));
        let listening = self
            .receiver
            .listen(
                Arc::clone(&pair.rtp),
                remember(Arc::clone(&memory), &remote),
            )
            .ok()?;
        Some(Hearing {
            pair,
            local,
            answer,
            remote,
            memory,
            _listening: listening,
        })
    }

    async fn answer(
        &self,
        leg: &mut Leg,
        media: &Hearing,
        hang_up: Option<Duration>,
        keys: &str,
        heard: &mut HeardCall,
    ) {
        leg.answer(media.answer.clone());
        let answered = Instant::now();
        heard.codec = Some(media.remote.codec);
        let pressing = (!keys.is_empty()).then(|| {
            self.send(
                media,
                &[Step::Silence { frames: 10 }, Step::Keys(keys.to_owned())],
            )
        });
        let too_long = tokio::time::sleep(hang_up.unwrap_or(LONGEST_CALL));
        tokio::pin!(too_long);
        let mut ours = false;
        while heard.hung_up_by.is_none() {
            let event = tokio::select! {
                event = leg.next() => event,
                () = &mut too_long, if !ours && heard.answered => {
                    ours = true;
                    leg.hang_up().await;
                    continue;
                }
            };
            match event {
                Some(LegEvent::Answered { .. }) => heard.answered = true,
                Some(LegEvent::Ended(side)) => heard.hung_up_by = Some(side),
                Some(LegEvent::Changed { offer, reply }) => {
                    match sdp::answer(&offer, &media.local) {
                        Ok((answer, _)) => reply.accept(Some(answer)).await,
                        Err(_) if offer.is_empty() => reply.accept(None).await,
                        Err(_) => reply.refuse().await,
                    }
                }
                Some(LegEvent::Ringing { .. }) => {}
                Some(LegEvent::Failed(_)) | None => break,
            }
        }
        heard.talked = answered.elapsed();
        drop(pressing);
    }

    /// Sends something to the caller.
    fn send(&self, media: &Hearing, program: &[Step]) -> Option<Sending> {
        media.pair.rtp.connect(media.remote.rtp).ok()?;
        let numbers = Numbers {
            source: rand::random(),
            sequence: rand::random(),
            timestamp: rand::random(),
        };
        let mut stream = Stream::new(media.remote.codec, media.remote.telephone_event, numbers);
        stream.append(program);
        let playing = Arc::new(Playing::default());
        let (finished, _) = tokio::sync::oneshot::channel();
        self.clock.play(Outgoing {
            stream,
            socket: Arc::clone(&media.pair.rtp),
            playing: Arc::clone(&playing),
            finished,
        });
        Some(Sending(playing))
    }
}

/// Our side of the sound of one call.
struct Hearing {
    pair: PortPair,
    local: LocalMedia,
    answer: String,
    remote: RemoteMedia,
    memory: Arc<Mutex<Memory>>,
    _listening: Listening,
}

impl Hearing {
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
fn early_tone() -> [Step; 1] {
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
    [Step::Sound(Sound::encode(&samples))]
}

struct Sending(Arc<Playing>);

impl Drop for Sending {
    fn drop(&mut self) {
        self.0
            .stopped
            .store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

fn local_media(address: IpAddr, port: u16, codecs: &[Codec]) -> LocalMedia {
    LocalMedia {
        address,
        port,
        codecs: codecs.to_vec(),
        telephone_event: true,
        srtp_key: None,
        session: rand::random::<u32>().into(),
        version: 1,
    }
}

fn remember(
    memory: Arc<Mutex<Memory>>,
    remote: &RemoteMedia,
) -> impl FnMut(&[u8], SocketAddr, Instant) + Send + use<> {
    let (sound, keys) = (remote.codec.payload_type(), remote.telephone_event);
    let caller = remote.rtp.ip();
    move |bytes, from, arrived| {
        let Some(packet) = Packet::parse(bytes).filter(|_| from.ip() == caller) else {
            return;
        };
        let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.packets.len() >= MOST_PACKETS {
            return;
        }
        if packet.payload_type == sound && packet.payload.len() <= FRAME_BYTES {
            let payload = packet.payload.to_vec();
            memory.packets.push(HeardPacket {
                arrived,
                sequence: packet.sequence,
                timestamp: packet.timestamp,
                payload,
            });
        } else if Some(packet.payload_type) == keys {
            let key = memory.listener.hear(packet.timestamp, packet.payload);
            memory.keys.extend(key);
        }
    }
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
