//! How well packets have left in the last minutes. What was late hours ago says nothing about now.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use jiff::SignedDuration;
use phone::media::pacer::PaceCounts;
use tokio::time::Instant;

use super::lock;

/// What is told is as old as this at most.
pub const PACKETS_WINDOW: SignedDuration = SignedDuration::from_mins(5);
/// From one look that is kept to the next.
const STEP: SignedDuration = SignedDuration::from_secs(10);

#[derive(Debug, Default)]
pub struct RecentPackets {
    /// Since the start.
    pub pace: Arc<PaceCounts>,
    looks: Mutex<Looks>,
}

/// What was counted until when, the oldest first.
#[derive(Debug, Default)]
struct Looks(VecDeque<(Instant, (u64, u64))>);

impl RecentPackets {
    pub fn new(pace: Arc<PaceCounts>) -> Self {
        Self {
            pace,
            looks: Mutex::default(),
        }
    }

    /// Now and then, once a second at most.
    pub fn look(&self) {
        let counted = self.pace.sent_and_missed();
        lock(&self.looks).record(Instant::now(), counted);
    }

    /// Packets that have left in the last minutes, and those of them that were late.
    pub fn sent_and_missed(&self) -> (u64, u64) {
        lock(&self.looks).since_first(self.pace.sent_and_missed())
    }
}

impl Looks {
    fn record(&mut self, now: Instant, counted: (u64, u64)) {
        let is_past = |at: &Instant, time: SignedDuration| {
            SignedDuration::try_from(now.duration_since(*at)).is_ok_and(|past| past >= time)
        };
        if self.0.back().is_some_and(|(at, _)| !is_past(at, STEP)) {
            return;
        }
        self.0.push_back((now, counted));
        while let Some((at, _)) = self.0.get(1)
            && is_past(at, PACKETS_WINDOW)
        {
            self.0.pop_front();
        }
    }

    fn since_first(&self, (sent, missed): (u64, u64)) -> (u64, u64) {
        let (_, first) = self.0.front().copied().unzip();
        let first: (u64, u64) = first.unwrap_or_default();
        (sent.saturating_sub(first.0), missed.saturating_sub(first.1))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_was_late_more_than_minutes_ago_does_not_count() {
        let (mut looks, began) = (Looks::default(), Instant::now());
        let mut packets = |seconds: u64, counted| {
            looks.record(began + Duration::from_secs(seconds), counted);
            looks.since_first(counted)
        };
        assert_eq!(packets(0, (0, 0)), (0, 0));
        // An hour's fault in the first minute.
        assert_eq!(packets(60, (3000, 900)), (3000, 900));
        assert_eq!(packets(65, (3100, 900)), (3100, 900));
        assert_eq!(packets(300, (15_000, 900)), (15_000, 900));
        assert_eq!(packets(370, (18_000, 910)), (15_000, 10));
        assert_eq!(packets(4000, (19_000, 911)), (1000, 1));
        assert_eq!(looks.0.len(), 2, "no more is kept than is needed");
    }
}
