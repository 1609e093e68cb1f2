//! Notices that packets leave too late: the machine does not keep up with the calls that it plays. Then this node claims no more calls until
//! those that run sound well again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use phone::media::pacer::PaceCounts;

use super::lock;
use crate::claim_holds::{ClaimHolds, HoldKind};

/// The last looks, one a second.
const WINDOW: usize = 5;
/// A share of less than this says nothing: two calls for five seconds.
const LEAST_PACKETS: u64 = 500;

#[derive(Debug)]
pub struct QualityGuard {
    pub pace: Arc<PaceCounts>,
    /// Of a hundred packets; `None`: any number may be late.
    pub limit_percent: Option<u8>,
    pub holds: ClaimHolds,
    looks: Mutex<VecDeque<(u64, u64)>>,
}

impl QualityGuard {
    pub fn new(pace: Arc<PaceCounts>, limit_percent: Option<u8>, holds: ClaimHolds) -> Self {
        Self {
            pace,
            limit_percent,
            holds,
            looks: Mutex::default(),
        }
    }

    /// Once a second.
    pub fn look(&self) {
        self.judge(self.pace.sent_and_missed());
    }

    /// Claims are held above the limit, and released at half of it: where calls come and go they would otherwise be held and released all
    /// the time.
    fn judge(&self, now: (u64, u64)) {
        let Some(limit) = self.limit_percent else {
            return;
        };
        let mut looks = lock(&self.looks);
        let (sent, missed) = looks
            .front()
            .map_or((0, 0), |first| (now.0 - first.0, now.1 - first.1));
        looks.push_back(now);
        if looks.len() > WINDOW {
            looks.pop_front();
        }
        let share = if sent < LEAST_PACKETS {
            0.0
        } else {
            missed as f64 * 100.0 / sent as f64
        };
        let limit = f64::from(limit);
        let is_held = self.holds.holds(HoldKind::Quality);
        let hold = if is_held {
            share > limit / 2.0
        } else {
            share > limit
        };
        let reason = hold.then(|| {
            format!("{share:.0} % of the packets leave more than 20 ms late: this machine does not keep up with its calls")
        });
        self.holds.set(HoldKind::Quality, reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine {
        guard: QualityGuard,
        counts: (u64, u64),
    }

    impl Machine {
        fn new(limit: Option<u8>) -> Self {
            let guard = QualityGuard::new(Arc::default(), limit, ClaimHolds::default());
            Self {
                guard,
                counts: (0, 0),
            }
        }

        /// So many seconds with so many packets, and so many of them late.
        fn plays(&mut self, seconds: u32, sent: u64, missed: u64) -> bool {
            for _ in 0..seconds {
                self.counts = (self.counts.0 + sent, self.counts.1 + missed);
                self.guard.judge(self.counts);
            }
            self.guard.holds.is_held()
        }
    }

    #[test]
    fn a_node_that_does_not_keep_up_claims_nothing_until_it_does() {
        let mut machine = Machine::new(Some(4));
        assert!(!machine.plays(10, 1000, 30));
        assert!(machine.plays(5, 1000, 60));
        let why = machine.guard.holds.reasons();
        assert!(
            why[&HoldKind::Quality].starts_with("6 % of the packets"),
            "{why:?}"
        );
        assert!(machine.plays(10, 1000, 30), "better, but not well");
        assert!(!machine.plays(5, 1000, 10));
    }

    #[test]
    fn few_packets_and_none_say_nothing() {
        let mut machine = Machine::new(Some(4));
        assert!(!machine.plays(10, 50, 50));
        assert!(machine.plays(5, 1000, 1000));
        assert!(!machine.plays(6, 0, 0), "all calls are over");
    }

    #[test]
    fn without_a_limit_nothing_is_held() {
        assert!(!Machine::new(None).plays(10, 1000, 1000));
    }
}
