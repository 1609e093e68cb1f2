//! Listens for keys as tones in the sound of a peer that has not agreed on telephone-event.
//!
//! Neither a loss nor a packet that comes late must make two keys of one.

use g711::Codec;

use super::packet_row::{PacketGap, PacketRow};
use super::rtp::Packet;
use super::tone_detector::ToneDetector;

/// 50 ms of silence end every key.
const PAUSE: u32 = 400;
/// Half a second: a key that is heard before and after so long a loss was pressed twice.
const LONGEST_LOSS: u32 = 4000;

#[derive(Debug, Default)]
pub struct ToneListener {
    detector: ToneDetector,
    row: PacketRow,
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
        let Some((gap, payload)) = self.row.next(packet, payload) else {
            return;
        };
        let silence = self.bridge(gap);
        let sound = payload.iter().map(|byte| codec.decode(*byte));
        for sample in std::iter::repeat_n(0, silence).chain(sound) {
            if let Some(key) = self.detector.hear(sample) {
                on_key(key);
            }
        }
    }

    /// The samples of silence that are heard before a packet.
    fn bridge(&mut self, gap: PacketGap) -> usize {
        match gap {
            PacketGap::Pause(samples) => return samples.min(PAUSE) as usize,
            PacketGap::Lost(samples) if samples > LONGEST_LOSS => {
                self.detector = ToneDetector::default();
            }
            PacketGap::Lost(_) | PacketGap::NewStream => self.detector.interrupt(),
        }
        0
    }
}

#[cfg(test)]
mod tests;
