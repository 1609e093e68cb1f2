//! Days and hours in which something may be called, such as `1-5 0800-2100;6-7 1000-1800`.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use serde::{Deserialize, Serialize};

use super::wording::{Wording, wording};

/// The most spans that one window has.
const LIMIT: usize = 20;
const DAY_MINUTES: i16 = 24 * 60;

/// It is read in the platform's zone. Local times that a clock change skips move forward, and of doubled ones the first is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallWindow(Vec<OpenSpan>);

/// From one time of the wall to another, on some days of the week. It belongs to the day on which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenSpan {
    /// Monday first.
    days: [bool; 7],
    /// In minutes after midnight; the end may lie on the next day.
    begins: i16,
    ends: i16,
}

impl CallWindow {
    pub fn is_open(&self, now: &Zoned) -> bool {
        self.0.iter().any(|span| span.is_open(now))
    }

    /// From when until when it is open, of what begins on a day.
    pub fn open_from(
        &self,
        day: Date,
        zone: &TimeZone,
    ) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let spans = self.0.iter().filter(move |span| span.is_of(day.weekday()));
        spans.filter_map(move |span| at(day, span.begins, zone).zip(at(day, span.ends, zone)))
    }
}

impl OpenSpan {
    fn is_open(&self, now: &Zoned) -> bool {
        let (today, zone) = (now.date(), now.time_zone());
        let days = [Some(today), today.yesterday().ok()];
        days.into_iter().flatten().any(|day| {
            let moment = now.timestamp();
            self.is_of(day.weekday())
                && at(day, self.begins, zone).is_some_and(|begins| begins <= moment)
                && at(day, self.ends, zone).is_some_and(|ends| moment < ends)
        })
    }

    fn is_of(&self, day: Weekday) -> bool {
        let place = usize::try_from(day.to_monday_zero_offset());
        place.is_ok_and(|place| self.days[place])
    }
}

/// So many minutes of the wall after the midnight of a day.
fn at(day: Date, minutes: i16, zone: &TimeZone) -> Option<Timestamp> {
    let wall = day.at(0, 0, 0, 0).checked_add(i64::from(minutes).minutes());
    let zoned = wall.ok()?.to_zoned(zone.clone());
    Some(zoned.ok()?.timestamp())
}

impl FromStr for CallWindow {
    type Err = Wording;

    fn from_str(text: &str) -> Result<Self, Wording> {
        let spans: Vec<_> = text.split(';').map(span).collect::<Option<_>>().ok_or_else(|| {
            wording!(
                "`{text}` is no window such as 0800-2000 or 1-5 0800-2100;6-7 1000-1800 (1 is Monday)",
                "`{text}` 不是时段，写法如 0800-2000 或 1-5 0800-2100;6-7 1000-1800（1 为星期一）"
            )
        })?;
        if spans.len() > LIMIT {
            return Err(wording!(
                "a window has at most {LIMIT} spans",
                "最多 {LIMIT} 个时段"
            ));
        }
        Ok(Self(spans))
    }
}

impl TryFrom<String> for CallWindow {
    type Error = Wording;

    fn try_from(text: String) -> Result<Self, Wording> {
        text.parse()
    }
}

impl From<CallWindow> for String {
    fn from(window: CallWindow) -> Self {
        window.to_string()
    }
}

impl fmt::Display for CallWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, span) in self.0.iter().enumerate() {
            let days: Vec<_> = (1..=7)
                .zip(span.days)
                .filter(|(_, is_open)| *is_open)
                .map(|(day, _)| day.to_string())
                .collect();
            let separator = if place > 0 { ";" } else { "" };
            let clock = |minutes: i16| format!("{:02}{:02}", minutes / 60, minutes % 60);
            let ends = if span.ends > DAY_MINUTES {
                span.ends - DAY_MINUTES
            } else {
                span.ends
            };
            let (begins, ends) = (clock(span.begins), clock(ends));
            write!(f, "{separator}{} {begins}-{ends}", days.join(","))?;
        }
        Ok(())
    }
}

/// `1-5 0800-2100`, or the hours alone for every day.
fn span(text: &str) -> Option<OpenSpan> {
    let mut words = text.split_ascii_whitespace();
    let (first, second) = (words.next()?, words.next());
    let hours = second.unwrap_or(first);
    if words.next().is_some() {
        return None;
    }
    let days = match second {
        Some(_) => days(first)?,
        None => [true; 7],
    };
    let (begins, ends) = hours.split_once('-')?;
    let (begins, ends) = (minutes(begins)?, minutes(ends)?);
    if begins == ends || begins == DAY_MINUTES {
        return None;
    }
    let next_day = if ends < begins { DAY_MINUTES } else { 0 };
    Some(OpenSpan {
        days,
        begins,
        ends: ends + next_day,
    })
}

