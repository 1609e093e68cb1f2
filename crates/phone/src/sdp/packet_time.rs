//! How much sound a packet of ours holds: 20 ms, or what the peer asks for.

use g711::FRAME_MILLIS;

/// Bytes of G.711 in a millisecond, and samples.
const PER_MILLI: u16 = 8;

/// Milliseconds of sound in a packet: one of `ALL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketTime(u16);

impl PacketTime {
    pub const ALL: [u16; 6] = [10, 20, 30, 40, 50, 60];
    pub const LONGEST: Self = Self(60);

    /// What a peer wants that says `ptime` and `maxptime` (RFC 8866 section 6.4). What we cannot send is not asked for.
    pub fn of(wanted: Option<u16>, longest: Option<u16>) -> Self {
        let wanted = wanted.filter(|millis| Self::ALL.contains(millis));
        let time = wanted.map_or_else(Self::default, Self);
        match longest {
            Some(longest) if longest < time.0 => Self((longest / 10 * 10).max(Self::ALL[0])),
            _ => time,
        }
    }

    pub fn millis(self) -> usize {
        self.0.into()
    }

    pub fn samples(self) -> u16 {
        self.0 * PER_MILLI
    }

    pub const fn bytes(self) -> usize {
        (self.0 * PER_MILLI) as usize
    }
}

impl Default for PacketTime {
    fn default() -> Self {
        Self(u16::try_from(FRAME_MILLIS).unwrap_or(Self::LONGEST.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_gets_what_it_asks_for_if_we_can_send_it() {
        for (wanted, longest, millis) in [
            (None, None, 20),
            (Some(10), None, 10),
            (Some(30), Some(150), 30),
            (Some(60), None, 60),
            (Some(70), None, 20),
            (Some(25), None, 20),
            (Some(0), None, 20),
            (None, Some(60), 20),
            (None, Some(10), 10),
            (Some(60), Some(40), 40),
            (Some(60), Some(45), 40),
            (None, Some(0), 10),
        ] {
            let time = PacketTime::of(wanted, longest);
            assert_eq!(time.millis(), millis, "{wanted:?} {longest:?}");
        }
    }
}
