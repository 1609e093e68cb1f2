//! Hours in which a notice may dial: windows that must all be open, in the platform's zone.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::domain::call_window::CallWindow;

/// Windows repeat every week: what is not open within these days, clock changes included, never is.
const DAYS_OF_AN_OPENING: usize = 15;
/// Nobody waits for longer, however seldom it is open: what is computed for a request is bounded.
const DAYS_AHEAD: usize = 62;

#[derive(Debug, Clone, Copy)]
pub struct CallHours<'a> {
    /// Of the request and of the account. Without any it is always open.
    pub windows: &'a [&'a CallWindow],
    pub zone: &'a TimeZone,
}

/// From when until when something is open.
type OpenTime = (Timestamp, Timestamp);

impl CallHours<'_> {
    pub fn is_open(&self, moment: Timestamp) -> bool {
        let moment = moment.to_zoned(self.zone.clone());
        self.windows.iter().all(|window| window.is_open(&moment))
    }

    /// The first moment from then on at which it is open; `None` if it never is.
    pub fn next_open(&self, from: Timestamp) -> Option<Timestamp> {
        if self.windows.is_empty() {
            return Some(from);
        }
        let open = self.open_times(from, DAYS_OF_AN_OPENING);
        open.first().map(|(begins, _)| *begins)
    }

    /// The moment at which it has been open for so long, counted from then on, and two months later at the latest; `None` if it is never open.
    pub fn after(&self, from: Timestamp, open_time: SignedDuration) -> Option<Timestamp> {
        if self.windows.is_empty() {
            return from.checked_add(open_time).ok();
        }
        let open = self.open_times(from, DAYS_AHEAD);
        let mut left = open_time;
        for (begins, ends) in &open {
            let length = ends.duration_since(*begins);
            if left <= length {
                return begins.checked_add(left).ok();
            }
            left -= length;
        }
        open.last().map(|(_, ends)| *ends)
    }

    /// When all windows are open, from then on, in order.
    fn open_times(&self, from: Timestamp, days: usize) -> Vec<OpenTime> {
        // What has begun the day before may still be open.
        let today = from.to_zoned(self.zone.clone()).date();
        let first = today.yesterday().unwrap_or(today);
        let of_window = |window: &&CallWindow| {
            let days = first.series(jiff::Span::new().days(1)).take(days + 1);
            let open = days.flat_map(|day| window.open_from(day, self.zone));
            let open = open.filter(|(begins, ends)| begins < ends && *ends > from);
            merged(
                open.map(|(begins, ends)| (begins.max(from), ends))
                    .collect(),
            )
        };
        let of_windows = self.windows.iter().map(of_window);
        of_windows
            .reduce(|some, others| common(&some, &others))
            .unwrap_or_default()
    }
}

/// In order, and one where they touch.
fn merged(mut times: Vec<OpenTime>) -> Vec<OpenTime> {
    times.sort_unstable();
    let mut merged: Vec<OpenTime> = Vec::with_capacity(times.len());
    for (begins, ends) in times {
        match merged.last_mut() {
            Some(last) if begins <= last.1 => last.1 = last.1.max(ends),
            _ => merged.push((begins, ends)),
        }
    }
    merged
}

