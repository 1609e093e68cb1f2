//! When the statements of the queue have to be planned anew.
//!
//! PostgreSQL plans a prepared statement by the size that its tables have then, and keeps the plan until somebody analyzes them, a minute later at
//! best. A plan that was made for an empty queue reads all of it: with a hundred thousand calls that have just come in, every claim would.

use std::sync::atomic::{AtomicU64, Ordering};

/// Plans that were made for a queue so much shorter are not trusted.
const GROWTH: u64 = 8;
/// Whatever is done with so few calls is quick.
const SHORT: u64 = 100;

/// The shortest queue that there was since the plans were made.
#[derive(Debug, Default)]
pub struct PlanAge(AtomicU64);

impl PlanAge {
    /// Whether plans are to be forgotten now that so many calls wait.
    pub fn is_outgrown(&self, waiting: u64) -> bool {
        let shortest = self.0.load(Ordering::Relaxed);
        let outgrown = waiting > shortest.max(SHORT) * GROWTH;
        if outgrown || waiting < shortest {
            self.0.store(waiting, Ordering::Relaxed);
        }
        outgrown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_forgotten_when_the_queue_has_grown_by_much() {
        let age = PlanAge::default();
        for (waiting, outgrown) in [
            (0, false),
            (800, false),
            (801, true),
            (6_400, false),
            (6_409, true),
            (10, false),
            (801, true),
            (802, false),
        ] {
            assert_eq!(age.is_outgrown(waiting), outgrown, "{waiting}");
        }
    }
}
