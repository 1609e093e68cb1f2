//! No attempt of any plan is dialled outside its hours, clock changes included. What is open is found out here by the offsets of the zone alone.

use jiff::civil::{Date, DateTime};
use proptest::prelude::*;

use super::*;

/// Days from Monday (1) on, and minutes after midnight; the end may lie on the next day.
#[derive(Debug, Clone)]
struct Span {
    days: std::ops::RangeInclusive<i8>,
    begins: i64,
    length: i64,
}

impl Span {
    fn written(&self) -> String {
        let clock = |minutes: i64| format!("{:02}{:02}", minutes / 60 % 24, minutes % 60);
        let (first, last) = (self.days.start(), self.days.end());
        let ends = clock(self.begins + self.length);
        format!("{first}-{last} {}-{ends}", clock(self.begins))
    }

    fn is_open(&self, moment: Timestamp, zone: &TimeZone) -> bool {
        let today = moment.to_zoned(zone.clone()).date();
        [today, today.yesterday().unwrap()].into_iter().any(|day| {
            let is_of = self.days.contains(&day.weekday().to_monday_one_offset());
            let begins = wall(day, self.begins, zone);
            is_of && (begins..wall(day, self.begins + self.length, zone)).contains(&moment)
        })
    }
}

/// When the wall shows so many minutes after the midnight of a day: the first time, where it does so twice. Where it never does, by the clock as it was
/// before it was set.
fn wall(day: Date, minutes: i64, zone: &TimeZone) -> Timestamp {
    let wanted: DateTime = day.at(0, 0, 0, 0) + SignedDuration::from_mins(minutes);
    let as_utc = wanted.to_zoned(TimeZone::UTC).unwrap().timestamp();
    let by_offset_at = |hours| {
        let near = as_utc + SignedDuration::from_hours(hours);
        as_utc - zone.to_offset(near).duration_since(jiff::tz::Offset::UTC)
    };
    let (before, after) = (by_offset_at(-26), by_offset_at(26));
    let shows = |at: &Timestamp| at.to_zoned(zone.clone()).datetime() == wanted;
    [before, after]
        .into_iter()
        .filter(shows)
        .min()
        .unwrap_or(before)
}

fn span() -> impl Strategy<Value = Span> {
    (1..=7_i8, 0..=6_i8, 0..1440_i64, 1..1440_i64).prop_map(|(first, more, begins, length)| Span {
        days: first..=(first + more).min(7),
        begins,
        length,
    })
}

fn spans() -> impl Strategy<Value = Vec<Span>> {
    prop::collection::vec(span(), 1..3)
}

fn window(spans: &[Span]) -> CallWindow {
    let written: Vec<_> = spans.iter().map(Span::written).collect();
    written.join(";").parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_attempt_is_dialled_outside_its_hours(
        own in spans(),
        of_account in spans(),
        redials in 0..=4_u16,
        pauses in prop::collection::vec(10..40_000_i64, 1..4),
        outcomes in prop::collection::vec(prop::sample::select(vec![Outcome::Busy, Outcome::NotAnswered, Outcome::Declined, Outcome::Interrupted]), 10),
        zone in prop::sample::select(vec!["Europe/Berlin", "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe"]),
        // The days before clocks are set.
        start in prop::sample::select(vec!["2027-03-13T00:00:00Z", "2027-03-27T12:00:00Z", "2027-04-03T00:00:00Z", "2027-10-02T06:00:00Z", "2027-10-30T12:00:00Z", "2027-11-06T12:00:00Z"]),
        later in 0..86_400_i64,
    ) {
        let zone = TimeZone::get(zone).unwrap();
        let mut notice = notice(None);
        notice.window = Some(window(&own));
        notice.plan.redials = redials;
        notice.plan.pauses = pauses.iter().map(|pause| SignedDuration::from_secs(*pause)).collect();
        let account = window(&of_account);
        let windows = notice.hours(Some(&account));
        let hours = CallHours { windows: &windows, zone: &zone };
        let is_open = |at| [&own, &of_account].into_iter().all(|spans| spans.iter().any(|span| span.is_open(at, &zone)));
        let numbers: Vec<_> = notice.numbers.iter().map(|to| (to.clone(), NumberTurn::Open)).collect();
        let mut now = start.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(later);
        let mut past: Vec<Attempt> = Vec::new();
        while let Sequel::Dial { number, not_before } = notice.sequel(&numbers, &past, hours, now) {
            prop_assert!(past.len() < 2 * (usize::from(redials) + 1));
            prop_assert!(is_open(not_before), "{} is dialled at {not_before}", number.called);
            // Nobody waits while it is open: not after the pause of the number.
            let tries: Vec<_> = past.iter().filter(|attempt| attempt.to == number.number).collect();
            let pause = notice.plan.patience(tries.len());
            let due = tries.last().map_or(now, |last| now.max(last.ended_at + pause));
            let minutes = (0..4 * 1440).step_by(10).map(|minute| due + SignedDuration::from_mins(minute));
            let mut waited = minutes.take_while(|at| *at < not_before);
            prop_assert!(!waited.any(is_open), "it might have been dialled before {not_before}");
            now = not_before + SignedDuration::from_secs(10);
            past.push(Attempt {
                to: number.number,
                dialled_at: Some(not_before),
                ended_at: now,
                ..attempt(u16::try_from(past.len() + 1).unwrap(), 1, outcomes[past.len()])
            });
        }
        // It is over because every number has had its tries, or because it is never open.
        let is_spent = |to: &Recipient| {
            let tries: Vec<_> = past.iter().filter(|attempt| attempt.to == to.number).collect();
            let is_declined = tries.last().is_some_and(|last| last.outcome == Outcome::Declined);
            is_declined || tries.len() == usize::from(redials) + 1
        };
        let week = (0..8 * 1440).step_by(10).map(|minute| now + SignedDuration::from_mins(minute));
        prop_assert!(notice.numbers.iter().all(is_spent) || !week.into_iter().any(is_open));
    }
}
