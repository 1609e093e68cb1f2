//! The only place that asks the machine what time it is. Everything else gets a `Clock`, or a time, as an argument.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

/// The platform's time, in the platform's zone. A test or a demonstration may shift it; clones shift together.
#[derive(Debug, Clone)]
pub struct Clock {
    zone: TimeZone,
    shift_millis: Arc<AtomicI64>,
}

impl Clock {
    pub fn new(zone: TimeZone) -> Self {
        Self {
            zone,
            shift_millis: Arc::default(),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the machine's clock"
    )]
    pub fn now(&self) -> Timestamp {
        let shift = SignedDuration::from_millis(self.shift_millis.load(Ordering::Relaxed));
        Timestamp::now()
            .saturating_add(shift)
            .expect("a duration without calendar units")
    }

    /// Now, as people in the platform's zone read it from the wall.
    pub fn wall(&self) -> Zoned {
        self.now().to_zoned(self.zone.clone())
    }

    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    pub fn shift(&self, by: SignedDuration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.shift_millis.fetch_add(millis, Ordering::Relaxed);
    }
}

/// What the machine's clock shows, in milliseconds. Nobody shifts it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the machine's clock"
)]
pub fn wall_millis() -> i64 {
    Timestamp::now().as_millisecond()
}

/// The time since the machine was booted. Nobody sets it, and it goes on while the machine sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SinceBoot(Duration);

impl SinceBoot {
    pub fn now() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Self(Duration::new(
            time.tv_sec.try_into().unwrap_or_default(),
            time.tv_nsec.try_into().unwrap_or_default(),
        ))
    }

    pub fn time(self) -> Duration {
        self.0
    }

    pub fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

/// Tells one boot of the machine from another. Empty where the machine has no name for it.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}
