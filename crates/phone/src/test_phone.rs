//! A phone that answers by a script and remembers what it heard: how people try Clarion without a trunk, and how we test.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::call::{MediaConfig, PhoneConfig, PhoneError};
use crate::codec::{Codec, FRAME_BYTES};
use crate::ending::Side;
use crate::media::clock::{Clock, Outgoing, Playing, Way};
use crate::media::dtmf::KeyListener;
use crate::media::engine::MediaError;
use crate::media::ports::Ports;
use crate::media::receive::Receiver;
use crate::media::rtp::{Numbers, Packet};
use crate::media::stream::{Step, Stream};
use crate::sdp::{self, LocalMedia, RemoteMedia};
use crate::signalling::{IncomingCall, Leg, LegEvent, Signalling};

/// How the phone behaves when it is called.
#[derive(Debug, Clone)]
pub struct Script {
    /// Ring after this time; `None`: do not ring before the answer.
    pub ring: Option<Duration>,
    pub then: Then,
}

#[derive(Debug, Clone)]
pub enum Then {
    /// Answer after this time.
    Answer {
        after: Duration,
        hang_up: Option<Duration>,
        keys: String,
    },
    /// Refuse with this code after this time.
    Refuse { after: Duration, code: u16 },
    /// Ring until the caller gives up.
    Nothing,
}

impl Script {
    pub fn answer() -> Self {
        Self {
            ring: Some(Duration::ZERO),
            then: Then::Answer {
                after: Duration::ZERO,
                hang_up: None,
                keys: String::new(),
            },
        }
    }

    pub fn refuse(code: u16) -> Self {
        Self {
            ring: None,
            then: Then::Refuse {
                after: Duration::ZERO,
                code,
            },
        }
    }
}

/// One packet of sound, as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardPacket {
    pub arrived: Instant,
    pub sequence: u16,
    pub timestamp: u32,
    pub payload: Vec<u8>,
}

/// What the phone knows of a call when it is over.
#[derive(Debug, Clone)]
pub struct HeardCall {
    pub number: String,
    pub answered: bool,
    /// `None` for a call that was never answered.
    pub hung_up_by: Option<Side>,
    pub codec: Option<Codec>,
    /// Packets of sound in the order of their arrival.
    pub packets: Vec<HeardPacket>,
    /// Keys that the caller pressed.
    pub keys: String,
}

impl HeardCall {
    /// The sound from the first packet to the last, by their timestamps; what was lost is silence.
    pub fn sound(&self) -> Vec<u8> {
        let Some(first) = self.packets.first() else {
            return Vec::new();
        };
        let place = |packet: &HeardPacket| packet.timestamp.wrapping_sub(first.timestamp) as usize;
        let length = self
            .packets
            .iter()
            .map(|packet| place(packet) + packet.payload.len())
            .max()
            .unwrap_or(0);
        let silence = self.codec.map_or(0, Codec::silence);
        let mut sound = vec![silence; length];
        for packet in &self.packets {
            sound[place(packet)..][..packet.payload.len()].copy_from_slice(&packet.payload);
        }
        sound
    }

