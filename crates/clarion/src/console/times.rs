//! Times as operators read them: how long ago, with the exact one at hand, in the platform's zone.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::words::{Words, fill};
use crate::clock::Clock;

/// A moment on a page.
#[derive(Debug, Clone)]
pub struct Moment {
    /// For the browser.
    pub iso: String,
    /// On the wall.
    pub exact: String,
    /// In the past, in words and in seconds.
    pub ago: String,
    pub age: i64,
}

impl Moment {
    pub fn new(time: Timestamp, clock: &Clock, words: &Words) -> Self {
        let past = clock.now().duration_since(time);
        Self {
            iso: time.to_string(),
            exact: exact(time, clock),
            ago: ago(past, words),
            age: past.as_secs(),
        }
    }
}

pub fn exact(time: Timestamp, clock: &Clock) -> String {
    let local = time.to_zoned(clock.zone().clone());
    local.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The day on the wall.
pub fn day(time: Timestamp, clock: &Clock) -> Date {
    time.to_zoned(clock.zone().clone()).date()
}

/// The time of the day, to the millisecond.
pub fn of_day(time: Timestamp, clock: &Clock) -> String {
    let local = time.to_zoned(clock.zone().clone());
    local.strftime("%H:%M:%S%.3f").to_string()
}

fn ago(past: SignedDuration, words: &Words) -> String {
    if past < SignedDuration::from_secs(-2) {
        return words.soon.to_owned();
    }
    in_units(
        past,
        [
            words.seconds_ago,
            words.minutes_ago,
            words.hours_ago,
            words.days_ago,
        ],
    )
}

/// How long something lasts, in the largest unit that says it well.
pub fn lasting(time: SignedDuration, words: &Words) -> String {
    in_units(
        time,
        [words.seconds, words.minutes, words.hours, words.days],
    )
}

/// The script of the pages says the same (`console.js`).
fn in_units(time: SignedDuration, [seconds, minutes, hours, days]: [&str; 4]) -> String {
    let all = time.as_secs().max(0);
    let (text, number) = match all {
        0..120 => (seconds, all),
        120..7200 => (minutes, all / 60),
        7200..172_800 => (hours, all / 3600),
        _ => (days, all / 86_400),
    };
    fill(text, &[("n", &number.to_string())])
}

/// Which zone the pages are in, in a sentence.
pub fn zone(clock: &Clock, words: &Words) -> String {
    let zone: &TimeZone = clock.zone();
    let offset = clock.wall().strftime("%:z").to_string();
    let name = zone.iana_name().unwrap_or("UTC");
    fill(words.zone, &[("zone", name), ("offset", &offset)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::words::{CHINESE, ENGLISH};

    #[test]
    fn a_time_is_told_in_the_unit_that_fits() {
        let told = |seconds: i64| ago(SignedDuration::from_secs(seconds), &ENGLISH);
        for (seconds, wanted) in [
            (-1, "0 s ago"),
            (-3, "in a moment"),
            (0, "0 s ago"),
            (119, "119 s ago"),
            (120, "2 min ago"),
            (7199, "119 min ago"),
            (7200, "2 h ago"),
            (172_800, "2 d ago"),
        ] {
            assert_eq!(told(seconds), wanted);
        }
        let hour = SignedDuration::from_hours(3);
        assert_eq!(lasting(hour, &CHINESE), "3 小时");
    }
}
