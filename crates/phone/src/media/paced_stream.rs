//! One stream as the pacer has it: what it sends, where to, and what its call and the pacer know of each other.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use g711::Codec;
use tokio::sync::Notify;

use super::batch::Batch;
use super::srtp::{RTP_GROWTH, RtpSealer};
use super::stream::{LARGEST_PACKET, NextPacket, PlaybackItem, Stream};

/// A packet with what encryption adds.
pub const PACKET_ROOM: usize = LARGEST_PACKET + RTP_GROWTH;

/// A packet that leaves later than this after its due time counts as late.
const LATE: Duration = Duration::from_millis(5);

/// What a call wants of its stream: one word that the pacer reads for each packet.
#[derive(Debug, Default)]
pub struct StreamSignals(AtomicU8);

/// The peer has put us on hold: time goes on, the playback waits.
const HELD: u8 = 1;
/// The call is over: the stream is forgotten at its next turn.
const STOPPED: u8 = 2;
/// Something else is played from now on.
const CHANGED: u8 = 4;
/// The peer wants this codec. Without either, the stream keeps the one that it has begun with.
const PCMA: u8 = 8;
const PCMU: u8 = 16;

impl StreamSignals {
    pub fn hold(&self, is_held: bool) {
        if is_held {
            self.0.fetch_or(HELD, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!HELD, Ordering::Relaxed);
        }
    }

    pub fn speak(&self, codec: Codec) {
        let (wanted, other) = match codec {
            Codec::Pcma => (PCMA, PCMU),
            Codec::Pcmu => (PCMU, PCMA),
        };
        self.0.fetch_or(wanted, Ordering::Relaxed);
        self.0.fetch_and(!other, Ordering::Relaxed);
    }

    pub fn stop(&self) {
        self.0.fetch_or(STOPPED, Ordering::Relaxed);
    }
}

/// What is played instead of the rest, from the next packet on.
#[derive(Debug)]
pub struct NewPlayback {
    pub items: Vec<PlaybackItem>,
    pub finished: tokio::sync::oneshot::Sender<Instant>,
}

#[derive(Debug, Default)]
enum ChangeSlot {
    #[default]
    Empty,
    Wanted(NewPlayback),
    /// The stream has ended: nothing more is played.
    Closed,
}

/// What a call and the pacer know of each other. The call writes the first two fields, and only the pacer writes the others.
#[derive(Debug, Default)]
pub struct StreamControl {
    pub signals: StreamSignals,
    change: Mutex<ChangeSlot>,
    /// The due time of the first packet; the other timestamps are counted from it.
    pub began: OnceLock<Instant>,
    pub packets: AtomicU32,
    /// Bytes of payload.
    pub octets: AtomicU32,
    /// Bytes of sounds, without silence and keys.
    pub sound_octets: AtomicU32,
    pub late: AtomicU32,
    /// The longest delay of a packet after its due time, in microseconds.
    pub worst_micros: AtomicU32,
    /// Our packets come to a closed port. The receiver says so too: one of them gets the error.
    pub refused: Arc<Notify>,
}

impl StreamControl {
    /// The stream goes on with something else: its numbers, its time and its figures continue.
    pub fn change(&self, playback: NewPlayback) {
        let mut slot = self.slot();
        if matches!(*slot, ChangeSlot::Closed) {
            return;
        }
        *slot = ChangeSlot::Wanted(playback);
        self.signals.0.fetch_or(CHANGED, Ordering::Release);
    }

    /// The stream has ended. Whoever waits for something that is not going to be played is told so.
    pub fn close(&self) {
        *self.slot() = ChangeSlot::Closed;
    }

