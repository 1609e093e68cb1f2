//! Counts the peer's RTP: packets, losses and jitter (RFC 3550 appendices A.1, A.3 and A.8).

use std::time::{Duration, Instant};

use super::rtp::Packet;

/// A jump of the sequence beyond this is a restart of the peer, if the next packet continues it.
const LARGEST_GAP: u16 = 3000;
const LARGEST_DISORDER: u16 = 100;
const SAMPLES_PER_MILLI: u128 = 8;

/// What a receiver says about one source: the block of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceptionBlock {
    pub source: u32,
    /// Lost since the last report, in 256ths.
    pub fraction_lost: u8,
    /// Lost in all; negative if packets came twice.
    pub lost: i32,
    /// The highest sequence number, with the count of its rounds above it.
    pub highest: u32,
    /// In samples.
    pub jitter: u32,
}

/// All sources of a call, one after the other.
#[derive(Debug)]
pub struct ReceiverStats {
    began: Instant,
    current: Option<Source>,
    /// The counts of earlier sources.
    received_before: u32,
    lost_before: u32,
    worst_jitter: u32,
}

#[derive(Debug)]
struct Source {
    number: u32,
    base: u32,
    highest: u32,
    received: u32,
    /// The number after a jump of the sequence; the jump is believed when the packet with this number follows.
    jumped: Option<u16>,
    transit: Option<u32>,
    /// Times 16, as in appendix A.8.
    jitter: u32,
    expected_at_report: u32,
    received_at_report: u32,
}

impl ReceiverStats {
    pub fn new(began: Instant) -> Self {
        Self {
            began,
            current: None,
            received_before: 0,
            lost_before: 0,
            worst_jitter: 0,
        }
    }

    /// `steady` if the timestamp tells when the packet was made; all packets of a key carry the time of its beginning.
    pub fn receive(&mut self, packet: &Packet<'_>, arrived: Instant, steady: bool) {
        if self
            .current
            .as_ref()
            .is_none_or(|source| source.number != packet.source)
        {
            self.forget_current();
            self.current = Some(Source::new(packet.source, packet.sequence));
        }
        let arrived = in_samples(arrived.saturating_duration_since(self.began));
        let Some(source) = &mut self.current else {
            return;
        };
        match source.count(packet.sequence) {
            Count::Counted => {}
            Count::Strange => return,
            Count::Restarted => {
                self.forget_current();
                let mut source = Source::new(packet.source, packet.sequence);
                source.count(packet.sequence);
                self.current = Some(source);
                return;
            }
        }
        if steady {
            source.note_transit(arrived, packet.timestamp);
            self.worst_jitter = self.worst_jitter.max(source.jitter >> 4);
        }
    }

    fn forget_current(&mut self) {
        if let Some(source) = self.current.take() {
            self.received_before = self.received_before.saturating_add(source.received);
            self.lost_before = self.lost_before.saturating_add(lost(&source));
        }
    }

    /// The block for the next report; `None` while no packet has come.
    pub fn report(&mut self) -> Option<ReceptionBlock> {
        let source = self.current.as_mut()?;
        let expected = source.expected();
        let expected_now = expected.wrapping_sub(source.expected_at_report);
        let received_now = source.received.wrapping_sub(source.received_at_report);
        source.expected_at_report = expected;
        source.received_at_report = source.received;
        let lost_now = expected_now.saturating_sub(received_now);
        let fraction = (u64::from(lost_now) * 256)
            .checked_div(expected_now.into())
            .unwrap_or(0);
        let lost = i64::from(expected) - i64::from(source.received);
        Some(ReceptionBlock {
            source: source.number,
            fraction_lost: u8::try_from(fraction).unwrap_or(u8::MAX),
            // 24 bits with a sign.
            lost: i32::try_from(lost.clamp(-0x80_0000, 0x7f_ffff)).unwrap_or(0),
            highest: source.highest,
            jitter: source.jitter >> 4,
        })
    }

