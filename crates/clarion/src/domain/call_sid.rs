//! The id of a call: unique, and in the order of time.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::tz::Offset;
use jiff::{Timestamp, Zoned};

use super::account::ID_LENGTH;

/// `yyMMddHHmmss` in the platform's zone and twenty hex digits: five for the microseconds, fifteen random. These 32 characters sort by
/// time, down to the microsecond. So calls that are accepted together lie together in every index, and a batch dirties a page or two
/// instead of one per call. It is also the id of the bill record (`orderid`) of a call's first
/// attempt, so the primary key of the bill lines alone prevents billing it twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallSid(String);

impl CallSid {
    pub fn new(now: &Zoned, random: [u8; 8]) -> Self {
        Self::stamped(wall_micros(now), random)
    }

    /// Not greater than any that is made at this moment or later.
    pub fn first_at(moment: &Zoned) -> Self {
        Self::new(moment, [0; 8])
    }

    fn stamped(wall_micros: i64, random: [u8; 8]) -> Self {
        let wall = Timestamp::from_microsecond(wall_micros).unwrap_or(Timestamp::MAX);
        let wall = Offset::UTC.to_datetime(wall);
        let micros = wall.subsec_nanosecond() / 1000;
        let random = u64::from_be_bytes(random) >> 4;
        Self(format!(
            "{}{micros:05x}{random:015x}",
            wall.strftime("%y%m%d%H%M%S")
        ))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the local time in microseconds since local 1970.
fn wall_micros(now: &Zoned) -> i64 {
    now.timestamp().as_microsecond() + i64::from(now.offset().seconds()) * 1_000_000
}

/// Makes the callSids of one process. Each is greater than the one before, even within one microsecond, and even while the local time
/// repeats an hour or the clock has been set back: the stamp then advances by microseconds until the clock has caught up.
#[derive(Debug, Default)]
pub struct CallSids {
    last_micros: AtomicI64,
}

impl CallSids {
    pub fn create(&self, now: &Zoned, random: [u8; 8]) -> CallSid {
        let wall = wall_micros(now);
        let after = |last: i64| wall.max(last + 1);
        let last = self
            .last_micros
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                Some(after(last))
            })
            .unwrap_or_else(|last| last);
        CallSid::stamped(after(last), random)
    }
}

impl FromStr for CallSid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() == ID_LENGTH && text.bytes().all(|b| b.is_ascii_alphanumeric()) {
            Ok(Self(text.to_owned()))
        } else {
            Err("a callSid is 32 letters or digits".to_owned())
        }
    }
}

impl fmt::Display for CallSid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_sid_has_32_characters_and_sorts_by_time() {
        let sid = |text: &str, random| CallSid::new(&text.parse().unwrap(), random);
        let first = sid("2026-11-15T02:35:09.999999+08:00[Asia/Shanghai]", [0xff; 8]);
        let second = sid("2026-11-15T02:35:10+08:00[Asia/Shanghai]", [0xff; 8]);
        let third = sid("2026-11-15T02:35:10.000001+08:00[Asia/Shanghai]", [0; 8]);
        assert_eq!(first.as_str(), "261115023509f423ffffffffffffffff");
        assert_eq!(third.as_str(), "26111502351000001000000000000000");
        assert!(first < second && second < third && first.as_str().parse() == Ok(first.clone()));
    }

    #[test]
    fn the_call_sids_of_a_process_ascend_whatever_the_clock_does() {
        let sids = CallSids::default();
        let mut made = Vec::new();
        for (now, random) in [
            ("2028-10-29T02:59:59.999999+02:00[Europe/Berlin]", 0xff),
            // The same microsecond, and the hour that this zone has twice.
            ("2028-10-29T02:59:59.999999+02:00[Europe/Berlin]", 0),
            ("2028-10-29T02:00:00+01:00[Europe/Berlin]", 0),
            ("2028-10-29T02:30:00+01:00[Europe/Berlin]", 0xff),
            // The stamp is the local time again after the clock has passed these.
            ("2028-10-29T03:00:00.5+01:00[Europe/Berlin]", 0),
        ] {
            made.push(sids.create(&now.parse().unwrap(), [random; 8]));
        }
        assert!(made.is_sorted_by(|a, b| a < b), "{made:?}");
        assert_eq!(made[0].as_str(), "281029025959f423ffffffffffffffff");
        assert_eq!(made[3].as_str(), "28102903000000002fffffffffffffff");
        assert_eq!(made[4].as_str(), "2810290300007a120000000000000000");
    }

    #[test]
    fn threads_never_get_the_same_stamp() {
        let (sids, now) = (CallSids::default(), Timestamp::UNIX_EPOCH);
        let now = now.to_zoned(jiff::tz::TimeZone::UTC);
        let make = || (0..1000).map(|_| sids.create(&now, [7; 8]));
        let made = std::thread::scope(|threads| {
            let makers = [(); 4].map(|()| threads.spawn(|| make().collect::<Vec<_>>()));
            makers.map(|maker| maker.join().unwrap())
        });
        assert!(made.iter().all(|one| one.is_sorted()));
        let all: std::collections::HashSet<_> = made.iter().flatten().collect();
        assert_eq!(all.len(), 4000);
    }
}
