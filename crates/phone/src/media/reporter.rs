//! When to report, and what (RFC 3550 sections 6.2 and 6.3): about every five seconds, at random, so that thousands of calls do not report
//! at once. The session asks for reports; the pacer knows nothing of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::paced_stream::StreamControl;
use super::receiver_stats;
use super::rtcp::{OutgoingBlock, ReportClock, RtcpReport, SenderInfo};
use super::srtp::RtcpSealer;
use crate::sdp::MasterKey;

/// The first report is early, so that even a short message has one, but after the first packets.
const FIRST: Duration = Duration::from_millis(500);
/// The shortest average interval that section 6.2 allows.
const INTERVAL: Duration = Duration::from_secs(5);
/// Takes out again what the random spread adds to the average (section 6.3.1).
const COMPENSATION: f64 = 1.21828;

#[derive(Debug)]
pub struct Reporter {
    source: u32,
    name: String,
    began: Instant,
    first_timestamp: u32,
    due: Option<Instant>,
    sealer: Option<RtcpSealer>,
    /// The packets sent until the last report and until the one before: a source that has sent nothing since then is no sender.
    sent_before: [u32; 2],
}

impl Reporter {
    pub fn new(source: u32, first_timestamp: u32, began: Instant) -> Self {
        Self {
            source,
            // Random and for this call only (RFC 7022 section 4.2).
            name: format!("{:016x}", rand::random::<u64>()),
            began,
            first_timestamp,
            due: None,
            sealer: None,
            sent_before: [0; 2],
        }
    }

    /// Reports from now on.
    pub fn start(&mut self, now: Instant, key: Option<&MasterKey>) {
        if self.due.is_none() {
            self.due = Some(now + FIRST.mul_f64(spread()));
            self.sealer = key.map(RtcpSealer::new);
        }
    }

    /// `None` while nothing is agreed on.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Writes the report, sealed where encryption was agreed on, and sets when the next one is due.
    pub fn write(
        &mut self,
        now: Instant,
        control: &Arc<StreamControl>,
        received: Option<OutgoingBlock>,
        goodbye: bool,
    ) -> Vec<u8> {
        self.due = Some(now + INTERVAL.mul_f64(spread() / COMPENSATION));
        let report = RtcpReport {
            source: self.source,
            name: &self.name,
            sent: self.sent(now, control),
            received,
            goodbye,
        };
        let mut packet = report.write();
        let packets = control.packets.load(Ordering::Relaxed);
        self.sent_before = [packets, self.sent_before[0]];
        if let Some(sealer) = &mut self.sealer {
            sealer.seal(&mut packet);
        }
        packet
    }

    fn sent(&self, now: Instant, control: &StreamControl) -> Option<SenderInfo> {
        let began = control.began.get()?;
        let packets = control.packets.load(Ordering::Relaxed);
        let since = now.saturating_duration_since(*began);
        (packets != self.sent_before[1]).then(|| SenderInfo {
            clock: ReportClock::at(now.saturating_duration_since(self.began)),
            // The timestamp that a packet would have if it left now: eight samples a millisecond since the first.
            timestamp: self
                .first_timestamp
                .wrapping_add(receiver_stats::in_samples(since)),
            packets,
            octets: control.octets.load(Ordering::Relaxed),
        })
    }
}

/// A factor between a half and one and a half.
fn spread() -> f64 {
    rand::random_range(0.5..1.5)
}

#[cfg(test)]
mod tests {
    use super::super::rtcp;
    use super::*;

    #[test]
    fn reports_come_early_first_and_then_every_few_seconds() {
        let began = Instant::now();
        let mut reporter = Reporter::new(1, 0, began);
        let control = Arc::new(StreamControl::default());
        assert_eq!(reporter.due(), None);
        reporter.start(began, None);
        let first = reporter.due().unwrap();
        assert!((FIRST / 2..FIRST * 2).contains(&(first - began)));
        let mut times: Vec<_> = (0..1000)
            .map(|_| {
                reporter.write(first, &control, None, false);
                reporter.due().unwrap() - first
            })
            .collect();
        times.sort();
        assert!(times[0] >= Duration::from_secs(2) && times[999] < Duration::from_millis(6200));
        let average = times.iter().sum::<Duration>() / 1000;
        assert!((Duration::from_millis(3900)..Duration::from_millis(4300)).contains(&average));
    }

    #[test]
    fn only_who_sends_sends_a_senders_report() {
        let began = Instant::now();
        let mut reporter = Reporter::new(1, 1000, began);
        let control = Arc::new(StreamControl::default());
        let is_sender = |packet: Vec<u8>| packet[1] == 200;
        assert!(!is_sender(reporter.write(began, &control, None, false)));
        control.began.set(began).unwrap();
        control.packets.store(50, Ordering::Relaxed);
        control.octets.store(8000, Ordering::Relaxed);
        let now = began + Duration::from_secs(1);
        let packet = reporter.write(now, &control, None, false);
        assert_eq!(packet[16..20], 9000_u32.to_be_bytes(), "one second later");
        assert_eq!(packet[20..24], 50_u32.to_be_bytes());
        assert_eq!(packet[24..28], 8000_u32.to_be_bytes());
        assert!(is_sender(packet));
        assert!(is_sender(reporter.write(now, &control, None, false)));
        let quiet = reporter.write(now, &control, None, true);
        assert!(rtcp::read(&quiet, 1).unwrap().goodbye);
        assert!(!is_sender(quiet), "held for two reports");
    }
}
