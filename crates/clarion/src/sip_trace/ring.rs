//! A bounded memory: the oldest message goes when there is no room for a new one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use phone::signalling::{Direction, Trace, TracedMessage};

use super::KeptMessage;
use crate::clock::Clock;

/// What a message takes besides its text, roughly.
const OVERHEAD: usize = 256;
/// Longer messages are cut: a packet of a capture holds no more.
const LONGEST_TEXT: usize = 60_000;

#[derive(Debug)]
pub struct TraceRing {
    room: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    messages: VecDeque<Arc<KeptMessage>>,
    bytes: usize,
}

impl TraceRing {
    /// `room` is in bytes.
    pub fn new(room: usize) -> Self {
        Self {
            room,
            kept: Mutex::default(),
        }
    }

    /// What `phone` shows goes into the ring, at the time of our clock.
    pub fn trace(self: &Arc<Self>, clock: Clock) -> Trace {
        let ring = Arc::clone(self);
        Trace::new(move |message| ring.add(kept(message, clock.now())))
    }

    fn add(&self, message: KeptMessage) {
        let (message, mut gone) = (Arc::new(message), Vec::new());
        let mut kept = self.lock();
        kept.bytes += size(&message);
        kept.messages.push_back(message);
        while kept.bytes > self.room
            && let Some(oldest) = kept.messages.pop_front()
        {
            kept.bytes -= size(&oldest);
            gone.push(oldest);
        }
        // Nobody waits while the memory is given back.
        drop(kept);
        drop(gone);
    }

    /// All that is kept now, the oldest first.
    pub fn messages(&self) -> Vec<Arc<KeptMessage>> {
        self.lock().messages.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(message: &KeptMessage) -> usize {
    message.text.len() + message.call_id.len() + OVERHEAD
}

fn kept(message: TracedMessage, at: Timestamp) -> KeptMessage {
    let TracedMessage {
        mut call_id,
        mut text,
        ..
    } = message;
    cut(&mut text);
    text.shrink_to_fit();
    cut(&mut call_id);
    KeptMessage {
        at,
        sent: message.direction == Direction::Sent,
        transport: message.transport.to_string(),
        local: message.local,
        peer: message.peer,
        call_id,
        text,
    }
}

/// Between two letters.
fn cut(text: &mut String) {
    let ends = (0..=LONGEST_TEXT.min(text.len())).rev();
    let end = ends.into_iter().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::super::message;
    use super::*;

    #[test]
    fn a_flood_leaves_the_newest_messages_and_stays_within_bounds() {
        let ring = Arc::new(TraceRing::new(1 << 20));
        let senders = (0..4).map(|sender| {
            let ring = Arc::clone(&ring);
            std::thread::spawn(move || {
                for number in 0..10_000 {
                    let text = "x".repeat(number % 3000);
                    ring.add(message(
                        &format!("{sender}-{number}"),
                        "192.0.2.7:5060",
                        &text,
                    ));
                }
            })
        });
        for sender in senders.collect::<Vec<_>>() {
            sender.join().unwrap();
        }
        let messages = ring.messages();
        let bytes: usize = messages.iter().map(|message| size(message)).sum();
        assert_eq!(bytes, ring.lock().bytes);
        assert!(bytes <= 1 << 20 && bytes > 1_000_000, "{bytes}");
        let of = |sender: char| {
            let ids = messages.iter().map(|message| &message.call_id);
            let own = ids.filter(move |id| id.starts_with(sender));
            own.map(|id| id[2..].parse().unwrap()).collect::<Vec<u32>>()
        };
        for sender in ['0', '1', '2', '3'] {
            assert!(of(sender).is_sorted());
        }
        assert!(messages.last().unwrap().call_id.ends_with("-9999"));
    }

    #[test]
    fn a_message_that_is_larger_than_the_ring_is_not_kept() {
        let ring = TraceRing::new(1000);
        ring.add(message("a", "192.0.2.7:5060", &"x".repeat(2000)));
        assert!(ring.messages().is_empty());
        ring.add(message("b", "192.0.2.7:5060", "x"));
        assert_eq!(ring.messages().len(), 1);
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_letters() {
        let long = TracedMessage {
            call_id: String::new(),
            direction: Direction::Sent,
            transport: phone::signalling::Transport::Udp,
            local: "192.0.2.1:5060".parse().unwrap(),
            peer: None,
            text: "好".repeat(50_000),
        };
        let message = kept(long, Timestamp::UNIX_EPOCH);
        assert_eq!(message.text.len(), LONGEST_TEXT);
    }
}
