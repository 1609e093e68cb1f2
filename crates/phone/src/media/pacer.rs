//! One clock for all calls.
//!
//! A thread wakes every millisecond and serves one of twenty slots; a stream lives in one slot, so it gets its turn every 20 ms, and the
//! packets of thousands of calls are spread evenly over time instead of leaving in one burst. A thread and not tasks: measured, a task per
//! stream costs twice as much per packet, and its packets leave when the runtime finds the time. Moments are counted from the start,
//! so the clock never drifts against the machine's.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::srtp::{RTP_GROWTH, RtpSealer};
use super::stream::{LARGEST_PACKET, Moment, Stream};

/// Before nearly everything else, as far as a process may ask for.
const NICE: i32 = -15;
/// A packet with what encryption adds.
pub const PACKET_ROOM: usize = LARGEST_PACKET + RTP_GROWTH;

const SLOTS: usize = 20;
const TICK: Duration = Duration::from_millis(1);
/// A packet that leaves later than this after its moment counts as late.
const LATE: Duration = Duration::from_millis(5);

/// What a call and the clock know of each other. The clock only ever reads the first two, and only the clock writes the others.
#[derive(Debug, Default)]
pub struct Playing {
    /// The peer does not want to hear us now: time goes on, the program waits.
    pub held: AtomicBool,
    /// The call is over: the stream is forgotten at its next turn.
    pub stopped: AtomicBool,
    /// The moment of the stream's first timestamp; all others follow from it.
    pub began: OnceLock<Instant>,
    pub packets: AtomicU32,
    /// Bytes of payload.
    pub octets: AtomicU32,
    pub late: AtomicU32,
    /// The longest that a packet left after its moment, in microseconds.
    pub worst_micros: AtomicU32,
}

/// Where a stream goes. The address may change while it plays.
pub type Target = Arc<Mutex<SocketAddr>>;

/// How a stream leaves.
#[derive(Debug)]
pub enum SendPath {
    /// The socket is connected to the peer, so that sending needs no address and a stranger's packets never reach us.
    Connected(Arc<UdpSocket>),
    /// The socket is the call's own, but where the peer is will be learned from its packets.
    Towards(Arc<UdpSocket>, Target),
    /// Other calls use the socket too.
    Shared(Arc<UdpSocket>, Target),
}

/// A stream and what it needs to leave.
#[derive(Debug)]
pub struct Outgoing {
    pub stream: Stream,
    pub way: SendPath,
    pub sealer: Option<Box<RtpSealer>>,
    pub playing: Arc<Playing>,
    /// Told once, when the last packet has left.
    pub finished: tokio::sync::oneshot::Sender<Instant>,
}

/// The handle to the thread, which ends when all handles are gone.
#[derive(Debug, Clone)]
pub struct Pacer {
    inbox: Sender<Outgoing>,
}

impl Pacer {
    pub fn start() -> std::io::Result<Self> {
        let (inbox, arriving) = mpsc::channel();
        thread::Builder::new()
            .name("media-clock".to_owned())
            .spawn(move || {
                go_first();
                Wheel::new().run(&arriving);
            })?;
        Ok(Self { inbox })
    }

    /// Plays a stream from its next turn on, at most 20 ms from now.
    pub fn play(&self, outgoing: Outgoing) {
        self.inbox
            .send(outgoing)
            .expect("the clock's thread lives as long as its handles");
    }
}

/// This thread sleeps most of the time and must run when it wakes, also while everything else is busy. Where that is not granted, it takes its
/// turn like the others. On Linux the caller of this is a thread, not a process.
fn go_first() {
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::info!(%error, "the clock of the sound has no priority: packets may leave later on a busy machine");
    }
}

struct Wheel {
    slots: [Vec<Outgoing>; SLOTS],
    streams: usize,
    buffer: [u8; PACKET_ROOM],
    /// One for each shared socket; there are as many as trunks that want it.
    batches: Vec<Batch>,
}

