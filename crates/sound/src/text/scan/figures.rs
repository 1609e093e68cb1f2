//! Everything that begins with a digit, a sign before a digit, or a currency.

use super::{LONGEST_RUN, Scan, Token};
use crate::text::characters::is_latin;
use crate::text::expression::{Expression, Half, Time};
use crate::text::numerals::{DigitGroups, Numeral};
use crate::text::units::{Currency, MINUTE, YUAN, currency, unit};

impl Scan<'_> {
    pub(super) fn begins_figures(&self, character: char) -> bool {
        match character {
            '0'..='9' => true,
            // A minus only where it cannot be a dash between two things.
            '-' => {
                self.is_digit(1)
                    && !self
                        .before()
                        .is_some_and(|c| c.is_ascii_digit() || is_latin(c))
            }
            '+' => self.is_digit(1) && self.run(self.at + 1).len() >= 8,
            '¥' | '$' | '€' | '£' => {
                self.is_digit(1) || self.peek(1) == Some(' ') && self.is_digit(2)
            }
            _ => false,
        }
    }

    pub(super) fn figures(&mut self) {
        let mut said = self.expression();
        // A range: 9:00-18:00, 3~5.
        if matches!(self.peek(0), Some('-' | '~'))
            && self.is_digit(1)
            && !matches!(said, Expression::Digits(_))
        {
            self.at += 1;
            said = Expression::Range(Box::new(said), Box::new(self.expression()));
        }
        self.tokens.push(Token::Said(said));
    }

    /// The digits from a place on.
    pub(super) fn run(&self, at: usize) -> String {
        let rest = self.text.get(at..).unwrap_or_default();
        rest.iter()
            .take(LONGEST_RUN)
            .take_while(|c| c.is_ascii_digit())
            .collect()
    }

    fn expression(&mut self) -> Expression {
        match self.peek(0) {
            Some(sign @ ('¥' | '$' | '€' | '£')) => {
                self.at += 1 + usize::from(self.peek(1) == Some(' '));
                let currency = currency(&sign.to_string()).unwrap_or(YUAN);
                let number = self.numeral();
                // ¥128元 says it twice.
                self.at += usize::from(currency == YUAN && self.peek(0) == Some('元'));
                Expression::Money(currency, number)
            }
            Some('+') => {
                self.at += 1;
                self.digits()
            }
            _ => self
                .date()
                .or_else(|| self.time())
                .or_else(|| self.dotted())
                .or_else(|| self.telephone())
                .unwrap_or_else(|| self.number()),
        }
    }

    pub(super) fn money(&mut self, currency: Currency) {
        let number = self.numeral();
        self.tokens
            .push(Token::Said(Expression::Money(currency, number)));
    }

    fn digits(&mut self) -> Expression {
        let digits = self.take_while(LONGEST_RUN, |c| c.is_ascii_digit());
        Expression::Digits(DigitGroups::of(&digits))
    }

    /// `2026-11-15`, `2026/11/15`, `2026.11.15`, `11/15/2026`.
    fn date(&mut self) -> Option<Expression> {
        let first = self.run(self.at);
        let separator = self.peek(first.len())?;
        if !matches!(separator, '-' | '/' | '.') {
            return None;
        }
        let second = self.run(self.at + first.len() + 1);
        let behind = first.len() + 1 + second.len();
        if self.peek(behind) != Some(separator) {
            return None;
        }
        let third = self.run(self.at + behind + 1);
        let (year, month, day) = match (first.len(), third.len()) {
            (4, 1 | 2) => (first, &second, &third),
            (1 | 2, 4) if separator == '/' => (third.clone(), &first, &second),
            _ => return None,
        };
        let (month, day) = (month.parse().ok()?, day.parse().ok()?);
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
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

    /// `15:30`, `15:30:05`, `3:30 pm`.
    fn time(&mut self) -> Option<Expression> {
        let hour = self.run(self.at);
        if hour.len() > 2 || self.peek(hour.len()) != Some(':') {
            return None;
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
        // The zone of ISO 8601.
        self.at += usize::from(second.is_some() && self.peek(0) == Some('Z'));
        Some(Expression::Time(Time {
            hour,
            minute: minutes,
            second,
            half: self.half_of_day(),
        }))
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

    /// Addresses and versions, with more than one point: `192.168.1.100`, `2.10.3`.
    fn dotted(&mut self) -> Option<Expression> {
        let mut groups = vec![self.run(self.at)];
        let mut length = groups[0].len();
        while self.peek(length) == Some('.') && self.is_digit(length + 1) && groups.len() < 8 {
            let group = self.run(self.at + length + 1);
            length += 1 + group.len();
            groups.push(group);
        }
        (groups.len() >= 3).then(|| {
            self.at += length;
            Expression::Dotted(groups)
        })
    }

    /// Digits in groups with dashes: `010-52823298`, `400-810-1234`, `138-0013-8000`.
    fn telephone(&mut self) -> Option<Expression> {
        let mut groups = vec![self.run(self.at)];
        let mut length = groups[0].len();
        while self.peek(length) == Some('-') && self.is_digit(length + 1) && groups.len() < 6 {
            let group = self.run(self.at + length + 1);
            length += 1 + group.len();
            groups.push(group);
        }
        let digits: String = groups.concat();
        let is_area = groups[0].starts_with('0') && matches!(groups[0].len(), 3 | 4);
        let is_service = groups[0] == "400" || groups[0] == "800";
        let is_mobile = digits.len() == 11 && digits.starts_with('1');
        let is_long = digits.len() >= 7 && groups.len() >= 3;
        let is_named = digits.len() >= 3 && self.is_named(self.at);
        let is_number = digits.len() >= 7 && (is_area || is_service || is_mobile || is_long);
        if groups.len() < 2 || !(is_number || is_named) {
            return None;
        }
        self.at += length;
        let said = groups.iter().flat_map(|group| DigitGroups::of(group).0);
        Some(Expression::Digits(DigitGroups(said.collect())))
    }

    /// Digits with sign, thousands separators and fraction.
    fn numeral(&mut self) -> Numeral {
        let negative = self.peek(0) == Some('-');
        self.at += usize::from(negative);
        let mut whole = self.take_while(LONGEST_RUN, |c| c.is_ascii_digit());
        if whole.len() <= 3 {
            while self.peek(0) == Some(',')
                && self.run(self.at + 1).len() == 3
                && whole.len() < LONGEST_RUN
            {
                self.at += 1;
                whole.push_str(&self.take_while(3, |c| c.is_ascii_digit()));
            }
        }
        let mut fraction = None;
        if self.peek(0) == Some('.') && self.is_digit(1) {
            self.at += 1;
            fraction = Some(self.take_while(LONGEST_RUN, |c| c.is_ascii_digit()));
        }
        let number = Numeral {
            negative,
            whole,
            fraction,
        };
        match self.exponent() {
            Some(exponent) => number.shifted(exponent).shortened(),
            None => number.shortened(),
        }
    }

    /// `e+06` behind a number that a program has written.
    fn exponent(&mut self) -> Option<i32> {
        let sign = match (self.peek(0)?, self.peek(1)?) {
            ('e', '+') => 1,
            ('e', '-') => -1,
            _ => return None,
        };
        let digits = self.run(self.at + 2);
        if !(2..=3).contains(&digits.len()) {
            return None;
        }
        self.at += 2 + digits.len();
        digits.parse::<i32>().ok().map(|exponent| sign * exponent)
    }

    fn number(&mut self) -> Expression {
        let start = self.at;
        let number = self.numeral();
        let was_plain = number.is_plain() && self.at - start == number.whole.len();
        if let Some(said) = self.with_what_follows(&number) {
            return said;
        }
        if was_plain && self.is_name(start, &number.whole) {
            return Expression::Digits(DigitGroups::of(&number.whole));
        }
        if was_plain && self.is_year(start, &number) {
            return Expression::Year(number.whole);
        }
        if self.is_measure() && !(start > 0 && self.text[start - 1] == '第') {
            return Expression::Counted(number);
        }
        Expression::Number(number)
    }

    fn is_year(&self, start: usize, number: &Numeral) -> bool {
        if number.whole.len() != 4 {
            return false;
        }
        let before: String = self.text[start.saturating_sub(6)..start].iter().collect();
        let before = before.to_lowercase();
        let in_english = [" in ", "since ", "year ", "until ", " by "]
            .iter()
            .any(|word| format!(" {before}").ends_with(word));
        let is_likely = number
            .small()
            .is_some_and(|year| (1800..=2199).contains(&year));
        is_likely && (self.peek(0) == Some('年') || in_english)
    }

    /// A sign, unit, currency, ordinal ending or fraction directly behind a number.
    fn with_what_follows(&mut self, number: &Numeral) -> Option<Expression> {
        let rest: String = self.text[self.at..].iter().take(8).collect();
        let blank = rest.len() - rest.trim_start_matches(' ').len();
        let word: String = rest[blank..]
            .chars()
            .take_while(|c| is_latin(*c) || matches!(c, '℃' | '℉' | '°' | '/'))
            .collect();
        let word = match word.split_once('/') {
            Some((before, _)) if unit(&word).is_none() => before.to_owned(),
            _ => word,
        };
        let (said, length) = match rest.chars().next()? {
            '%' => (Expression::Percent(number.clone()), 1),
            ' ' if rest[1..].starts_with('%') => (Expression::Percent(number.clone()), 2),
            '‰' => (Expression::PerMille(number.clone()), 1),
            // 1.5万元 is not an amount in yuan, jiao and fen.
            '元' => (Expression::Money(YUAN, number.clone()), 1),
            '/' if number.is_plain() && self.is_digit(1) => {
                self.at += 1;
                let lower = self.numeral();
                return Some(Expression::Fraction(number.clone(), lower));
            }
            _ if word.is_empty() => return None,
            _ if blank == 0 && matches!(word.as_str(), "st" | "nd" | "rd" | "th") => {
                (Expression::Ordinal(number.clone()), 2)
            }
            _ => {
                let length = blank + word.chars().count();
                let unit = match word.as_str() {
                    "m" if blank == 0 && self.is_time(number) => Some(MINUTE),
                    // 1990s is no time.
                    "s" if number
                        .small()
                        .is_some_and(|year| (1800..=2199).contains(&year)) =>
                    {
                        None
                    }
                    word => unit(word),
                };
                match (currency(&word), unit) {
                    (Some(currency), _) => (Expression::Money(currency, number.clone()), length),
                    (_, Some(unit)) => (Expression::Measure(number.clone(), unit), length),
                    _ => return None,
                }
            }
        };
        self.at += length;
        Some(said)
    }

    /// Whether `m` behind a number without a blank is minutes: in `1h30m`, and after a word that speaks of time.
    fn is_time(&self, number: &Numeral) -> bool {
        const WORDS: [&str; 9] = [
            "for", "last", "past", "within", "every", "after", "since", "in", "than",
        ];
        let start = self.at.saturating_sub(number.whole.len());
        let before: String = self.text[start.saturating_sub(40)..start].iter().collect();
        if before.ends_with(['h', 'd']) {
            return true;
        }
        let words = before.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| !word.is_empty());
        words
            .rev()
            .take(3)
            .any(|word| WORDS.contains(&word.to_lowercase().as_str()))
            || "过去内近持续超过".contains(before.trim_end().chars().next_back().unwrap_or(' '))
    }
}
