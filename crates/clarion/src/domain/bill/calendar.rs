//! Days in the platform's zone. A day lasts from its first moment to the first moment of the next: 23, 24 or 25 hours.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Returns the day of a moment.
pub fn day_of(moment: Timestamp, zone: &TimeZone) -> Date {
    moment.to_zoned(zone.clone()).date()
}

/// Returns the first moment of a day. If the clocks are put forward over midnight, it is the first moment that exists.
pub fn begins(day: Date, zone: &TimeZone) -> Timestamp {
    zone.to_ambiguous_zoned(day.at(0, 0, 0, 0))
        .compatible()
        .map_or(Timestamp::MIN, |start| start.timestamp())
}

/// Returns the day before today, which `date=day` asks for.
pub fn previous_day(now: Timestamp, zone: &TimeZone) -> Date {
    day_of(now, zone).yesterday().unwrap_or(Date::MIN)
}

/// Returns the last day that may be closed: it ended at least the grace time ago.
pub fn last_due(now: Timestamp, zone: &TimeZone, grace: SignedDuration) -> Date {
    previous_day(now.saturating_sub(grace).unwrap_or(now), zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn day(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn a_day_begins_and_ends_to_the_millisecond() {
        let shanghai = zone("Asia/Shanghai");
        assert_eq!(
            day_of(at("2026-11-14T15:59:59.999Z"), &shanghai),
            day("2026-11-14")
        );
        assert_eq!(
            day_of(at("2026-11-14T16:00:00Z"), &shanghai),
            day("2026-11-15")
        );
        assert_eq!(
            day_of(at("2028-02-29T15:59:59.999Z"), &shanghai),
            day("2028-02-29")
        );
        assert_eq!(
            day_of(at("2028-02-29T16:00:00Z"), &shanghai),
            day("2028-03-01")
        );
    }

    #[test]
    fn days_of_23_and_25_hours_are_whole() {
        let berlin = zone("Europe/Berlin");
        for (date, hours) in [("2026-03-29", 23), ("2026-10-25", 25), ("2026-11-15", 24)] {
            let (first, next) = (day(date), day(date).tomorrow().unwrap());
            let (begins, ends) = (begins(first, &berlin), begins(next, &berlin));
            assert_eq!(
                ends.duration_since(begins),
                SignedDuration::from_hours(hours),
                "{date}"
            );
            assert_eq!(day_of(begins, &berlin), first);
            let last = Timestamp::from_millisecond(ends.as_millisecond() - 1).unwrap();
            assert_eq!(day_of(last, &berlin), first);
            assert_eq!(day_of(ends, &berlin), next);
        }
        // These clocks go forward at midnight, so the day begins at one o'clock.
        let havana = zone("America/Havana");
        assert_eq!(
            begins(day("2026-03-08"), &havana),
            at("2026-03-08T05:00:00Z")
        );
    }

    #[test]
    fn a_day_is_due_a_grace_time_after_its_end() {
        let shanghai = zone("Asia/Shanghai");
        let grace = SignedDuration::from_mins(5);
        assert_eq!(
            last_due(at("2026-11-14T16:04:59.999Z"), &shanghai, grace),
            day("2026-11-13")
        );
        assert_eq!(
            last_due(at("2026-11-14T16:05:00Z"), &shanghai, grace),
            day("2026-11-14")
        );
        assert_eq!(
            previous_day(at("2026-11-14T16:00:00Z"), &shanghai),
            day("2026-11-14")
        );
    }
}
