//! What is written in figures and said in words, before it is known in which language.

use super::numerals::{DigitGroups, Numeral};
use super::units::{Currency, Unit};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    Number(Numeral),
    /// 2 before a measure word: Chinese has a second word for it.
    Counted(Numeral),
    Ordinal(Numeral),
    Digits(DigitGroups),
    /// Groups of digits with points between them.
    Dotted(Vec<String>),
    Year(String),
    Date {
        year: Option<String>,
        month: u32,
        day: u32,
    },
    Time(Time),
    Money(Currency, Numeral),
    Percent(Numeral),
    PerMille(Numeral),
    Measure(Numeral, Unit),
    Fraction(Numeral, Numeral),
    Range(Box<Expression>, Box<Expression>),
    Symbol(Symbol),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time {
    pub hour: u32,
    pub minute: u32,
    pub second: Option<u32>,
    /// Said to be before or after noon by the text itself.
    pub half: Option<Half>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Morning,
    Afternoon,
}

/// Signs that people say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol {
    And,
    Plus,
    Equals,
    Times,
    Hash,
    Star,
    Above,
    Below,
    AtLeast,
    AtMost,
}
