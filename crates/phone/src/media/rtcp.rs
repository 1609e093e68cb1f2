//! Reads and writes RTCP reports (RFC 3550 section 6). They are sent and timed elsewhere.

use std::time::Duration;

use rtcp_types::{
    Bye, Compound, Packet, ReceiverReport, ReportBlock, RtcpPacketWriterExt, Sdes, SdesChunk,
    SdesItem, SenderReport,
};

use super::receiver_stats::ReceptionBlock;

/// Longer than any report of ours.
const ROOM: usize = 256;
/// 24 bits with a sign.
const LOST_MASK: u32 = 0x00ff_ffff;

/// What we have sent until now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderInfo {
    pub clock: ReportClock,
    pub timestamp: u32,
    pub packets: u32,
    pub octets: u32,
}

/// Our block about the peer, with what lets the peer compute the round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutgoingBlock {
    pub block: ReceptionBlock,
    /// The clock of the peer's last report, and how long ago that came.
    pub last_report: Option<(u32, Duration)>,
}

/// A report to be written.
#[derive(Debug, Clone, Copy)]
pub struct RtcpReport<'a> {
    pub source: u32,
    pub name: &'a str,
    pub sent: Option<SenderInfo>,
    pub received: Option<OutgoingBlock>,
    /// The last one: we are leaving.
    pub goodbye: bool,
}

/// The clock in reports: the time since the session began, which is all that a round trip needs (section 6.4.1 allows it) and tells nobody
/// about the machine. In 2^-32 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportClock(u64);

impl ReportClock {
    pub fn at(since_beginning: Duration) -> Self {
        // A second is added, because a reading of zero means that there is none.
        let seconds = since_beginning.as_secs() + 1;
        let fraction = (u64::from(since_beginning.subsec_nanos()) << 32) / 1_000_000_000;
        Self((seconds << 32) | fraction)
    }

    /// The middle of it, which a report sends back.
    fn middle(self) -> u32 {
        middle(self.0)
    }
}

fn middle(clock: u64) -> u32 {
    (clock >> 16 & 0xffff_ffff) as u32
}

/// As 2^-16 seconds, the unit of delays in reports.
fn short(time: Duration) -> u32 {
    u32::try_from((time.as_micros() << 16) / 1_000_000).unwrap_or(u32::MAX)
}

impl RtcpReport<'_> {
    /// A compound packet: a report, who we are, and a goodbye where it is the last.
    pub fn write(&self) -> Vec<u8> {
        let name =
            SdesChunk::builder(self.source).add_item(SdesItem::builder(SdesItem::CNAME, self.name));
        let mut compound = Compound::builder();
        if let Some(sent) = self.sent {
            let mut report = SenderReport::builder(self.source)
                .ntp_timestamp(sent.clock.0)
                .rtp_timestamp(sent.timestamp)
                .packet_count(sent.packets)
                .octet_count(sent.octets);
            if let Some(received) = &self.received {
                report = report.add_report_block(block(received));
            }
            compound = compound.add_packet(report);
        } else {
            let mut report = ReceiverReport::builder(self.source);
            if let Some(received) = &self.received {
                report = report.add_report_block(block(received));
            }
            compound = compound.add_packet(report);
        }
        compound = compound.add_packet(Sdes::builder().add_chunk(name));
        if self.goodbye {
            compound = compound.add_packet(Bye::builder().add_source(self.source));
        }
        let mut bytes = vec![0; ROOM];
        let length = compound
            .write_into(&mut bytes)
            .expect("a report of ours is short and its numbers are in range");
        bytes.truncate(length);
        bytes
    }
}

fn block(received: &OutgoingBlock) -> rtcp_types::ReportBlockBuilder {
    let (clock, delay) = received.last_report.unwrap_or_default();
    ReportBlock::builder(received.block.source)
        .fraction_lost(received.block.fraction_lost)
        .cumulative_lost(received.block.lost.cast_unsigned() & LOST_MASK)
        .extended_sequence_number(received.block.highest)
        .interarrival_jitter(received.block.jitter)
        .last_sender_report_timestamp(clock)
        .delay_since_last_sender_report_timestamp(short(delay))
}

/// What a peer's report says, as far as it concerns us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerReport {
    /// The clock of its sender's report, to be sent back.
    pub clock: Option<u32>,
    pub about_us: Option<AboutUs>,
    pub goodbye: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AboutUs {
    pub block: ReceptionBlock,
    /// Our clock as it was in our last report that has reached the peer, and how long the peer had it.
    answered: Option<(u32, u32)>,
}

impl AboutUs {
    /// Section 6.4.1: what of the time since our report was not spent at the peer.
    pub fn round_trip(&self, now: ReportClock) -> Option<Duration> {
        let (clock, delay) = self.answered?;
        let units = now.middle().wrapping_sub(clock).wrapping_sub(delay);
        // Less than nothing is a peer that measures badly, and half a day a peer that makes it up.
        let units = if units.cast_signed() < 0 { 0 } else { units };
        Some(Duration::from_micros((u64::from(units) * 1_000_000) >> 16))
            .filter(|time| *time < Duration::from_secs(60))
    }
}

