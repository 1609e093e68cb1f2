//! What was refused before anybody worked at it: counted, and told in the log now and then, because a flood would fill it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Each kind of refusal is told at most once in this time.
const TOLD_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SipRefusal {
    /// A datagram of a stranger about no call of ours.
    Datagram,
    /// A connection of a stranger.
    Connection,
    /// A connection of a peer that has too many, or that has said nothing.
    ExcessConnection,
    /// A message of ours that would have led to this machine or its network segment. It went to the trunk instead, or nowhere.
    Target,
}

impl SipRefusal {
    pub const ALL: [Self; 4] = [
        Self::Datagram,
        Self::Connection,
        Self::ExcessConnection,
        Self::Target,
    ];

    /// The name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Datagram => "datagram",
            Self::Connection => "connection",
            Self::ExcessConnection => "excess_connection",
            Self::Target => "target",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Datagram => "a SIP packet of a stranger is dropped",
            Self::Connection => "a stranger gets no SIP connection",
            Self::ExcessConnection => {
                "a peer has too many SIP connections, or one on which it says nothing: one is closed"
            }
            Self::Target => {
                "a SIP message would lead to this machine or its own network, where the trunk is not"
            }
        }
    }
}

/// How often something was refused, of all endpoints that share it.
#[derive(Debug, Default)]
pub struct RefusalCounts([RefusalCount; SipRefusal::ALL.len()]);

#[derive(Debug, Default)]
struct RefusalCount {
    total: AtomicU64,
    told: Mutex<Option<Instant>>,
}

impl RefusalCounts {
    pub fn get(&self, refusal: SipRefusal) -> u64 {
        self.0[refusal as usize].total.load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, refusal: SipRefusal, peer: impl fmt::Display) {
        let count = &self.0[refusal as usize];
        let so_far = count.total.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_to_be_told(Instant::now()) {
            tracing::warn!(%peer, so_far, "{}", refusal.sentence());
        }
    }
}

impl RefusalCount {
    fn is_to_be_told(&self, now: Instant) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let due = told.is_none_or(|told| now.saturating_duration_since(told) >= TOLD_EVERY);
        if due {
            *told = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_told_once_a_minute() {
        let (counts, now) = (RefusalCounts::default(), Instant::now());
        for _ in 0..1000 {
            counts.count(SipRefusal::Datagram, "192.0.2.1:5060");
        }
        assert_eq!(
            SipRefusal::ALL.map(|refusal| counts.get(refusal)),
            [1000, 0, 0, 0]
        );
        let told = |at| counts.0[0].is_to_be_told(at);
        assert!(!told(now + TOLD_EVERY / 2));
        assert!(told(now + TOLD_EVERY * 2));
        assert!(!told(now + TOLD_EVERY * 2));
    }
}
