//! Listens for keys as tones in the sound of a peer that has not agreed on telephone-event: puts its packets in a row for the detector.
//!
//! What was lost stays lost, and what comes late is not heard: neither must make two keys of one.

use g711::Codec;

use super::rtp::Packet;
use super::tone_detector::ToneDetector;

/// Longer packets than of 200 ms are nobody's.
const LONGEST_PACKET: usize = 1600;
/// So many packets may come later than they should; further behind, the peer counts anew.
const LARGEST_DISORDER: u16 = 100;
/// 50 ms of silence end every key.
const PAUSE: u32 = 400;
/// Half a second: a key that is heard before and after so long a loss was pressed twice.
const LONGEST_LOSS: u32 = 4000;

#[derive(Debug, Default)]
pub struct ToneListener {
    detector: ToneDetector,
    expected: Option<Expected>,
}

/// What the next packet has if nothing is lost or left out.
#[derive(Debug, Clone, Copy)]
struct Expected {
    source: u32,
    sequence: u16,
    timestamp: u32,
}

impl ToneListener {
    /// Takes the next packet of the peer. `payload` is its sound, and empty for a packet of another kind, such as comfort noise.
    pub fn receive(
        &mut self,
        packet: &Packet<'_>,
        payload: &[u8],
        codec: Codec,
        mut on_key: impl FnMut(char),
    ) {
        let Some(silence) = self.follow(packet) else {
            return;
        };
        let payload = &payload[..payload.len().min(LONGEST_PACKET)];
        #[expect(clippy::cast_possible_truncation, reason = "a packet is short")]
        let length = payload.len() as u32;
        self.expected = Some(Expected {
            source: packet.source,
            sequence: packet.sequence.wrapping_add(1),
            timestamp: packet.timestamp.wrapping_add(length),
        });
        let sound = payload.iter().map(|byte| codec.decode(*byte));
        for sample in std::iter::repeat_n(0, silence).chain(sound) {
            if let Some(key) = self.detector.hear(sample) {
                on_key(key);
            }
        }
    }

    /// The samples of silence before a packet; `None` if it is late or came twice.
    fn follow(&mut self, packet: &Packet<'_>) -> Option<usize> {
        let Some(expected) = self.expected else {
            return Some(0);
        };
        let ahead = packet.sequence.wrapping_sub(expected.sequence);
        let time = packet.timestamp.wrapping_sub(expected.timestamp);
        if packet.source != expected.source {
            self.detector.interrupt();
        } else if ahead == 0 {
            // A peer may send nothing while it is silent. A timestamp that goes back tells nothing.
            return Some(if time < u32::MAX / 2 {
                time.min(PAUSE) as usize
            } else {
                0
            });
        } else if ahead.wrapping_neg() <= LARGEST_DISORDER {
            return None;
        } else if time > LONGEST_LOSS {
            self.detector = ToneDetector::default();
        } else {
            self.detector.interrupt();
        }
        Some(0)
    }
}

#[cfg(test)]
mod tests;