    /// Packets that are missing between the first and the last.
    pub fn lost(&self) -> usize {
        let (Some(first), Some(last)) = (self.packets.first(), self.packets.last()) else {
            return 0;
        };
        let sent = usize::from(last.sequence.wrapping_sub(first.sequence)) + 1;
        sent.saturating_sub(self.packets.len())
    }
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
        config: &PhoneConfig,
        codecs: &[Codec],
        script: impl Fn(&str) -> Script + Send + 'static,
    ) -> Result<(Self, mpsc::UnboundedReceiver<HeardCall>), PhoneError> {
        let (calls, mut incoming) = mpsc::unbounded_channel();
        let ports = Ports::new(&config.media.ports)
            .ok_or_else(|| MediaError::Ports(config.media.ports.clone()))?;
        let shared = Arc::new(Shared {
            clock: Clock::start()?,
            receiver: Receiver::start()?,
            ports,
            media: config.media.clone(),
            codecs: codecs.to_vec(),
        });
        let signalling = Arc::new(Signalling::start(&config.sip, Some(calls)).await?);
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
            answered: false,
            hung_up_by: None,
            codec: None,
            packets: Vec::new(),
            keys: String::new(),
        };
        if let Some(after) = script.ring {
            tokio::time::sleep(after).await;
            call.leg.ring(None);
        }
        match script.then {
            Then::Nothing => {
                while call
                    .leg
                    .next()
                    .await
                    .is_some_and(|event| !matches!(event, LegEvent::Failed(_)))
                {}
            }
            Then::Refuse { after, code } => {
                wait(&mut call.leg, after).await;
                call.leg.refuse(code);
            }
            Then::Answer {
                after,
                hang_up,
                keys,
            } => {
                if wait(&mut call.leg, after).await {
                    self.answer(&mut call.leg, &call.offer, hang_up, &keys, &mut heard)
                        .await;
                }
            }
        }
        heard
    }

    async fn answer(
        &self,
        leg: &mut Leg,
        offer: &[u8],
        hang_up: Option<Duration>,
        keys: &str,
        heard: &mut HeardCall,
    ) {
        let address = self.media.advertised.unwrap_or(self.media.bind);
        let Ok(pair) = self.ports.open(self.media.bind) else {
            return leg.refuse(503);
        };
        let local = local_media(address, pair.port, &self.codecs);
        let Ok((answer, remote)) = sdp::answer(offer, &local) else {
            return leg.refuse(488);
        };
        let memory = Arc::new(Mutex::new(Memory::default()));
        let Ok(_listening) = self.receiver.listen(
            Arc::clone(&pair.rtp),
            remember(Arc::clone(&memory), &remote),
        ) else {
            return leg.refuse(503);
        };
        leg.answer(answer);
        heard.codec = Some(remote.codec);
        let pressing = self.press(keys, &pair.rtp, &remote);
        let time = hang_up.unwrap_or(Duration::from_secs(3600));
        let too_long = tokio::time::sleep(time);
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
                Some(LegEvent::Changed { reply, .. }) => reply.refuse().await,
                Some(LegEvent::Ringing { .. }) => {}
                Some(LegEvent::Failed(_)) | None => break,
            }
        }
        drop(pressing);
        let mut memory = memory.lock().expect("nothing panics while it remembers");
        heard.packets = std::mem::take(&mut memory.packets);
        heard.keys = std::mem::take(&mut memory.keys);
    }

    /// Presses keys towards the caller.
    fn press(
        &self,
        keys: &str,
        socket: &Arc<std::net::UdpSocket>,
        remote: &RemoteMedia,
    ) -> Option<Pressing> {
        if keys.is_empty() || socket.connect(remote.rtp).is_err() {
            return None;
        }
        let numbers = Numbers {
            source: rand::random(),
            sequence: rand::random(),
            timestamp: rand::random(),
        };
        let mut stream = Stream::new(remote.codec, remote.telephone_event, numbers);
        stream.append(&[Step::Silence { frames: 10 }, Step::Keys(keys.to_owned())]);
        let playing = Arc::new(Playing::default());
        let (finished, _) = tokio::sync::oneshot::channel();
        self.clock.play(Outgoing {
            stream,
            way: Way::Connected(Arc::clone(socket)),
            sealer: None,
            playing: Arc::clone(&playing),
            finished,
        });
        Some(Pressing(playing))
    }
}

struct Pressing(Arc<Playing>);

impl Drop for Pressing {
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
        keys: vec![],
        rtcp_mux: false,
        session: rand::random::<u32>().into(),
        version: 1,
    }
}

fn remember(
    memory: Arc<Mutex<Memory>>,
    remote: &RemoteMedia,
) -> impl FnMut(&[u8], SocketAddr, Instant) + Send + use<> {
    let (sound, keys) = (remote.codec.payload_type(), remote.telephone_event);
    move |bytes, _, arrived| {
        let Some(packet) = Packet::parse(bytes) else {
            return;
        };
        let mut memory = memory.lock().expect("nothing panics while it remembers");
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
    let over = tokio::time::sleep(time);
    tokio::pin!(over);
    loop {
        tokio::select! {
            biased;
            () = &mut over => return true,
            event = leg.next() => if matches!(event, None | Some(LegEvent::Failed(_))) { return false },
        }
    }
}