/// Reads a compound packet; `None` for anything that does not begin with a report (section 6.1 wants that).
pub fn read(bytes: &[u8], our_source: u32) -> Option<PeerReport> {
    let mut packets = Compound::parse(bytes).ok()?.map_while(Result::ok);
    let mut read = PeerReport::default();
    match packets.next()? {
        Packet::Sr(report) => {
            read.clock = Some(middle(report.ntp_timestamp()));
            read.about_us = about_us(report.report_blocks(), our_source);
        }
        Packet::Rr(report) => read.about_us = about_us(report.report_blocks(), our_source),
        _ => return None,
    }
    read.goodbye = packets.any(|packet| matches!(packet, Packet::Bye(_)));
    Some(read)
}

fn about_us<'a>(
    mut blocks: impl Iterator<Item = ReportBlock<'a>>,
    our_source: u32,
) -> Option<AboutUs> {
    let block = blocks.find(|block| block.ssrc() == our_source)?;
    let clock = block.last_sender_report_timestamp();
    Some(AboutUs {
        block: ReceptionBlock {
            source: our_source,
            fraction_lost: block.fraction_lost(),
            lost: (block.cumulative_lost() << 8).cast_signed() >> 8,
            highest: block.extended_sequence_number(),
            jitter: block.interarrival_jitter(),
        },
        answered: (clock != 0).then(|| (clock, block.delay_since_last_sender_report_timestamp())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCK: ReceptionBlock = ReceptionBlock {
        source: 42,
        fraction_lost: 64,
        lost: -3,
        highest: 70_000,
        jitter: 17,
    };

    fn report(sent: Option<SenderInfo>, received: Option<OutgoingBlock>, goodbye: bool) -> Vec<u8> {
        RtcpReport {
            source: 7,
            name: "someone",
            sent,
            received,
            goodbye,
        }
        .write()
    }

    fn sent(at: Duration) -> SenderInfo {
        SenderInfo {
            clock: ReportClock::at(at),
            timestamp: 1600,
            packets: 10,
            octets: 1600,
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let received = OutgoingBlock {
            block: BLOCK,
            last_report: Some((0x1234, Duration::from_millis(1500))),
        };
        for sent in [None, Some(sent(Duration::from_secs(3)))] {
            let bytes = report(sent, Some(received), false);
            assert!(super::super::rtp::is_rtcp(&bytes) && bytes.len().is_multiple_of(4));
            let read = read(&bytes, 42).unwrap();
            assert_eq!(read.clock, sent.map(|sent| sent.clock.middle()));
            let about_us = read.about_us.unwrap();
            assert_eq!(about_us.block, BLOCK);
            assert_eq!(about_us.answered, Some((0x1234, 3 << 15)));
            assert!(!read.goodbye);
        }
        assert_eq!(
            read(&report(None, Some(received), true), 43),
            Some(PeerReport {
                goodbye: true,
                ..PeerReport::default()
            })
        );
    }

    #[test]
    fn the_round_trip_is_what_the_peer_did_not_spend() {
        let ours = report(Some(sent(Duration::from_secs(10))), None, false);
        let clock = read(&ours, 0).unwrap().clock.unwrap();
        let received = OutgoingBlock {
            block: BLOCK,
            last_report: Some((clock, Duration::from_secs(2))),
        };
        let theirs = read(&report(None, Some(received), false), 42).unwrap();
        let about_us = theirs.about_us.unwrap();
        let trip = about_us.round_trip(ReportClock::at(Duration::from_millis(12_250)));
        let micros = trip.unwrap().as_micros();
        assert!((249_900..=250_100).contains(&micros), "{micros}");
        let early = about_us.round_trip(ReportClock::at(Duration::from_millis(11_999)));
        assert_eq!(early, Some(Duration::ZERO));
        let absurd = about_us.round_trip(ReportClock::at(Duration::from_secs(1000)));
        assert_eq!(absurd, None);
    }

    #[test]
    fn without_a_report_of_ours_there_is_no_round_trip() {
        let received = OutgoingBlock {
            block: BLOCK,
            last_report: None,
        };
        let read = read(&report(None, Some(received), false), 42).unwrap();
        assert_eq!(
            read.about_us
                .unwrap()
                .round_trip(ReportClock::at(Duration::ZERO)),
            None
        );
    }

    #[test]
    fn what_is_no_report_is_nothing() {
        let whole = report(Some(sent(Duration::ZERO)), None, true);
        assert_eq!(read(&whole[..whole.len() - 1], 42), None);
        assert_eq!(read(&whole[28..], 42), None, "it begins with a name");
        assert_eq!(read(b"", 42), None);
        assert_eq!(read(&[0x80, 200, 0, 0], 42), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not(mut bytes in prop::collection::vec(any::<u8>(), 0..120), kind in 200_u8..208) {
            let _ = read(&bytes, 0);
            if bytes.len() >= 4 {
                let words = u8::try_from(bytes.len() / 4 - 1).unwrap();
                bytes[..4].copy_from_slice(&[0x81, kind, 0, words]);
            }
            let _ = read(&bytes, 0);
        }
    }
}
