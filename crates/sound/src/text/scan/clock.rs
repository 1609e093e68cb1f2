//! Dates and times that are written in figures.

use super::Scan;
use crate::text::characters::is_latin;
use crate::text::expression::{Expression, Half, Time};
use crate::text::numerals::Numeral;

impl Scan<'_> {
    /// `2026-11-15`, `2026/11/15`, `2026.11.15`, `11/15/2026`; before a time also `11-15` and `11/15`.
    pub(super) fn date(&mut self) -> Option<Expression> {
        let first = self.run(self.at);
        let separator = self.peek(first.len())?;
        if !matches!(separator, '-' | '/' | '.') {
            return None;
        }
        let second = self.run(self.at + first.len() + 1);
        let behind = first.len() + 1 + second.len();
        if self.peek(behind) != Some(separator) {
            return self.day_before_time(&first, &second, separator);
        }
        let third = self.run(self.at + behind + 1);
        let (year, month, day) = match (first.len(), third.len()) {
            (4, 1 | 2) => (first, &second, &third),
            (1 | 2, 4) if separator == '/' => (third.clone(), &first, &second),
            _ => return None,
        };
        let (month, day) = month_and_day(month, day)?;
        self.at += behind + 1 + third.len();
        // ISO 8601 puts a T between date and time.
        if self.peek(0) == Some('T') && self.is_digit(1) {
            self.at += 1;
        }
        Some(Expression::Date {
            year: Some(year),
            month,
            day,
        })
    }

    /// As programs write it in their logs: `11-15 09:30`.
    fn day_before_time(
        &mut self,
        first: &str,
        second: &str,
        separator: char,
    ) -> Option<Expression> {
        let length = first.len() + 1 + second.len();
        let hour = self.run(self.at + length + 1);
        let is_followed = self.peek(length) == Some(' ')
            && matches!(hour.len(), 1 | 2)
            && self.peek(length + 1 + hour.len()) == Some(':');
        if separator == '.' || !is_followed {
            return None;
        }
        let (month, day) = month_and_day(first, second)?;
        self.at += length;
        Some(Expression::Date {
            year: None,
            month,
            day,
        })
    }

    /// `15:30`, `15:30:05`, `3:30 pm`, `3pm`.
    pub(super) fn time(&mut self) -> Option<Expression> {
        let hour = self.run(self.at);
        if hour.is_empty() || hour.len() > 2 {
            return None;
        }
        if self.peek(hour.len()) != Some(':') {
            return self.whole_hour(&hour);
        }
        let minute = self.run(self.at + hour.len() + 1);
        let mut length = hour.len() + 1 + minute.len();
        let mut second = None;
        if self.peek(length) == Some(':') {
            let digits = self.run(self.at + length + 1);
            if digits.len() == 2 {
                length += 3;
                second = digits.parse().ok();
            }
        }
        let (hour, minutes): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
        if minute.len() != 2 || hour > 24 || minutes > 59 || second.is_some_and(|s: u32| s > 59) {
            return None;
        }
        self.at += length;
        if second.is_some() {
            self.skip_zone();
        }
        Some(Expression::Time(Time {
            hour,
            minute: minutes,
            second,
            half: self.half_of_day(),
        }))
    }

    fn whole_hour(&mut self, hour: &str) -> Option<Expression> {
        let number: u32 = hour.parse().ok().filter(|hour| (1..=12).contains(hour))?;
        let start = self.at;
        self.at += hour.len();
        let Some(half) = self.half_of_day() else {
            self.at = start;
            return None;
        };
        Some(Expression::Time(Time {
            hour: number,
            minute: 0,
            second: None,
            half: Some(half),
        }))
    }

    /// Behind the seconds programs write parts of them, and their zone. A listener needs neither.
    fn skip_zone(&mut self) {
        if self.peek(0) == Some('.') && self.is_digit(1) {
            self.at += 1 + self.run(self.at + 1).len();
        }
        let is_offset = matches!(self.peek(0), Some('+' | '-'))
            && self.run(self.at + 1).len() == 2
            && self.peek(3) == Some(':')
            && self.run(self.at + 4).len() == 2;
        if is_offset {
            self.at += 6;
        } else if self.peek(0) == Some('Z') && !self.peek(1).is_some_and(is_latin) {
            self.at += 1;
        }
    }

    fn half_of_day(&mut self) -> Option<Half> {
        let blank = usize::from(self.peek(0) == Some(' '));
        let half = match self.peek(blank)?.to_ascii_lowercase() {
            'a' => Half::Morning,
            'p' => Half::Afternoon,
            _ => return None,
        };
        let mut length = blank + 1;
        let is_dotted = self.peek(length) == Some('.');
        length += usize::from(is_dotted);
        if !self.peek(length)?.eq_ignore_ascii_case(&'m') {
            return None;
        }
        length += 1;
        if self.peek(length).is_some_and(is_latin) {
            return None;
        }
        self.at += length + usize::from(is_dotted && self.peek(length) == Some('.'));
        Some(half)
    }

    /// `2026年`, `26年11月`, `in 2026`, `November 2026`.
    pub(super) fn is_year(&self, start: usize, number: &Numeral) -> bool {
        let is_before_month = self.peek(0) == Some('年')
            && self.is_digit(1)
            && self.text[self.at + 1..].iter().take(3).any(|c| *c == '月');
        if number.whole.len() == 2 {
            return is_before_month;
        }
        let is_likely = number.is_like_a_year();
        let before: String = self.text[start.saturating_sub(10)..start].iter().collect();
        let before = format!(" {}", before.to_lowercase());
        let words = [" in ", "since ", "year ", "until ", " by "];
        let is_said = words.iter().any(|word| before.ends_with(word));
        let month = before.trim_end().rsplit(' ').next().unwrap_or_default();
        let follows_month = before.ends_with(' ') && super::calendar::month(month).is_some();
        is_likely && (self.peek(0) == Some('年') || is_said || follows_month)
    }
}

fn month_and_day(month: &str, day: &str) -> Option<(u32, u32)> {
    let (month, day) = (month.parse().ok()?, day.parse().ok()?);
    ((1..=12).contains(&month) && (1..=31).contains(&day)).then_some((month, day))
}
