//! This node, as every part of dispatch needs to know it, and whether it still holds its leases.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::SignedDuration;

use super::lock;
use crate::clock::Clock;
use crate::domain::claim::{LeaseEnd, NodeId};
use crate::store::{DispatchStore, StoreError};

/// The name of this process's life, its clock, the store that it shares with others, and how long its leases last.
#[derive(Debug, Clone)]
pub struct Node {
    pub id: NodeId,
    pub store: Arc<dyn DispatchStore>,
    pub clock: Clock,
    pub lease: SignedDuration,
    pub lease_watch: LeaseWatch,
}

impl Node {
    pub fn new(
        id: NodeId,
        store: Arc<dyn DispatchStore>,
        clock: Clock,
        lease: SignedDuration,
    ) -> Self {
        Self {
            id,
            lease_watch: LeaseWatch::new(store.lease_end(), clock.clone(), lease),
            store,
            clock,
            lease,
        }
    }

    /// Shows that this node lives. How far the database's clock is ahead of this machine's.
    pub async fn heartbeat(&self) -> Result<SignedDuration, StoreError> {
        let (begun, asked) = (self.lease_watch.now(), self.clock.machine());
        let heartbeat = self.store.heartbeat(&self.id, self.clock.now(), self.lease);
        let reply = heartbeat.await?;
        self.lease_watch.renewed(begun);
        // The database has looked at its clock between our question and its answer.
        let middle = asked + self.clock.machine().duration_since(asked) / 2;
        let ahead = reply.database_time.map(|time| time.duration_since(middle));
        Ok(ahead.unwrap_or(SignedDuration::ZERO))
    }
}

/// Knows by a steady clock, without asking anybody, whether other nodes must still respect the leases of this one. Clones share it.
#[derive(Debug, Clone)]
pub struct LeaseWatch {
    clock: Clock,
    /// `None` where leases do not end by time: no other node can take anything over while this process lives.
    held: Option<Arc<Mutex<HeldTime>>>,
}

impl LeaseWatch {
    pub fn new(end: LeaseEnd, clock: Clock, lease: SignedDuration) -> Self {
        let held = match end {
            LeaseEnd::Time => Some(Arc::new(Mutex::new(HeldTime::new(lease.unsigned_abs())))),
            LeaseEnd::Process => None,
        };
        Self { clock, held }
    }

    /// To be taken before a heartbeat is begun.
    pub fn now(&self) -> Duration {
        self.clock.steady()
    }

    /// A heartbeat that was begun then has been written.
    pub fn renewed(&self, begun: Duration) {
        if let Some(held) = &self.held {
            lock(held).renewed(begun, self.clock.steady());
        }
    }

    /// The leases as they hold now, if they do.
    pub fn current(&self) -> Option<HeldLease> {
        let stretch = match &self.held {
            Some(held) => lock(held).current(self.clock.steady())?,
            None => 0,
        };
        Some(HeldLease {
            watch: self.clone(),
            stretch,
        })
    }
}

/// Leases that held when this was made.
#[derive(Debug, Clone)]
pub struct HeldLease {
    watch: LeaseWatch,
    stretch: u64,
}

impl HeldLease {
    /// True as long as they have held without a gap: after a gap, however short, another node may have taken over what was held before.
    pub fn holds(&self) -> bool {
        let Some(held) = &self.watch.held else {
            return true;
        };
        lock(held).current(self.watch.clock.steady()) == Some(self.stretch)
    }
}

/// Until when leases hold, by the steady clock.
#[derive(Debug)]
struct HeldTime {
    lease: Duration,
    until: Duration,
    /// Counts the times for which they have held without a gap.
    stretch: u64,
}

impl HeldTime {
    fn new(lease: Duration) -> Self {
        Self {
            lease,
            until: Duration::ZERO,
            stretch: 0,
        }
    }

    /// The database counts a lease from a moment after the heartbeat was begun. The margin, a fifth of it, is for what leaves in the last
    /// moment, and for clocks that do not go at the same speed.
    fn renewed(&mut self, begun: Duration, now: Duration) {
        if now >= self.until {
            self.stretch += 1;
        }
        self.until = self.until.max(begun + self.lease * 4 / 5);
    }

    fn current(&self, now: Duration) -> Option<u64> {
        (now < self.until).then_some(self.stretch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn held() -> HeldTime {
        HeldTime::new(seconds(15))
    }

    #[test]
    fn a_lease_holds_from_the_beginning_of_its_heartbeat_and_with_a_margin() {
        let mut held = held();
        assert_eq!(held.current(seconds(100)), None, "no heartbeat yet");
        held.renewed(seconds(100), seconds(103));
        assert!(held.current(seconds(111)).is_some());
        assert_eq!(held.current(seconds(112)), None);
    }

    #[test]
    fn heartbeats_in_time_make_one_stretch() {
        let mut held = held();
        held.renewed(seconds(100), seconds(100));
        let first = held.current(seconds(100));
        for begun in [103, 106, 117] {
            held.renewed(seconds(begun), seconds(begun));
            assert_eq!(held.current(seconds(begun)), first, "{begun}");
        }
    }

    #[test]
    fn a_heartbeat_after_a_gap_does_not_bring_back_what_was_held_before() {
        let mut held = held();
        held.renewed(seconds(100), seconds(100));
        let before = held.current(seconds(100));
        // The process has stood still, and its first heartbeat is quicker than whatever else goes on.
        held.renewed(seconds(130), seconds(130));
        let after = held.current(seconds(130));
        assert!(after.is_some() && after != before);
    }

    #[test]
    fn a_heartbeat_that_was_on_its_way_during_the_gap_does_not_hide_it() {
        let mut held = held();
        held.renewed(seconds(100), seconds(100));
        let before = held.current(seconds(100));
        held.renewed(seconds(110), seconds(116));
        let after = held.current(seconds(116));
        assert!(after.is_some() && after != before);
    }
}
