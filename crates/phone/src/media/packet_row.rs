//! Puts the packets of a peer in a row, for whoever listens to its sound.
//!
//! What was lost stays lost, and what comes late is not heard.

use super::rtp::Packet;

/// Longer packets than of 200 ms are nobody's.
const LONGEST_PACKET: usize = 1600;
/// So many packets may come later than they should; further behind, the peer counts anew.
const LARGEST_DISORDER: u16 = 100;

/// What lies between the packet before and the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketGap {
    /// Samples of silence: none, or those for which the peer has sent nothing.
    Pause(u32),
    /// Samples that did not arrive.
    Lost(u32),
    /// It is another stream.
    NewStream,
}

#[derive(Debug, Default)]
pub struct PacketRow {
    expected: Option<Expected>,
}

/// What the next packet has if nothing is lost or left out.
#[derive(Debug, Clone, Copy)]
struct Expected {
    source: u32,
    sequence: u16,
    timestamp: u32,
}

impl PacketRow {
    /// Takes the next packet of the peer. `payload` is its sound, and empty for a packet of another kind, such as comfort noise. Returns what lies before it
    /// and the sound that is to be heard; `None` if it is late or came twice.
    pub fn next<'a>(
        &mut self,
        packet: &Packet<'_>,
        payload: &'a [u8],
    ) -> Option<(PacketGap, &'a [u8])> {
        let gap = self.gap(packet)?;
        let payload = &payload[..payload.len().min(LONGEST_PACKET)];
        #[expect(clippy::cast_possible_truncation, reason = "a packet is short")]
        let length = payload.len() as u32;
        self.expected = Some(Expected {
            source: packet.source,
            sequence: packet.sequence.wrapping_add(1),
            timestamp: packet.timestamp.wrapping_add(length),
        });
        Some((gap, payload))
    }

    fn gap(&self, packet: &Packet<'_>) -> Option<PacketGap> {
        let Some(expected) = self.expected else {
            return Some(PacketGap::Pause(0));
        };
        let ahead = packet.sequence.wrapping_sub(expected.sequence);
        let time = packet.timestamp.wrapping_sub(expected.timestamp);
        if packet.source != expected.source {
            Some(PacketGap::NewStream)
        } else if ahead == 0 {
            // A peer may send nothing while it is silent. A timestamp that goes back tells nothing.
            let time = if time < u32::MAX / 2 { time } else { 0 };
            Some(PacketGap::Pause(time))
        } else if ahead.wrapping_neg() <= LARGEST_DISORDER {
            None
        } else {
            Some(PacketGap::Lost(time))
        }
    }
}