/// What two lists have in common, each of them merged.
fn common(some: &[OpenTime], others: &[OpenTime]) -> Vec<OpenTime> {
    let (mut common, mut one, mut other) = (Vec::new(), 0, 0);
    while let (Some(here), Some(there)) = (some.get(one), others.get(other)) {
        let (begins, ends) = (here.0.max(there.0), here.1.min(there.1));
        if begins < ends {
            common.push((begins, ends));
        }
        if here.1 < there.1 {
            one += 1;
        } else {
            other += 1;
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Hours {
        windows: Vec<CallWindow>,
        zone: TimeZone,
    }

    impl Hours {
        fn new(windows: &[&str], zone: &str) -> Self {
            Self {
                windows: windows
                    .iter()
                    .map(|window| window.parse().unwrap())
                    .collect(),
                zone: TimeZone::get(zone).unwrap(),
            }
        }

        fn ask<T>(&self, question: impl FnOnce(CallHours<'_>) -> T) -> T {
            let windows: Vec<_> = self.windows.iter().collect();
            question(CallHours {
                windows: &windows,
                zone: &self.zone,
            })
        }

        fn next_open(&self, from: &str) -> Option<String> {
            let open = self.ask(|hours| hours.next_open(from.parse().unwrap()));
            open.map(|at| at.to_string())
        }

        fn after(&self, from: &str, seconds: i64) -> Option<String> {
            let time = SignedDuration::from_secs(seconds);
            let after = self.ask(|hours| hours.after(from.parse().unwrap(), time));
            after.map(|at| at.to_string())
        }
    }

    #[test]
    fn all_windows_must_be_open() {
        // The 16th of November 2026 is a Monday; Shanghai is eight hours ahead.
        let hours = Hours::new(&["1-5 0800-2100", "0900-1200"], "Asia/Shanghai");
        assert_eq!(
            hours.next_open("2026-11-16T00:30:00Z").as_deref(),
            Some("2026-11-16T01:00:00Z")
        );
        assert_eq!(
            hours.next_open("2026-11-16T02:00:00Z").as_deref(),
            Some("2026-11-16T02:00:00Z")
        );
        assert_eq!(
            hours.next_open("2026-11-20T04:00:00Z").as_deref(),
            Some("2026-11-23T01:00:00Z"),
            "after the weekend"
        );
        let never = Hours::new(&["1 0800-0900", "2 0800-0900"], "Asia/Shanghai");
        assert_eq!(never.next_open("2026-11-16T00:30:00Z").as_deref(), None);
        assert_eq!(never.after("2026-11-16T00:30:00Z", 1).as_deref(), None);
        let always = Hours::new(&[], "Asia/Shanghai");
        assert_eq!(
            always.next_open("2026-11-16T00:30:00Z").as_deref(),
            Some("2026-11-16T00:30:00Z")
        );
        assert_eq!(
            always.after("2026-11-16T00:30:00Z", 3600).as_deref(),
            Some("2026-11-16T01:30:00Z")
        );
    }

    #[test]
    fn only_open_time_counts() {
        let hours = Hours::new(&["0800-0900"], "UTC");
        assert_eq!(
            hours.after("2026-11-16T08:30:00Z", 1800).as_deref(),
            Some("2026-11-16T09:00:00Z")
        );
        assert_eq!(
            hours.after("2026-11-16T08:30:00Z", 1801).as_deref(),
            Some("2026-11-17T08:00:01Z")
        );
        assert_eq!(
            hours.after("2026-11-16T10:00:00Z", 2 * 3600).as_deref(),
            Some("2026-11-18T09:00:00Z")
        );
        let nights = Hours::new(&["7 2200-0600"], "UTC");
        assert_eq!(
            nights.after("2026-11-15T23:00:00Z", 7 * 3600).as_deref(),
            Some("2026-11-16T06:00:00Z")
        );
        assert_eq!(
            nights.next_open("2026-11-16T06:00:00Z").as_deref(),
            Some("2026-11-22T22:00:00Z")
        );
    }

    #[test]
    fn nobody_waits_for_longer_than_two_months() {
        let seldom = Hours::new(&["1 0800-0801"], "UTC");
        let year = 365 * 86_400;
        // The 16th of November 2026 is a Monday.
        assert_eq!(
            seldom.after("2026-11-16T00:00:00Z", year).as_deref(),
            Some("2027-01-11T08:01:00Z")
        );
        assert_eq!(
            seldom.after("2026-11-16T00:00:00Z", 61).as_deref(),
            Some("2026-11-23T08:00:01Z")
        );
    }

    #[test]
    fn clock_changes_neither_add_nor_lose_an_opening() {
        // Half past two does not exist in New York on the 14th of March 2027, and comes twice in Berlin on the 31st of October.
        let new_york = Hours::new(&["0230-0400"], "America/New_York");
        assert_eq!(
            new_york.next_open("2027-03-14T05:00:00Z").as_deref(),
            Some("2027-03-14T07:30:00Z")
        );
        assert_eq!(
            new_york.next_open("2027-03-14T08:00:00Z").as_deref(),
            Some("2027-03-15T06:30:00Z")
        );
        let berlin = Hours::new(&["0230-0300"], "Europe/Berlin");
        assert_eq!(
            berlin.next_open("2027-10-30T22:00:00Z").as_deref(),
            Some("2027-10-31T00:30:00Z")
        );
        assert_eq!(
            berlin.after("2027-10-30T22:00:00Z", 5400).as_deref(),
            Some("2027-10-31T02:00:00Z"),
            "an hour longer"
        );
    }

    fn window() -> impl Strategy<Value = String> {
        let span = (1..=7_u8, 0..=6_u8, 0..1440_u16, 1..1440_u16).prop_map(
            |(first, more, begins, length)| {
                let last = (first + more).min(7);
                let ends = (begins + length) % 1440;
                let clock = |minutes: u16| format!("{:02}{:02}", minutes / 60, minutes % 60);
                format!("{first}-{last} {}-{}", clock(begins), clock(ends))
            },
        );
        prop::collection::vec(span, 1..4).prop_map(|spans| spans.join(";"))
    }

    proptest! {
        /// Minute by minute, over the days of a clock change.
        #[test]
        fn what_is_computed_is_what_a_patient_clerk_finds(
            windows in prop::collection::vec(window(), 1..3),
            zone in prop::sample::select(vec!["Europe/Berlin", "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe"]),
            start in prop::sample::select(vec!["2027-03-13T00:00:00Z", "2027-03-27T12:00:00Z", "2027-04-03T00:00:00Z", "2027-10-02T06:00:00Z", "2027-10-30T12:00:00Z", "2027-11-06T12:00:00Z"]),
            minutes in 0..1440_i64,
            open_minutes in 1..600_i64,
        ) {
            let windows: Vec<_> = windows.iter().map(String::as_str).collect();
            let hours = Hours::new(&windows, zone);
            let start: Timestamp = start.parse().unwrap();
            let from = start + SignedDuration::from_mins(minutes);
            let mut clerk = (0..4 * 1440_i64).map(|minute| from + SignedDuration::from_mins(minute))
                .filter(|at| hours.ask(|hours| hours.is_open(*at)));
            let (next_open, after) = hours.ask(|hours| {
                (hours.next_open(from), hours.after(from, SignedDuration::from_mins(open_minutes)))
            });
            if let Some(first) = clerk.next() {
                prop_assert_eq!(next_open, Some(first));
                let nth = if open_minutes == 1 { Some(first) } else { clerk.nth(usize::try_from(open_minutes).unwrap() - 2) };
                if let Some(nth) = nth {
                    prop_assert_eq!(after, Some(nth + SignedDuration::from_mins(1)));
                }
            } else if let Some(next_open) = next_open {
                prop_assert!(next_open >= from + SignedDuration::from_hours(96));
            }
        }
    }
}
