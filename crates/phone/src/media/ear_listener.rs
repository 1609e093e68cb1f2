//! Lets the ears hear the packets of a peer, each at its time.

use g711::Codec;

use super::ears::{EarReport, Ears};
use super::packet_row::{PacketGap, PacketRow};
use super::rtp::Packet;

/// Half a second: a loss that is longer, or a timestamp that jumps, tells nothing of the time that has passed.
const LONGEST_LOSS: u32 = 4000;

#[derive(Debug, Default)]
pub struct EarListener {
    ears: Ears,
    row: PacketRow,
}

impl EarListener {
    /// Takes the next packet of the peer. `payload` is its sound, and empty for a packet of another kind, such as comfort noise. Returns true if the ears
    /// know more than before.
    pub fn receive(&mut self, packet: &Packet<'_>, payload: &[u8], codec: Codec) -> bool {
        let Some((gap, payload)) = self.row.next(packet, payload) else {
            return false;
        };
        let mut knows_more = match gap {
            PacketGap::Pause(0) | PacketGap::NewStream => false,
            PacketGap::Pause(samples) => self.ears.pass(samples),
            PacketGap::Lost(samples) => self.ears.pass(samples.min(LONGEST_LOSS)),
        };
        for byte in payload {
            knows_more |= self.ears.hear(codec.decode(*byte));
        }
        knows_more
    }

    pub fn report(&self) -> EarReport {
        self.ears.report()
    }
}