    pub fn received(&self) -> u32 {
        let now = self.current.as_ref().map_or(0, |source| source.received);
        self.received_before.saturating_add(now)
    }

    pub fn lost(&self) -> u32 {
        self.lost_before
            .saturating_add(self.current.as_ref().map_or(0, lost))
    }

    pub fn jitter(&self) -> Duration {
        samples(self.current.as_ref().map_or(0, |source| source.jitter >> 4))
    }

    pub fn worst_jitter(&self) -> Duration {
        samples(self.worst_jitter)
    }
}

/// Samples as time.
pub fn samples(count: u32) -> Duration {
    Duration::from_micros(u64::from(count) * 125)
}

/// Time in samples. Only differences count, so the number may wrap around as timestamps do.
pub fn in_samples(time: Duration) -> u32 {
    ((time.as_micros() * SAMPLES_PER_MILLI / 1000) & 0xffff_ffff) as u32
}

fn lost(source: &Source) -> u32 {
    source.expected().saturating_sub(source.received)
}

/// What a sequence number tells.
enum Count {
    Counted,
    /// Far from the others, and alone so far.
    Strange,
    /// The second in a row that is far from the others: the peer has begun anew, and so do we.
    Restarted,
}

impl Source {
    fn new(number: u32, sequence: u16) -> Self {
        Self {
            number,
            base: sequence.into(),
            // The first packet is counted like the others.
            highest: u32::from(sequence).wrapping_sub(1),
            received: 0,
            jumped: None,
            transit: None,
            jitter: 0,
            expected_at_report: 0,
            received_at_report: 0,
        }
    }

    fn expected(&self) -> u32 {
        self.highest.wrapping_sub(self.base).wrapping_add(1)
    }

    fn count(&mut self, sequence: u16) -> Count {
        let ahead = sequence.wrapping_sub((self.highest & 0xffff) as u16);
        if ahead < LARGEST_GAP {
            self.highest = self.highest.wrapping_add(ahead.into());
        } else if ahead <= u16::MAX - LARGEST_DISORDER {
            if self.jumped != Some(sequence) {
                self.jumped = Some(sequence.wrapping_add(1));
                return Count::Strange;
            }
            return Count::Restarted;
        }
        self.jumped = None;
        self.received = self.received.wrapping_add(1);
        Count::Counted
    }

