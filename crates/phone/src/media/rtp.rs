//! RTP on the wire (RFC 3550): writing our packets, reading the peer's.

/// Version 2, no padding, no extension, no contributing sources.
const FIRST_BYTE: u8 = 0x80;
pub const HEADER_BYTES: usize = 12;

/// The running numbers of one outgoing stream.
#[derive(Debug, Clone)]
pub struct Numbers {
    pub source: u32,
    pub sequence: u16,
    pub timestamp: u32,
}

impl Numbers {
    /// A new stream begins at random numbers (RFC 3550 section 5.1), the sequence in its lower half, so that a listener of an encrypted stream
    /// that misses the first packets does not misjudge the first rollover (RFC 3711 section 3.3.1).
    pub fn random() -> Self {
        Self {
            source: rand::random(),
            sequence: rand::random::<u16>() >> 1,
            timestamp: rand::random(),
        }
    }

    /// Writes the header of the next packet.
    pub fn header(&mut self, payload_type: u8, marker: bool, timestamp: u32) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[0] = FIRST_BYTE;
        header[1] = payload_type | if marker { 0x80 } else { 0 };
        header[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        header[4..8].copy_from_slice(&timestamp.to_be_bytes());
        header[8..12].copy_from_slice(&self.source.to_be_bytes());
        self.sequence = self.sequence.wrapping_add(1);
        header
    }
}

/// A packet that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    pub payload_type: u8,
    pub marker: bool,
    pub sequence: u16,
    pub timestamp: u32,
    pub source: u32,
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// `None` for anything that is not a whole RTP packet. RTCP on the same port (RFC 5761) is told apart by its packet type.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        if is_rtcp(bytes) {
            return None;
        }
        let packet = rtp_types::RtpPacket::parse(bytes).ok()?;
        let payload_end = bytes.len() - usize::from(packet.padding().unwrap_or(0));
        let payload_start = payload_end.checked_sub(packet.payload().len())?;
        Some(Self {
            payload_type: packet.payload_type(),
            marker: packet.marker_bit(),
            sequence: packet.sequence_number(),
            timestamp: packet.timestamp(),
            source: packet.ssrc(),
            payload: &bytes[payload_start..payload_end],
        })
    }
}

/// Where the payload begins, behind contributing sources and an extension (RFC 3550 sections 5.1 and 5.3.1); `None` for what is too short.
pub fn header_length(bytes: &[u8]) -> Option<usize> {
    let first = *bytes.first()?;
    let mut length = HEADER_BYTES + 4 * usize::from(first & 0x0f);
    if first & 0x10 != 0 {
        let words = bytes.get(length + 2..length + 4)?;
        length += 4 + 4 * usize::from(u16::from_be_bytes([words[0], words[1]]));
    }
    (first >> 6 == 2 && length <= bytes.len()).then_some(length)
}

/// Packet types 192 to 223 on a shared port are RTCP.
pub fn is_rtcp(bytes: &[u8]) -> bool {
    bytes.len() >= 8 && bytes[0] >> 6 == 2 && (192..=223).contains(&bytes[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let mut numbers = Numbers {
            source: 0xdead_beef,
            sequence: u16::MAX,
            timestamp: 0,
        };
        let mut bytes = numbers.header(8, true, 160).to_vec();
        bytes.extend([1, 2, 3]);
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!(
            (packet.payload_type, packet.marker, packet.sequence),
            (8, true, u16::MAX)
        );
        assert_eq!(
            (packet.timestamp, packet.source, packet.payload),
            (160, 0xdead_beef, &[1, 2, 3][..])
        );
        assert_eq!(numbers.sequence, 0, "it wraps around");
    }

    #[test]
    fn the_payload_begins_behind_sources_and_extension() {
        let mut bytes = vec![0x92, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7];
        bytes.extend([0; 8]);
        assert_eq!(header_length(&bytes), None, "the extension is missing");
        bytes.extend([0xbe, 0xde, 0, 1, 0, 0, 0, 0, 42]);
        assert_eq!(header_length(&bytes), Some(28));
        assert_eq!(Packet::parse(&bytes).unwrap().payload, [42]);
        for bytes in [&[][..], &[0x80; 11], &[0x40; 12], &[0x8f; 71]] {
            assert_eq!(header_length(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_not_rtp_is_nothing() {
        for bytes in [
            &b""[..],
            b"x",
            &[0; 12],
            &[0x80; 11],
            &[0x80, 200, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x8f; 12],
        ] {
            assert_eq!(Packet::parse(bytes), None, "{bytes:?}");
        }
    }
}
