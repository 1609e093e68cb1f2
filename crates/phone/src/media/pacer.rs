//! Sends the packets of all calls, each at its time.
//!
//! One thread serves twenty slots, one every millisecond. A stream lives in one slot, so it gets its turn every 20 ms, and the
//! packets of thousands of calls are spread evenly over time instead of leaving in one burst. Each waking costs as much as sending some
//! packets: so few streams are gathered in few slots, and the thread sleeps through empty ones. Streams whose peers want packets of another
//! length have a ring of slots for that length. A thread and not tasks: measured, a task per
//! stream costs twice as much per packet, and its packets leave when the runtime finds the time. Due times are counted from the start,
//! so the pacer never drifts against the machine's clock.
//!
//! A panic in the turn of one stream ends that stream only.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use supervisor::{Supervisor, Watch, panic_message};

use super::batch::Batch;
use super::paced_stream::{PACKET_ROOM, PacedStream, Turn};
use crate::sdp::PacketTime;

/// Ahead of nearly everything else, as far as a process may ask for.
const NICE: i32 = -15;
const TICK: Duration = Duration::from_millis(1);
/// The distances between the slots that are filled first, in ticks: the next one when those of the one before are full.
const DISTANCES: [usize; 2] = [4, 2];
/// As many packets leave in a fifth of a millisecond.
const FULL: usize = 32;
/// While there are streams, new ones are looked for this often at least, in ticks.
const LOOK: u32 = 4;
/// A pacer without streams shows that it lives once in this time.
const IDLE_BEAT: Duration = Duration::from_millis(250);
/// A pacer that has not shown it for this long is stuck.
const PATIENCE: Duration = Duration::from_secs(1);
/// A packet that leaves later than this is a gap for many a listener: the next one is due already.
const MISSED: Duration = Duration::from_millis(20);

/// How well packets have left since the start. Only the pacer writes, once in each turn.
#[derive(Debug, Default)]
pub struct PaceCounts {
    sent: AtomicU64,
    missed: AtomicU64,
}

impl PaceCounts {
    /// How many packets have left, and how many of them when the next one was due already.
    pub fn sent_and_missed(&self) -> (u64, u64) {
        // In this order: never more missed than sent.
        let missed = self.missed.load(Ordering::Acquire);
        (self.sent.load(Ordering::Relaxed), missed)
    }

    fn add(&self, sent: u64, missed: u64) {
        self.sent.fetch_add(sent, Ordering::Relaxed);
        self.missed.fetch_add(missed, Ordering::Release);
    }
}

/// The handle to the thread, which ends when all handles are gone.
#[derive(Debug, Clone)]
pub struct Pacer {
    inbox: Sender<PacedStream>,
    counts: Arc<PaceCounts>,
}

impl Pacer {
    pub fn start(supervisor: &Supervisor) -> std::io::Result<Self> {
        let (inbox, arriving) = mpsc::channel();
        let counts = Arc::new(PaceCounts::default());
        let wheel = Wheel::new(Arc::clone(&counts));
        supervisor.require_thread("pacer", Some(PATIENCE), move |watch| {
            raise_priority();
            wheel.run(&arriving, &watch);
            watch.release();
        })?;
        Ok(Self { inbox, counts })
    }

    pub fn counts(&self) -> &Arc<PaceCounts> {
        &self.counts
    }

    /// Plays a stream from its next turn on: the pacer sees it within a few ticks, and its slot comes within the time of a packet. If the
    /// pacer is dead, the stream is dropped, and with it the sender that its call waits for.
    pub fn play(&self, stream: PacedStream) {
        let _ = self.inbox.send(stream);
    }
}

/// The thread sleeps most of the time and must run when it wakes, even while everything else is busy. Where the priority is not granted,
/// it takes its turn like the others. On Linux this sets the priority of the calling thread, not of the process.
fn raise_priority() {
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::info!(%error, "the pacer has no priority: packets may leave later on a busy machine");
    }
}

/// Streams with packets of the same length: a slot for each millisecond of it.
struct Ring(Vec<Vec<PacedStream>>);

impl Ring {
    fn new(packet_time: PacketTime) -> Self {
        Self((0..packet_time.millis()).map(|_| Vec::new()).collect())
    }

    /// The slot that is served in this tick.
    fn slot_at(&self, tick: usize) -> usize {
        tick % self.0.len()
    }

    /// Where a stream lives that comes before this tick is served: the next slot with room, of few, or the emptiest of all.
    fn place(&self, tick: usize) -> Option<usize> {
        let next = |distance: usize| {
            let coming = (tick..tick + self.0.len()).map(|tick| self.slot_at(tick));
            let mut filled = coming.filter(move |slot| slot.is_multiple_of(distance));
            filled.find(|slot| self.0[*slot].len() < FULL)
        };
        let emptiest = || (0..self.0.len()).min_by_key(|slot| self.0[*slot].len());
        DISTANCES.into_iter().find_map(next).or_else(emptiest)
    }
}

