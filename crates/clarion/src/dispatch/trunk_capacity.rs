//! What this node may use of a trunk: so many channels, and starts that keep an even distance, so that no second has more of them than was
//! granted, but for one.

use std::time::Duration;

use tokio::time::Instant;

use super::node::HeldLease;
use crate::domain::trunk_grants::{GrantRequest, TrunkCapacity, TrunkGrant};

/// Calls may be claimed for starts that are no further away than this.
const AHEAD: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct GrantedCapacity {
    whole: TrunkCapacity,
    grant: TrunkGrant,
    /// The grant is worth nothing after a gap in the leases: others may have been granted the same since.
    lease: Option<HeldLease>,
    /// Channels that are given out, and how many of them have not been dialled on yet.
    in_use: u32,
    waiting: u32,
    next_start: Instant,
    /// Calls were due that found nothing left.
    wants_more: bool,
    questions: i64,
    /// The last question has not been answered: it may have arrived, and may still arrive.
    is_in_doubt: bool,
}

impl GrantedCapacity {
    /// Nothing is granted yet.
    pub fn new(whole: TrunkCapacity, now: Instant) -> Self {
        Self {
            whole,
            grant: TrunkGrant {
                channels: 0,
                rate: 0,
                keep: 0,
            },
            lease: None,
            in_use: 0,
            waiting: 0,
            next_start: now,
            wants_more: false,
            questions: 0,
            is_in_doubt: false,
        }
    }

    /// What is asked for next, and nothing is wanted until calls find nothing left again. What others want is given back first: no call
    /// takes it while the question is on its way.
    pub fn request(&mut self, trunk: &str) -> GrantRequest {
        self.grant.channels = self.grant.given_back(self.in_use);
        self.questions += 1;
        GrantRequest {
            trunk: trunk.to_owned(),
            question: self.questions,
            is_after_doubt: std::mem::replace(&mut self.is_in_doubt, true),
            whole: self.whole,
            in_use: self.in_use,
            keeps: if self.is_granted() {
                self.grant.channels
            } else {
                0
            },
            wants_more: std::mem::take(&mut self.wants_more),
        }
    }

    /// The lease held when the grant was asked for.
    pub fn grant(&mut self, grant: TrunkGrant, lease: HeldLease) {
        (self.grant, self.lease) = (grant, Some(lease));
        self.is_in_doubt = false;
    }

    pub fn grant_whole(&mut self, lease: HeldLease) {
        self.grant(TrunkGrant::whole(self.whole), lease);
    }

    fn is_granted(&self) -> bool {
        self.lease.as_ref().is_some_and(HeldLease::holds)
    }

    /// Calls are due, and nothing is left for them. Whether more could be granted than is.
    pub fn want_more(&mut self) -> bool {
        let all = TrunkGrant::whole(self.whole);
        let has_all = self.grant.channels >= all.channels && self.grant.rate >= all.rate;
        self.wants_more |= !has_all;
        !has_all || !self.is_granted()
    }

    /// How many more calls may take a channel now.
    pub fn left(&self, now: Instant) -> u32 {
        let channels = self.grant.channels.saturating_sub(self.in_use);
        let Some(distance) = self.distance() else {
            return 0;
        };
        if !self.is_granted() {
            return 0;
        }
        let ahead = (now + AHEAD).saturating_duration_since(self.next_start.max(now));
        let starts = if ahead.is_zero() {
            0
        } else {
            ahead.as_nanos() / distance.as_nanos().max(1) + 1
        };
        let starts = u32::try_from(starts).unwrap_or(u32::MAX);
        channels.min(starts.saturating_sub(self.waiting))
    }

    pub fn take(&mut self, now: Instant) -> bool {
        let is_left = self.left(now) > 0;
        if is_left {
            self.in_use += 1;
            self.waiting += 1;
        }
        is_left
    }

    /// The moment at which a call that has a channel may be dialled, where that is not now.
    pub fn start(&mut self, now: Instant) -> Option<Instant> {
        self.waiting = self.waiting.saturating_sub(1);
        let start = self.next_start.max(now);
        self.next_start = start + self.distance().unwrap_or_default();
        (start > now).then_some(start)
    }

    /// A channel is free again. True if it is one that others wait for: it is given back.
    pub fn give_back(&mut self, was_started: bool) -> bool {
        self.in_use = self.in_use.saturating_sub(1);
        self.waiting = self.waiting.saturating_sub(u32::from(!was_started));
        let is_beyond = self.grant.channels > self.grant.keep;
        self.grant.channels = self.grant.given_back(self.in_use);
        is_beyond
    }

    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    /// When the next call may start, where a channel is free and only the distance to the last start keeps it.
    pub fn next_start(&self, now: Instant) -> Option<Duration> {
        let is_free = self.is_granted() && self.grant.channels > self.in_use && self.grant.rate > 0;
        let wait = self.next_start.saturating_duration_since(now + AHEAD);
        is_free.then_some(wait)
    }

