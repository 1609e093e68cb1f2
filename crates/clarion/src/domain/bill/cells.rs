//! A line as fifteen texts, written one after the other into one buffer. The buffer is reused for every line, because a bill may have ten
//! million lines.

use std::fmt::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{BillLine, COLUMNS};
use crate::domain::account::AppId;

/// Number of minutes whose text is remembered. A line has three times, and lines are in the order of one of them.
const REMEMBERED: usize = 8;

#[derive(Debug)]
pub struct Cells {
    text: String,
    ends: [usize; COLUMNS.len()],
    wall: Wall,
}

impl Cells {
    pub fn new(zone: TimeZone) -> Self {
        Self {
            text: String::new(),
            ends: [0; COLUMNS.len()],
            wall: Wall::new(zone),
        }
    }

    /// Replaces the line before by this one.
    pub fn fill(&mut self, app: &AppId, line: &BillLine) {
        self.text.clear();
        let (text, wall) = (&mut self.text, &mut self.wall);
        let mut place = 0;
        let ends = &mut self.ends;
        let mut cell = |write: &mut dyn FnMut(&mut String)| {
            write(text);
            ends[place] = text.len();
            place += 1;
        };
        cell(&mut |text| text.push_str(&line.order_id));
        cell(&mut |text| number(text, line.call_type.code().unsigned_abs().into()));
        cell(&mut |text| text.push_str(app.as_str()));
        cell(&mut |text| text.push_str(line.call_sid.as_deref().unwrap_or_default()));
        cell(&mut |text| text.push_str(&line.caller));
        cell(&mut |text| text.push_str(&line.called));
        cell(&mut |text| wall.write(text, Some(line.started_at)));
        cell(&mut |text| wall.write(text, line.answered_at));
        cell(&mut |text| wall.write(text, Some(line.ended_at)));
        cell(&mut |text| number(text, line.seconds));
        cell(&mut |text| number(text, line.units));
        cell(&mut |text| {
            let _ = write!(text, "{}", line.rate);
        });
        cell(&mut |text| {
            let _ = write!(text, "{}", line.fee);
        });
        cell(&mut |text| text.push_str(&line.outcome));
        cell(&mut |text| text.push_str(line.user_data.as_deref().unwrap_or_default()));
    }

    pub fn get(&self, column: usize) -> &str {
        let begin = if column == 0 {
            0
        } else {
            self.ends[column - 1]
        };
        &self.text[begin..self.ends[column]]
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..COLUMNS.len()).map(|column| self.get(column))
    }
}

fn number(text: &mut String, value: u32) {
    // Writing to a string cannot fail.
    let _ = write!(text, "{value}");
}

/// Writes times as clocks in the platform's zone show them: `2026-11-15 02:35:09`.
#[derive(Debug)]
struct Wall {
    zone: TimeZone,
    minutes: [(i64, String); REMEMBERED],
}

impl Wall {
    fn new(zone: TimeZone) -> Self {
        Self {
            zone,
            minutes: std::array::from_fn(|_| (i64::MIN, String::new())),
        }
    }

    fn write(&mut self, text: &mut String, moment: Option<Timestamp>) {
        let Some(moment) = moment else { return };
        let seconds = moment.as_millisecond().div_euclid(1000);
        let (minute, second) = (seconds.div_euclid(60), seconds.rem_euclid(60));
        let place =
            usize::try_from(minute.rem_euclid(REMEMBERED.cast_signed() as i64)).unwrap_or(0);
        let (known, beginning) = &mut self.minutes[place];
        if *known != minute {
            // Today's offsets are whole minutes, so the seconds are the same in every zone.
            let zoned = moment.to_zoned(self.zone.clone());
            *beginning = zoned.strftime("%Y-%m-%d %H:%M:").to_string();
            *known = minute;
        }
        text.push_str(beginning);
        for digit in [second / 10, second % 10] {
            text.push(char::from(b'0' + u8::try_from(digit).unwrap_or(0)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_on_the_wall_also_when_clocks_go_back() {
        let mut wall = Wall::new(TimeZone::get("Europe/Berlin").unwrap());
        let mut written = |text: &str| {
            let mut out = String::new();
            wall.write(&mut out, Some(text.parse().unwrap()));
            out
        };
        assert_eq!(written("2026-10-25T00:59:59.999Z"), "2026-10-25 02:59:59");
        assert_eq!(written("2026-10-25T01:00:00Z"), "2026-10-25 02:00:00");
        assert_eq!(written("2026-10-25T01:00:07Z"), "2026-10-25 02:00:07");
        assert_eq!(written("1969-12-31T23:59:58.5Z"), "1970-01-01 00:59:58");
    }
}
