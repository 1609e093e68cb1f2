//! The only place that asks the machine what time it is. Everything else gets a `Clock`, or a time, as an argument.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use rustix::time::{ClockId, clock_gettime};

/// The platform's time, in the platform's zone. A test or a demonstration may shift it; clones shift together.
#[derive(Debug, Clone)]
pub struct Clock {
    zone: TimeZone,
    shift_millis: Arc<AtomicI64>,
    /// As if the machine's own clock were wrong.
    skew_millis: Arc<AtomicI64>,
    source: ClockSource,
}

#[derive(Debug, Clone, Copy)]
enum ClockSource {
    Machine,
    /// The runtime's, which a simulation moves: it showed this time at this moment.
    Runtime(Timestamp, tokio::time::Instant),
}

impl Clock {
    pub fn new(zone: TimeZone) -> Self {
        Self {
            zone,
            shift_millis: Arc::default(),
            skew_millis: Arc::default(),
            source: ClockSource::Machine,
        }
    }

    /// For simulations: it shows this time now, and goes on by the runtime's clock.
    pub fn of_runtime(zone: TimeZone, now: Timestamp) -> Self {
        Self {
            source: ClockSource::Runtime(now, tokio::time::Instant::now()),
            ..Self::new(zone)
        }
    }

    pub fn now(&self) -> Timestamp {
        later(self.machine(), &self.shift_millis)
    }

    /// What the machine's clock says, without the shift of a demonstration: for comparing it with other clocks.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the machine's clock"
    )]
    pub fn machine(&self) -> Timestamp {
        let now = match self.source {
            ClockSource::Machine => Timestamp::now(),
            ClockSource::Runtime(began, moment) => began + moment.elapsed(),
        };
        later(now, &self.skew_millis)
    }

    /// For tests: the machine's clock is wrong.
    pub fn skew(&self, by: SignedDuration) {
        add(&self.skew_millis, by);
    }

    /// Now, as people in the platform's zone read it from the wall.
    pub fn wall(&self) -> Zoned {
        self.now().to_zoned(self.zone.clone())
    }

    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The time since the machine was started.
    pub fn steady(&self) -> Duration {
        match self.source {
            ClockSource::Machine => since_boot(),
            ClockSource::Runtime(_, moment) => moment.elapsed(),
        }
    }

    /// What both clocks say now, for telling when moments were that somebody else has measured.
    pub fn reading(&self) -> ClockReading {
        ClockReading {
            moment: tokio::time::Instant::now().into_std(),
            time: self.now(),
        }
    }

    pub fn shift(&self, by: SignedDuration) {
        add(&self.shift_millis, by);
    }
}

/// A clock that goes further than this between two looks was set.
const JUMP: SignedDuration = SignedDuration::from_mins(1);
/// So long a clock that was set is not believed where something would be lost for good: an operator who has mistyped a date has time to see it.
const DISTRUST: Duration = Duration::from_secs(3600);

/// Tells whether the machine's clock was set lately, by another one that cannot be set.
#[derive(Debug)]
pub struct JumpWatch {
    clock: Clock,
    /// How far the clock was ahead of the time since the start of the machine at the last look.
    ahead: SignedDuration,
    jumped_at: Option<Duration>,
}

impl JumpWatch {
    pub fn new(clock: Clock) -> Self {
        Self {
            ahead: ahead(&clock),
            clock,
            jumped_at: None,
        }
    }

    /// Whether the clock may be believed. To be asked every few seconds: what it does meanwhile is one step.
    pub fn believes(&mut self) -> bool {
        let (steady, ahead) = (self.clock.steady(), ahead(&self.clock));
        if (ahead - self.ahead).abs() > JUMP {
            self.jumped_at = Some(steady);
        }
        self.ahead = ahead;
        let since = self.jumped_at.map(|at| steady.saturating_sub(at));
        since.is_none_or(|since| since >= DISTRUST)
    }
}

fn ahead(clock: &Clock) -> SignedDuration {
    let steady = SignedDuration::try_from(clock.steady()).unwrap_or(SignedDuration::MAX);
    clock.machine().duration_since(Timestamp::UNIX_EPOCH) - steady
}

fn add(millis: &AtomicI64, by: SignedDuration) {
    let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
    millis.fetch_add(by, Ordering::Relaxed);
}

fn later(time: Timestamp, millis: &AtomicI64) -> Timestamp {
    let by = SignedDuration::from_millis(millis.load(Ordering::Relaxed));
    time.saturating_add(by)
        .expect("a duration without calendar units")
}

/// What the machine's clock shows, in milliseconds. Nobody shifts it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the machine's clock"
)]
pub fn wall_millis() -> i64 {
    Timestamp::now().as_millisecond()
}

/// The time since the machine was started. Nobody can set it, no test shifts it, and it counts the time for which the machine is suspended or
/// the process stopped.
pub fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::try_from(time).expect("the machine was started before now")
}

/// Tells one boot of the machine from another. Empty where the machine has no name for it.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

/// One look at both clocks: moments that are told by it keep their distances.
#[derive(Debug, Clone, Copy)]
pub struct ClockReading {
    moment: Instant,
    time: Timestamp,
}

impl ClockReading {
    /// The time of a moment that has passed.
    pub fn time_of(&self, moment: Instant) -> Timestamp {
        let ago = self.moment.saturating_duration_since(moment);
        let ago = SignedDuration::try_from(ago).unwrap_or(SignedDuration::MAX);
        self.time
            .saturating_sub(ago)
            .expect("a duration without calendar units")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_set_is_not_believed_for_an_hour() {
        let clock = Clock::of_runtime(TimeZone::UTC, Timestamp::UNIX_EPOCH);
        let mut watch = JumpWatch::new(clock.clone());
        let mut after = async |time| {
            tokio::time::advance(time).await;
            watch.believes()
        };
        let minute = Duration::from_secs(60);
        assert!(after(minute * 600).await, "time passes");
        clock.skew(SignedDuration::from_secs(59));
        assert!(after(minute).await, "it was set right by a little");
        for hours in [72, -72] {
            clock.skew(SignedDuration::from_hours(hours));
            assert!(!after(Duration::ZERO).await);
            assert!(!after(minute * 59).await);
            assert!(after(minute).await, "{hours}");
        }
    }
}