    fn note_transit(&mut self, arrived: u32, timestamp: u32) {
        let transit = arrived.wrapping_sub(timestamp);
        if let Some(last) = self.transit {
            let difference = transit.wrapping_sub(last).cast_signed().unsigned_abs();
            // Bounded, so that one absurd timestamp does not spoil the rest of the call.
            let difference = difference.min(0xffff);
            self.jitter = self.jitter + difference - ((self.jitter + 8) >> 4);
        }
        self.transit = Some(transit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Peer {
        began: Instant,
        receiver_stats: ReceiverStats,
    }

    impl Peer {
        fn new() -> Self {
            let began = Instant::now();
            Self {
                began,
                receiver_stats: ReceiverStats::new(began),
            }
        }

        fn receive(&mut self, source: u32, sequence: u16, timestamp: u32, millis: u64) {
            let packet = Packet {
                payload_type: 8,
                marker: false,
                sequence,
                timestamp,
                source,
                payload: &[],
            };
            let arrived = self.began + Duration::from_millis(millis);
            self.receiver_stats.receive(&packet, arrived, true);
        }
    }

    #[test]
    fn a_steady_stream_loses_nothing_and_has_no_jitter() {
        let mut peer = Peer::new();
        for number in 0_u32..100 {
            let sequence = 65_500_u16.wrapping_add((number & 0xffff) as u16);
            peer.receive(7, sequence, number * 160, u64::from(number) * 20);
        }
        let block = peer.receiver_stats.report().unwrap();
        assert_eq!(
            block,
            ReceptionBlock {
                source: 7,
                fraction_lost: 0,
                lost: 0,
                highest: 65_599,
                jitter: 0
            }
        );
        assert_eq!(
            (peer.receiver_stats.received(), peer.receiver_stats.lost()),
            (100, 0)
        );
    }

    #[test]
    fn the_fraction_counts_from_report_to_report() {
        let mut peer = Peer::new();
        (0..100)
            .filter(|number| number % 4 != 1)
            .for_each(|number| peer.receive(7, number, 0, 0));
        let block = peer.receiver_stats.report().unwrap();
        assert_eq!((block.fraction_lost, block.lost), (64, 25));
        (100..200).for_each(|number| peer.receive(7, number, 0, 0));
        let block = peer.receiver_stats.report().unwrap();
        assert_eq!((block.fraction_lost, block.lost), (0, 25));
    }

    #[test]
    fn packets_that_come_twice_are_less_than_no_loss() {
        let mut peer = Peer::new();
        for number in 0..10 {
            peer.receive(7, number, 0, 0);
            peer.receive(7, number, 0, 0);
        }
        let block = peer.receiver_stats.report().unwrap();
        assert_eq!((block.fraction_lost, block.lost), (0, -10));
        assert_eq!(peer.receiver_stats.lost(), 0);
    }

    #[test]
    fn jitter_follows_the_rule_of_the_rfc() {
        let mut peer = Peer::new();
        // Every second packet is 10 ms late: the difference is 80 samples each time, and so the jitter goes there.
        for number in 0_u32..400 {
            let late = u64::from(number % 2) * 10;
            peer.receive(
                7,
                (number & 0xffff) as u16,
                number * 160,
                u64::from(number) * 20 + late,
            );
        }
        let jitter = peer.receiver_stats.report().unwrap().jitter;
        assert!((78..=80).contains(&jitter), "{jitter}");
        assert_eq!(peer.receiver_stats.jitter(), samples(jitter));
    }

    #[test]
    fn one_stray_number_is_passed_over_and_two_are_a_restart() {
        let mut peer = Peer::new();
        peer.receive(7, 10, 0, 0);
        peer.receive(7, 30_000, 0, 0);
        peer.receive(7, 11, 0, 0);
        assert_eq!(
            (peer.receiver_stats.received(), peer.receiver_stats.lost()),
            (2, 0)
        );
        peer.receive(7, 30_000, 0, 0);
        peer.receive(7, 30_001, 0, 0);
        peer.receive(7, 30_002, 0, 0);
        assert_eq!(peer.receiver_stats.report().unwrap().highest, 30_002);
        assert_eq!(peer.receiver_stats.lost(), 0);
    }

    #[test]
    fn another_source_is_counted_for_itself() {
        let mut peer = Peer::new();
        for (source, number) in [(7, 1), (7, 2), (7, 4), (8, 900), (8, 901)] {
            peer.receive(source, number, 0, 0);
        }
        let block = peer.receiver_stats.report().unwrap();
        assert_eq!((block.source, block.lost), (8, 0));
        assert_eq!(
            (peer.receiver_stats.received(), peer.receiver_stats.lost()),
            (5, 1)
        );
    }

    proptest! {
        #[test]
        fn any_numbers_are_counted_without_harm(packets in prop::collection::vec(any::<(bool, u16, u32, u16)>(), 0..200)) {
            let mut peer = Peer::new();
            for (source, sequence, timestamp, millis) in packets {
                peer.receive(source.into(), sequence, timestamp, millis.into());
                let _ = peer.receiver_stats.report();
            }
            prop_assert!(peer.receiver_stats.jitter() <= peer.receiver_stats.worst_jitter());
        }

        #[test]
        fn what_is_missing_is_lost(kept in prop::collection::btree_set(1_u16..2000, 1..500), first in any::<u16>()) {
            let mut peer = Peer::new();
            peer.receive(1, first, 0, 0);
            for number in &kept {
                peer.receive(1, first.wrapping_add(*number), 0, 0);
            }
            let sent = u32::from(*kept.last().unwrap()) + 1;
            prop_assert_eq!(peer.receiver_stats.lost(), sent - u32::try_from(kept.len()).unwrap() - 1);
        }
    }
}