    /// From one start to the next; none where nothing may start.
    fn distance(&self) -> Option<Duration> {
        let rate = u64::try_from(self.grant.rate)
            .ok()
            .filter(|rate| *rate > 0)?;
        // Thousandths of a start a second.
        Some(Duration::from_nanos(1_000_000_000_000 / rate))
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use jiff::{SignedDuration, Timestamp};

    use super::super::node::LeaseWatch;
    use super::*;
    use crate::clock::Clock;
    use crate::domain::claim::LeaseEnd;

    fn capacity(channels: u32, per_second: u32, now: Instant) -> GrantedCapacity {
        let whole = TrunkCapacity {
            channels,
            per_second,
        };
        let mut capacity = GrantedCapacity::new(whole, now);
        assert_eq!(capacity.left(now), 0, "nothing is granted yet");
        capacity.grant_whole(held(&LeaseWatch::new(
            LeaseEnd::Process,
            Clock::new(TimeZone::UTC),
            SignedDuration::ZERO,
        )));
        capacity
    }

    fn held(watch: &LeaseWatch) -> HeldLease {
        watch.current().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_grant_is_worth_nothing_after_a_gap_in_the_leases() {
        let clock = Clock::of_runtime(TimeZone::UTC, Timestamp::UNIX_EPOCH);
        let watch = LeaseWatch::new(LeaseEnd::Time, clock, SignedDuration::from_secs(5));
        let mut capacity = capacity(3, 10, Instant::now());
        watch.renewed(watch.now());
        capacity.grant_whole(held(&watch));
        assert!(capacity.left(Instant::now()) > 0 && !capacity.want_more());
        // The process stands still, and its heartbeat goes on before it has asked for its part again.
        tokio::time::advance(Duration::from_secs(10)).await;
        watch.renewed(watch.now());
        assert_eq!(capacity.left(Instant::now()), 0);
        assert!(!capacity.take(Instant::now()) && capacity.next_start(Instant::now()).is_none());
        assert!(capacity.want_more(), "it asks at once");
        capacity.grant_whole(held(&watch));
        assert!(capacity.left(Instant::now()) > 0);
    }

    #[test]
    fn channels_are_bounded_and_starts_keep_their_distance() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut capacity = capacity(3, 10, start);
        assert_eq!(
            capacity.left(start),
            2,
            "one now, and one in a tenth of a second"
        );
        assert!(capacity.take(start) && capacity.take(start) && !capacity.take(start));
        assert_eq!(capacity.start(start), None, "at once");
        assert_eq!(capacity.start(start), Some(at(100)));
        assert_eq!(capacity.left(at(50)), 0);
        assert!(capacity.take(at(150)), "the third of three");
        assert!(!capacity.take(at(900)), "all channels are in use");
        assert!(!capacity.give_back(true));
        assert_eq!((capacity.in_use(), capacity.left(at(900))), (2, 1));
        assert_eq!(capacity.start(at(900)), None, "a pause is not made up for");
    }

    #[test]
    fn no_second_has_more_starts_than_the_rate_but_for_one() {
        let begin = Instant::now();
        let mut capacity = capacity(1000, 7, begin);
        let mut starts = Vec::new();
        for millis in 0..5000 {
            let now = begin + Duration::from_millis(millis);
            if capacity.take(now) {
                starts.push(capacity.start(now).unwrap_or(now));
            }
        }
        for first in &starts {
            let until = *first + Duration::from_secs(1);
            let within = starts.iter().filter(|at| *at >= first && **at < until);
            assert!(within.count() <= 8);
        }
        assert!(starts.len() >= 34, "{}", starts.len());
    }

    #[test]
    fn a_channel_that_others_wait_for_is_given_back_when_its_call_ends() {
        let now = Instant::now();
        let mut capacity = capacity(4, 100, now);
        assert!(!capacity.want_more(), "it has the whole trunk");
        (0..4).for_each(|_| assert!(capacity.take(now)));
        let contested = TrunkGrant {
            channels: 4,
            rate: 50_000,
            keep: 2,
        };
        let lease = capacity.lease.clone().unwrap();
        capacity.grant(contested, lease);
        assert!(capacity.give_back(true));
        assert_eq!(capacity.left(now), 0, "three run, and three is what it has");
        assert!(capacity.give_back(true) && !capacity.give_back(true));
        assert_eq!(capacity.left(now), 1);
        assert!(capacity.want_more());
        assert!(capacity.request("t").wants_more && !capacity.request("t").wants_more);
    }
}
