//! English dates that are written with the month's name: `Nov 16`, `November 16, 2026`.

use super::{Scan, Token};
use crate::text::english::MONTHS;
use crate::text::expression::Expression;

impl Scan<'_> {
    /// Takes the day, and the year where there is one, behind the name of a month.
    pub(super) fn day_of(&mut self, word: &str) -> bool {
        let Some(month) = month(word) else {
            return false;
        };
        let mut at = usize::from(self.peek(0) == Some('.') && word.len() <= 4);
        at += usize::from(self.peek(at) == Some(' '));
        let day = self.run(self.at + at);
        at += day.len();
        let goes_on = match self.peek(at) {
            Some('.') => self.is_digit(at + 1),
            next => matches!(next, Some(':' | '%' | '-' | '/')),
        };
        let Some(number) = day.parse().ok().filter(|day| (1..=31).contains(day)) else {
            return false;
        };
        if goes_on || day.len() > 2 {
            return false;
        }
        if matches!(self.peek(at), Some('s' | 'n' | 'r' | 't')) {
            at += 2;
        }
        let comma = usize::from(self.peek(at) == Some(','));
        let year = self.run(self.at + at + comma + 1);
        let has_year = self.peek(at + comma) == Some(' ') && year.len() == 4;
        self.at += at + if has_year { comma + 5 } else { 0 };
        self.tokens.push(Token::Said(Expression::Date {
            year: has_year.then_some(year),
            month,
            day: number,
        }));
        true
    }
}

/// Its number, by its name or the name's beginning. May is also a verb, but not before a number.
pub(super) fn month(word: &str) -> Option<u32> {
    let matches = |name: &str| {
        let short = word.len() == 3 || word.eq_ignore_ascii_case("sept");
        word.eq_ignore_ascii_case(name)
            || short
                && name
                    .get(..word.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    (1..)
        .zip(MONTHS)
        .find(|(_, name)| matches(name))
        .map(|(number, _)| number)
}