impl Wheel {
    fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| Vec::new()),
            streams: 0,
            buffer: [0; PACKET_ROOM],
            batches: Vec::new(),
        }
    }

    fn run(mut self, arriving: &Receiver<Outgoing>) {
        let mut start = Instant::now();
        let mut tick: u32 = 0;
        loop {
            // With nothing to play the clock stands still and costs nothing.
            if self.streams == 0 {
                self.batches.clear();
                let Ok(outgoing) = arriving.recv() else {
                    return;
                };
                self.add(outgoing);
                (start, tick) = (Instant::now(), 0);
            }
            while let Ok(outgoing) = arriving.try_recv() {
                self.add(outgoing);
            }
            let due = start + TICK * tick;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            self.turn(tick as usize % SLOTS, due);
            tick += 1;
            // A month of talk without a pause: start counting anew rather than overflow.
            if tick == u32::MAX - 1 {
                (start, tick) = (due + TICK, 0);
            }
        }
    }

    fn add(&mut self, outgoing: Outgoing) {
        let emptiest = (0..SLOTS)
            .min_by_key(|slot| self.slots[*slot].len())
            .unwrap_or(0);
        self.slots[emptiest].push(outgoing);
        self.streams += 1;
    }

    fn turn(&mut self, slot: usize, due: Instant) {
        let mut place = 0;
        while place < self.slots[slot].len() {
            let outgoing = &mut self.slots[slot][place];
            match outgoing.moment(due, &mut self.buffer, &mut self.batches) {
                Turn::Goes => place += 1,
                Turn::Ends { told } => {
                    let ended = self.slots[slot].swap_remove(place);
                    self.streams -= 1;
                    if told {
                        // Whoever waited for it may be gone.
                        let _ = ended.finished.send(Instant::now());
                    }
                }
            }
        }
        self.batches.iter_mut().for_each(Batch::send);
        self.batches.retain(|batch| !batch.is_done());
    }
}

enum Turn {
    Goes,
    Ends { told: bool },
}

impl Outgoing {
    fn moment(
        &mut self,
        due: Instant,
        buffer: &mut [u8; PACKET_ROOM],
        batches: &mut Vec<Batch>,
    ) -> Turn {
        if self.playing.stopped.load(Ordering::Relaxed) {
            return Turn::Ends { told: false };
        }
        if self.stream.is_new() {
            let _ = self.playing.began.set(due);
        }
        if self.playing.held.load(Ordering::Relaxed) {
            self.stream.hold();
            return Turn::Goes;
        }
        let Some(packet) = buffer.first_chunk_mut() else {
            return Turn::Goes;
        };
        let Moment::Packet(mut length) = self.stream.next(packet) else {
            return Turn::Ends { told: true };
        };
        if let Some(sealer) = &mut self.sealer {
            length = sealer.seal(buffer, length);
        }
        self.way.send(buffer, length, batches);
        self.playing
            .note(Instant::now().saturating_duration_since(due), &self.stream);
        Turn::Goes
    }
}

impl SendPath {
    /// A refused or unreachable port is the peer's matter and ends no call; signalling does.
    fn send(&self, buffer: &[u8; PACKET_ROOM], length: usize, batches: &mut Vec<Batch>) {
        match self {
            SendPath::Connected(socket) => {
                let sent = socket.send(&buffer[..length]);
                // That is the echo of an earlier packet (ICMP), real or forged; this one has not left yet.
                if sent.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
                    let _ = socket.send(&buffer[..length]);
                }
            }
            SendPath::Towards(socket, target) => {
                drop(socket.send_to(&buffer[..length], address(target)));
            }
            SendPath::Shared(socket, target) => {
                let known = batches.iter_mut().position(|batch| batch.is_for(socket));
                let place = known.unwrap_or_else(|| {
                    batches.push(Batch::new(Arc::clone(socket)));
                    batches.len() - 1
                });
                batches[place].add(buffer, length, address(target));
            }
        }
    }
}