    fn slot(&self) -> MutexGuard<'_, ChangeSlot> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Only the pacer writes, so that plain stores suffice. A packet of a batch leaves some microseconds later than is counted here.
    fn count(&self, lateness: Duration, stream: &Stream) {
        self.packets.store(stream.packets, Ordering::Relaxed);
        self.octets.store(stream.octets, Ordering::Relaxed);
        self.sound_octets
            .store(stream.sound_octets, Ordering::Relaxed);
        let micros = u32::try_from(lateness.as_micros()).unwrap_or(u32::MAX);
        if micros > self.worst_micros.load(Ordering::Relaxed) {
            self.worst_micros.store(micros, Ordering::Relaxed);
        }
        if lateness > LATE {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Where a stream goes. The address may change while it plays.
pub type Target = Arc<Mutex<SocketAddr>>;

/// Through which socket a stream leaves, and how.
#[derive(Debug)]
pub enum SendPath {
    /// The socket is connected to the peer: sending needs no address, and packets of strangers never reach us.
    Connected(Arc<UdpSocket>),
    /// The socket is the call's own, but the peer's address will be learned from its packets.
    Towards(Arc<UdpSocket>, Target),
    /// Other calls use the socket too.
    Shared(Arc<UdpSocket>, Target),
}

impl SendPath {
    /// A refused or unreachable port is the peer's matter and ends no call; signalling does.
    fn send(
        &self,
        buffer: &[u8; PACKET_ROOM],
        length: usize,
        batches: &mut Vec<Batch>,
        refused: &Notify,
    ) {
        match self {
            SendPath::Connected(socket) => {
                let sent = socket.send(&buffer[..length]);
                // The error is the echo of an earlier packet (ICMP), real or forged; this packet has not left yet.
                if sent.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
                    refused.notify_one();
                    let _ = socket.send(&buffer[..length]);
                }
            }
            SendPath::Towards(socket, target) => {
                drop(socket.send_to(&buffer[..length], address(target)));
            }
            SendPath::Shared(socket, target) => {
                let known = batches.iter_mut().position(|batch| batch.is_for(socket));
                let index = known.unwrap_or_else(|| {
                    batches.push(Batch::new(Arc::clone(socket)));
                    batches.len() - 1
                });
                batches[index].add(&buffer[..length], address(target));
            }
        }
    }
}

fn address(target: &Target) -> SocketAddr {
    *target
        .lock()
        .expect("nothing panics while it changes an address")
}

/// A stream and what it needs to leave.
#[derive(Debug)]
pub struct PacedStream {
    pub stream: Stream,
    pub send_path: SendPath,
    pub sealer: Option<Box<RtpSealer>>,
    pub control: Arc<StreamControl>,
    /// Gets the time of the last packet. It is dropped unsent when the stream ends before its last packet.
    pub finished: tokio::sync::oneshot::Sender<Instant>,
}

/// What follows from a stream's turn.
pub(super) enum Turn {
    /// A packet has left, this much after its due time.
    Sent(Duration),
    /// Nothing was to be sent.
    Waited,
    /// The last packet has left.
    Finished,
    /// The call does not want it any more.
    Stopped,
}

impl PacedStream {
    fn take_change(&mut self) {
        self.control
            .signals
            .0
            .fetch_and(!CHANGED, Ordering::Relaxed);
        let wanted = std::mem::take(&mut *self.control.slot());
        if let ChangeSlot::Wanted(playback) = wanted {
            self.stream.replace(&playback.items);
            self.finished = playback.finished;
        }
    }

    /// Sends the packet that is due.
    pub(super) fn take_turn(
        &mut self,
        due: Instant,
        buffer: &mut [u8; PACKET_ROOM],
        batches: &mut Vec<Batch>,
    ) -> Turn {
        let signals = self.control.signals.0.load(Ordering::Acquire);
        if signals & STOPPED != 0 {
            return Turn::Stopped;
        }
        if self.stream.is_new() {
            let _ = self.control.began.set(due);
        }
        match signals & (PCMA | PCMU) {
            PCMA => self.stream.speak(Codec::Pcma),
            PCMU => self.stream.speak(Codec::Pcmu),
            // None is wanted, or the call is just changing it.
            _ => {}
        }
        if signals & CHANGED != 0 {
            self.take_change();
        }
        if signals & HELD != 0 {
            self.stream.hold();
            return Turn::Waited;
        }
        let Some(packet) = buffer.first_chunk_mut() else {
            return Turn::Waited;
        };
        let NextPacket::Ready(mut length) = self.stream.next(packet) else {
            return Turn::Finished;
        };
        if let Some(sealer) = &mut self.sealer {
            length = sealer.seal(buffer, length);
        }
        let refused = &self.control.refused;
        self.send_path.send(buffer, length, batches, refused);
        let lateness = Instant::now().saturating_duration_since(due);
        self.control.count(lateness, &self.stream);
        Turn::Sent(lateness)
    }
}