struct Wheel {
    /// The first is that of 20 ms; others come when a peer wants them.
    rings: Vec<Ring>,
    streams: usize,
    buffer: [u8; PACKET_ROOM],
    /// One for each shared socket; there are as many as trunks that share one.
    batches: Vec<Batch>,
    counts: Arc<PaceCounts>,
}

impl Wheel {
    fn new(counts: Arc<PaceCounts>) -> Self {
        Self {
            rings: vec![Ring::new(PacketTime::default())],
            streams: 0,
            buffer: [0; PACKET_ROOM],
            batches: Vec::new(),
            counts,
        }
    }

    /// Comes back when all handles are gone and all streams have ended.
    fn run(mut self, arriving: &Receiver<PacedStream>, watch: &Watch) {
        let mut start = Instant::now();
        let mut tick: u32 = 0;
        loop {
            watch.heartbeat();
            // Without streams the wheel stands still and costs nothing.
            if self.streams == 0 {
                self.batches.clear();
                match arriving.recv_timeout(IDLE_BEAT) {
                    Ok(stream) => self.add(stream, 0),
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                (start, tick) = (Instant::now(), 0);
            }
            while let Ok(stream) = arriving.try_recv() {
                self.add(stream, tick as usize);
            }
            // A month of talk without a pause: start counting anew rather than overflow.
            if tick > u32::MAX - 2 * LOOK {
                (start, tick) = (start + TICK * tick, 0);
            }
            while !tick.is_multiple_of(LOOK) && self.is_empty_at(tick as usize) {
                tick += 1;
            }
            let due = start + TICK * tick;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            self.turn(tick as usize, due);
            tick += 1;
        }
    }

    fn is_empty_at(&self, tick: usize) -> bool {
        let mut rings = self.rings.iter();
        rings.all(|ring| ring.0[ring.slot_at(tick)].is_empty())
    }

    /// Adds a stream before this tick is served.
    fn add(&mut self, stream: PacedStream, tick: usize) {
        let packet_time = stream.stream.packet_time();
        let known = (self.rings.iter()).position(|ring| ring.0.len() == packet_time.millis());
        let ring = known.unwrap_or_else(|| {
            self.rings.push(Ring::new(packet_time));
            self.rings.len() - 1
        });
        if let Some(slot) = self.rings[ring].place(tick) {
            self.rings[ring].0[slot].push(stream);
            self.streams += 1;
        }
    }

    /// Serves the slots of this millisecond.
    fn turn(&mut self, tick: usize, due: Instant) {
        for ring in 0..self.rings.len() {
            self.turn_of((ring, self.rings[ring].slot_at(tick)), due);
        }
        let sent = catch_unwind(AssertUnwindSafe(|| {
            self.batches.iter_mut().for_each(Batch::send);
        }));
        if let Err(panic) = sent {
            tracing::error!(
                reason = panic_message(&*panic),
                "packets of shared sockets are lost: sending them panicked"
            );
            self.batches.clear();
        }
        self.batches.retain(|batch| !batch.is_done());
    }

    /// Serves a slot. Panics are caught around the whole slot, so that a stream costs nothing more; after a panic the rest of the slot is
    /// served as if nothing had happened.
    fn turn_of(&mut self, place: (usize, usize), due: Instant) {
        let mut index = 0;
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.serve(place, &mut index, due)))
        {
            tracing::error!(
                reason = panic_message(&*panic),
                "a stream panicked in its turn: its call ends"
            );
            self.remove(place, index);
        }
    }

    fn serve(&mut self, (ring, slot): (usize, usize), index: &mut usize, due: Instant) {
        let (mut sent, mut missed) = (0, 0);
        while let Some(stream) = self.rings[ring].0[slot].get_mut(*index) {
            match stream.take_turn(due, &mut self.buffer, &mut self.batches) {
                Turn::Sent(lateness) => {
                    sent += 1;
                    missed += u64::from(lateness > MISSED);
                    *index += 1;
                }
                Turn::Waited => *index += 1,
                Turn::Stopped => drop(self.remove((ring, slot), *index)),
                Turn::Finished => {
                    let ended = self.remove((ring, slot), *index);
                    // The call may have stopped waiting for it.
                    let _ = ended.finished.send(Instant::now());
                }
            }
        }
        self.counts.add(sent, missed);
    }

    fn remove(&mut self, (ring, slot): (usize, usize), index: usize) -> PacedStream {
        self.streams -= 1;
        let ended = self.rings[ring].0[slot].swap_remove(index);
        ended.control.close();
        ended
    }
}

#[cfg(test)]
mod tests;
