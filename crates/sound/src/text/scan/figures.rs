//! Everything that begins with a digit, a sign before a digit, or a currency.

use super::context::ends_a_range;
use super::{LONGEST_RUN, Scan, Token};
use crate::text::characters::is_latin;
use crate::text::expression::{Expression, Scale};
use crate::text::numerals::{DigitGroups, Numeral};
use crate::text::units::{Currency, YUAN, currency, part_of_time, unit};

/// A unit is no longer than this, with the blank before it.
const LONGEST_UNIT: usize = 8;

impl Scan<'_> {
    pub(super) fn begins_figures(&self, character: char) -> bool {
        match character {
            '0'..='9' => true,
            // A minus only where it cannot be a dash between two things.
            '-' => {
                let is_negative = self.is_digit(1) || self.is_currency(1);
                let joins = |c: char| c.is_ascii_digit() || is_latin(c) || ends_a_range(c);
                is_negative && !self.before().is_some_and(joins)
            }
            '+' => self.is_digit(1) && self.international_digits().len() >= 8,
            _ => self.is_currency(0),
        }
    }

    /// The sign of a currency, with its amount.
    fn is_currency(&self, ahead: usize) -> bool {
        matches!(self.peek(ahead), Some('¥' | '$' | '€' | '£'))
            && (self.is_digit(ahead + 1)
                || self.peek(ahead + 1) == Some(' ') && self.is_digit(ahead + 2))
    }

    pub(super) fn figures(&mut self) {
        if self.code() {
            return;
        }
        let mut said = self.expression();
        // A range: 9:00-18:00, 3~5.
        if self.takes_range_sign(&said) {
            said = range(said, self.expression());
        }
        self.tokens.push(Token::Said(said));
    }

    /// Blanks around the sign only where it cannot be a dash between two sentences.
    fn takes_range_sign(&mut self, said: &Expression) -> bool {
        if matches!(said, Expression::Digits(_) | Expression::Internet { .. }) {
            return false;
        }
        let is_number = matches!(said, Expression::Number(_) | Expression::Counted(_));
        let blank = |at: usize| usize::from(!is_number && self.peek(at) == Some(' '));
        let sign = blank(0);
        let next = 2 * sign + 1;
        if blank(sign + 1) != sign {
            return false;
        }
        let is_negative = self.peek(next) == Some('-') && self.is_digit(next + 1);
        let is_range = matches!(self.peek(sign), Some('-' | '~'))
            && (self.is_digit(next) || self.is_currency(next) || is_negative);
        if is_range {
            self.at += next;
        }
        is_range
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
            Some('-') if self.is_currency(1) => {
                self.at += 1;
                self.amount(true)
            }
            Some('¥' | '$' | '€' | '£') => self.amount(false),
            Some('+') => self.international(),
            _ => self
                .date()
                .or_else(|| self.time())
                .or_else(|| self.internet())
                .or_else(|| self.dotted())
                .or_else(|| self.telephone())
                .or_else(|| self.ratio())
                .or_else(|| self.length_of_time())
                .unwrap_or_else(|| self.number()),
        }
    }

    /// An amount behind the sign of its currency.
    fn amount(&mut self, negative: bool) -> Expression {
        let sign = self.peek(0).unwrap_or('¥').to_string();
        self.at += 1 + usize::from(self.peek(1) == Some(' '));
        let currency = currency(&sign).unwrap_or(YUAN);
        let number = Numeral {
            negative,
            ..self.numeral()
        };
        self.scaled(currency, number)
    }

    pub(super) fn money(&mut self, currency: Currency) {
        let number = self.numeral();
        let said = self.scaled(currency, number);
        self.tokens.push(Token::Said(said));
    }

    /// With the word behind it that multiplies it, if there is one. ¥128元 says the currency twice.
    fn scaled(&mut self, currency: Currency, number: Numeral) -> Expression {
        let scale = self.takes_scale();
        self.at += usize::from(currency == YUAN && self.peek(0) == Some('元'));
        match scale {
            Some(scale) => Expression::ScaledMoney(currency, number, scale),
            None => Expression::Money(currency, number),
        }
    }

    fn takes_scale(&mut self) -> Option<Scale> {
        const WORDS: [(&str, Scale); 9] = [
            ("万", Scale::TenThousand),
            ("亿", Scale::HundredMillion),
            (" thousand", Scale::Thousand),
            (" million", Scale::Million),
            (" billion", Scale::Billion),
            ("K", Scale::Thousand),
            ("k", Scale::Thousand),
            ("M", Scale::Million),
            ("B", Scale::Billion),
        ];
        let rest: String = self.text[self.at..].iter().take(10).collect();
        let fits = |word: &str| {
            rest.strip_prefix(word).is_some_and(|behind| {
                let next = behind.chars().next();
                !(word.is_ascii() && next.is_some_and(|c| is_latin(c) || c.is_ascii_digit()))
            })
        };
        let (word, scale) = WORDS.into_iter().find(|(word, _)| fits(word))?;
        self.at += word.chars().count();
        Some(scale)
    }

    /// Addresses and versions, with more than one point: `192.168.1.100`, `2.10.3`.
    fn dotted(&mut self) -> Option<Expression> {
        let (groups, length) = self.groups('.', 8);
        (groups.len() >= 3).then(|| {
            self.at += length;
            Expression::Dotted(groups)
        })
    }

    /// `10.0.3.17`, `10.0.3.17:8080`, `10.0.0.0/24`.
    fn internet(&mut self) -> Option<Expression> {
        let (groups, length) = self.groups('.', 5);
        let is_byte = |group: &String| group.parse::<u8>().is_ok();
        if groups.len() != 4 || !groups.iter().all(is_byte) {
            return None;
        }
        self.at += length;
        let behind = self.run(self.at + 1);
        let (mut port, mut network) = (None, None);
        match self.peek(0) {
            Some(':') if (1..=5).contains(&behind.len()) => port = Some(behind.clone()),
            Some('/') if (1..=2).contains(&behind.len()) => {
                network = Some(Numeral::of_digits(&behind));
            }
            _ => {}
        }
        if port.is_some() || network.is_some() {
            self.at += 1 + behind.len();
        }
        Some(Expression::Internet {
            groups,
            port,
            network,
        })
    }

    /// Runs of digits with the same sign between them, and how many characters all of it has.
    pub(super) fn groups(&self, sign: char, limit: usize) -> (Vec<String>, usize) {
        let mut groups = vec![self.run(self.at)];
        let mut length = groups[0].len();
        while self.peek(length) == Some(sign) && self.is_digit(length + 1) && groups.len() < limit {
            let group = self.run(self.at + length + 1);
            length += 1 + group.len();
            groups.push(group);
        }
        (groups, length)
    }

    /// `3:1`. What could be a time has been taken as one.
    fn ratio(&mut self) -> Option<Expression> {
        let (groups, length) = self.groups(':', 3);
        let [from, to] = groups.as_slice() else {
            return None;
        };
        if from.len() > 4 || to.len() > 6 {
            return None;
        }
        self.at += length;
        let (from, to) = (Numeral::of_digits(from), Numeral::of_digits(to));
        Some(Expression::Ratio(from, to))
    }

    /// `1h30m`, `2m30s`; one part alone is a number with its unit.
    fn length_of_time(&mut self) -> Option<Expression> {
        let (mut parts, mut length) = (Vec::new(), 0);
        loop {
            let digits = self.run(self.at + length);
            let letter = self.peek(length + digits.len());
            let part = letter.and_then(part_of_time).filter(|_| !digits.is_empty());
            let Some(unit) = part else {
                break;
            };
            length += digits.len() + 1;
            parts.push(Expression::Measure(Numeral::of_digits(&digits), unit));
        }
        let ends = !self.peek(length).is_some_and(is_latin);
        (parts.len() >= 2 && ends).then(|| {
            self.at += length;
            Expression::Several(parts)
        })
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
        if let Some(said) = self.with_what_follows(start, &number) {
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

    /// A sign, unit, currency, ordinal ending or fraction directly behind a number.
    fn with_what_follows(&mut self, start: usize, number: &Numeral) -> Option<Expression> {
        let rest: String = self.text[self.at..].iter().take(LONGEST_UNIT).collect();
        let (said, length) = match rest.chars().next()? {
            '%' => (Expression::Percent(number.clone()), 1),
            ' ' if rest[1..].starts_with('%') => (Expression::Percent(number.clone()), 2),
            '‰' => (Expression::PerMille(number.clone()), 1),
            // 8.5折
            '折' if number.whole.len() == 1 && number.fraction.is_some() => {
                let tenths = number.fraction.iter();
                let digits = [&number.whole].into_iter().chain(tenths).cloned();
                (Expression::Digits(DigitGroups(vec![digits.collect()])), 0)
            }
            // Nobody pays a rate: it has no jiao and fen.
            '元' if self.text[..start].ends_with(&['兑'])
                || self.text[..start].ends_with(&['兑', '换']) =>
            {
                return None;
            }
            // 1.5万元 is not an amount in yuan, jiao and fen.
            '元' => (Expression::Money(YUAN, number.clone()), 1),
            '/' if number.is_plain() && self.is_digit(1) => return self.fraction(number),
            _ => self.measured(start, number, &rest)?,
        };
        self.at += length;
        Some(said)
    }

    /// `3/4`. What is more than a whole is no fraction: `150/95` is two numbers.
    fn fraction(&mut self, number: &Numeral) -> Option<Expression> {
        let start = self.at;
        self.at += 1;
        let lower = self.numeral();
        if (number.whole.as_str(), lower.whole.as_str()) == ("24", "7") {
            let both = [number.clone(), lower].map(Expression::Number);
            return Some(Expression::Several(both.into()));
        }
        let is_part = lower.fraction.is_none() && number.small() < lower.small();
        // 1/3 replicas
        if is_part && self.is_before_things() {
            return Some(Expression::OutOf(number.clone(), lower));
        }
        if is_part {
            return Some(Expression::Fraction(number.clone(), lower));
        }
        self.at = start;
        None
    }

    /// The number behind a hash.
    pub(super) fn numbered(&mut self) -> Token {
        let number = self.numeral();
        // 5号 says it by itself.
        Token::Said(match self.peek(0) {
            Some('号') => Expression::Number(number),
            _ => Expression::Numbered(number),
        })
    }

    /// With a word behind it that is a unit, a currency or the ending of an ordinal.
    fn measured(&self, start: usize, number: &Numeral, rest: &str) -> Option<(Expression, usize)> {
        let blank = rest.len() - rest.trim_start_matches(' ').len();
        if blank > 1 {
            return None;
        }
        let belongs = |c: &char| is_latin(*c) || "℃℉°/²³㎡μΩ".contains(*c);
        let word: String = rest[blank..].chars().take_while(belongs).collect();
        let word = match word.split_once('/') {
            Some((before, _)) if unit(&word, blank == 0).is_none() => before.to_owned(),
            _ => word,
        };
        if word.is_empty() {
            return None;
        }
        if blank == 0 && matches!(word.as_str(), "st" | "nd" | "rd" | "th") {
            return Some((Expression::Ordinal(number.clone()), 2));
        }
        let length = blank + word.chars().count();
        if let Some(currency) = currency(&word) {
            return Some((Expression::Money(currency, number.clone()), length));
        }
        // 1990s is no time.
        if word == "s" && number.is_like_a_year() {
            return None;
        }
        let minutes = (word == "m" && self.is_about_time(start)).then(|| part_of_time('m'));
        let unit = minutes.flatten().or_else(|| unit(&word, blank == 0))?;
        Some((Expression::Measure(number.clone(), unit), length))
    }
}

/// The currency of a range is said once, at its end.
fn range(from: Expression, to: Expression) -> Expression {
    let (from, to) = match (from, to) {
        (Expression::Money(currency, from), Expression::Number(to) | Expression::Counted(to)) => {
            (Expression::Number(from), Expression::Money(currency, to))
        }
        ends => ends,
    };
    Expression::Range(Box::new(from), Box::new(to))
}