/// `1-5`, `6`, or several of them with commas.
fn days(text: &str) -> Option<[bool; 7]> {
    let mut days = [false; 7];
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (day(first)?, day(last)?);
        if first > last {
            return None;
        }
        days[first..=last].fill(true);
    }
    Some(days)
}

fn day(text: &str) -> Option<usize> {
    let day: usize = text.parse().ok().filter(|_| text.len() == 1)?;
    (1..=7).contains(&day).then(|| day - 1)
}

/// `0830`; `2400` is the end of the day.
fn minutes(text: &str) -> Option<i16> {
    if text.len() != 4 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (i16, i16) = (text[..2].parse().ok()?, text[2..].parse().ok()?);
    let all = hours * 60 + minutes;
    (minutes < 60 && all <= DAY_MINUTES).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(window: &str, moment: &str) -> bool {
        let window: CallWindow = window.parse().unwrap();
        window.is_open(&moment.parse().unwrap())
    }

    #[test]
    fn windows_open_and_close_by_the_wall() {
        // The 16th of November 2026 is a Monday.
        for (window, moment, expected) in [
            ("0800-2000", "2026-11-16T07:59:59[Asia/Shanghai]", false),
            ("0800-2000", "2026-11-16T08:00[Asia/Shanghai]", true),
            ("0800-2000", "2026-11-16T20:00[Asia/Shanghai]", false),
            (
                "1-5 0800-2100;6-7 1000-1800",
                "2026-11-14T09:00[UTC]",
                false,
            ),
            ("1-5 0800-2100;6-7 1000-1800", "2026-11-14T10:00[UTC]", true),
            ("1-5 0800-2100;6-7 1000-1800", "2026-11-16T20:59[UTC]", true),
            ("0000-2400", "2026-11-16T23:59:59[UTC]", true),
            ("1,3 0000-2400", "2026-11-17T12:00[UTC]", false),
            // What begins on Sunday lasts until Monday morning, and nothing begins on Monday.
            ("7 2200-0600", "2026-11-16T05:59[UTC]", true),
            ("7 2200-0600", "2026-11-16T22:30[UTC]", false),
            ("7 2200-0600", "2026-11-15T05:00[UTC]", false),
        ] {
            assert_eq!(open(window, moment), expected, "{window} at {moment}");
        }
    }

    #[test]
    fn clock_changes_move_what_they_skip() {
        let open_at = |window: &str, zone: &str, utc: &str| {
            let moment: Timestamp = utc.parse().unwrap();
            let window: CallWindow = window.parse().unwrap();
            window.is_open(&moment.to_zoned(TimeZone::get(zone).unwrap()))
        };
        // In New York the clock goes from 02:00 to 03:00: half past two does not exist, and is half past three then.
        let new_york = |utc| open_at("0230-0400", "America/New_York", utc);
        assert!(!new_york("2027-03-14T07:29:00Z"));
        assert!(new_york("2027-03-14T07:30:00Z"));
        assert!(!new_york("2027-03-14T08:00:00Z"));
        // In Berlin half past two comes twice; the first one is meant.
        let berlin = |utc| open_at("0230-0300", "Europe/Berlin", utc);
        assert!(!berlin("2027-10-31T00:29:00Z"));
        assert!(berlin("2027-10-31T00:30:00Z"));
        assert!(berlin("2027-10-31T01:59:00Z"));
        assert!(!berlin("2027-10-31T02:00:00Z"));
    }

    #[test]
    fn mistakes_are_refused_and_windows_are_written_as_they_are_read() {
        for wrong in [
            "",
            "8-20",
            "0800",
            "0800-0800",
            "2400-0100",
            "0860-0900",
            "0800-2500",
            "0-5 0800-2000",
            "5-1 0800-2000",
            "1-8 0800-2000",
            "1-5 0800-2000 x",
            "1-5;0800-2000",
            "mon 0800-2000",
        ] {
            assert!(wrong.parse::<CallWindow>().is_err(), "{wrong}");
        }
        assert!("0800-2000;".repeat(30).parse::<CallWindow>().is_err());
        for (text, written) in [
            ("0800-2400", "1,2,3,4,5,6,7 0800-2400"),
            ("1-2,7 2200-0600;6 0000-0100", "1,2,7 2200-0600;6 0000-0100"),
        ] {
            let window: CallWindow = text.parse().unwrap();
            assert_eq!(window.to_string(), written);
            assert_eq!(written.parse::<CallWindow>().unwrap(), window);
        }
    }
}