fn address(target: &Target) -> SocketAddr {
    *target
        .lock()
        .expect("nothing panics while it changes an address")
}

impl Playing {
    /// Only the clock writes, so that plain stores do. A packet of a batch leaves some microseconds later than is noted here.
    fn note(&self, lateness: Duration, stream: &Stream) {
        self.packets.store(stream.packets, Ordering::Relaxed);
        self.octets.store(stream.octets, Ordering::Relaxed);
        let micros = u32::try_from(lateness.as_micros()).unwrap_or(u32::MAX);
        if micros > self.worst_micros.load(Ordering::Relaxed) {
            self.worst_micros.store(micros, Ordering::Relaxed);
        }
        if lateness > LATE {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rtp::{Numbers, Packet};
    use super::super::stream::PlaybackItem;
    use super::*;
    use g711::{Codec, EncodedAudio};

    fn pair() -> (Arc<UdpSocket>, UdpSocket) {
        let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
        let theirs = UdpSocket::bind("127.0.0.1:0").unwrap();
        ours.connect(theirs.local_addr().unwrap()).unwrap();
        theirs
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        (Arc::new(ours), theirs)
    }

    fn stream(steps: &[PlaybackItem]) -> Stream {
        let mut stream = Stream::new(
            Codec::Pcma,
            None,
            Numbers {
                source: 1,
                sequence: 0,
                timestamp: 0,
            },
        );
        stream.append(steps);
        stream
    }

    #[tokio::test]
    async fn every_packet_of_a_sound_arrives_in_order_at_its_pace() {
        let pacer = Pacer::start().unwrap();
        let sound = EncodedAudio::encode(
            &(0..8000)
                .map(|index| (index % 200) * 100)
                .collect::<Vec<i16>>(),
        );
        let (socket, theirs) = pair();
        let (finished, when) = tokio::sync::oneshot::channel();
        let playing = Arc::new(Playing::default());
        let began = Instant::now();
        pacer.play(Outgoing {
            stream: stream(&[PlaybackItem::Sound(sound.clone())]),
            way: SendPath::Connected(socket),
            sealer: None,
            playing: Arc::clone(&playing),
            finished,
        });
        let heard = tokio::task::spawn_blocking(move || {
            let mut heard = Vec::new();
            let mut buffer = [0; 2048];
            for sequence in 0..50 {
                let length = theirs.recv(&mut buffer).unwrap();
                let packet = Packet::parse(&buffer[..length]).unwrap();
                assert_eq!(
                    (packet.sequence, packet.timestamp),
                    (sequence, u32::from(sequence) * 160)
                );
                heard.extend_from_slice(packet.payload);
            }
            heard
        })
        .await
        .unwrap();
        assert_eq!(heard, sound.bytes(Codec::Pcma).to_vec());
        // The fiftieth packet leaves 980 ms after the first, never earlier.
        assert!(when.await.unwrap() - began >= Duration::from_millis(980));
        assert_eq!(playing.packets.load(Ordering::Relaxed), 50);
    }

    #[tokio::test]
    async fn a_held_stream_waits_and_a_stopped_one_is_forgotten() {
        let pacer = Pacer::start().unwrap();
        let (socket, theirs) = pair();
        let (finished, when) = tokio::sync::oneshot::channel();
        let playing = Arc::new(Playing::default());
        playing.held.store(true, Ordering::Relaxed);
        pacer.play(Outgoing {
            stream: stream(&[PlaybackItem::Silence { frames: 1000 }]),
            way: SendPath::Connected(socket),
            sealer: None,
            playing: Arc::clone(&playing),
            finished,
        });
        theirs
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        assert!(
            theirs.recv(&mut [0; 200]).is_err(),
            "nothing is sent while held"
        );
        playing.held.store(false, Ordering::Relaxed);
        theirs
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        assert!(theirs.recv(&mut [0; 200]).is_ok());
        playing.stopped.store(true, Ordering::Relaxed);
        assert!(when.await.is_err(), "a stopped stream does not finish");
    }
}
