//! What is written in figures and said in words, before it is known in which language.

use super::numerals::{DigitGroups, Numeral};
use super::units::{Currency, Unit};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    Number(Numeral),
    /// 2 before a measure word: Chinese has a second word for it.
    Counted(Numeral),
    Ordinal(Numeral),
    /// `#5`.
    Numbered(Numeral),
    Digits(DigitGroups),
    /// Groups of digits with points between them.
    Dotted(Vec<String>),
    /// An address of the internet, with its port or the length of its network where there is one.
    Internet {
        groups: Vec<String>,
        port: Option<String>,
        network: Option<Numeral>,
    },
    Year(String),
    Date {
        year: Option<String>,
        month: u32,
        day: u32,
    },
    Time(Time),
    Money(Currency, Numeral),
    /// `¥1.2万`, `$3 million`.
    ScaledMoney(Currency, Numeral, Scale),
    Percent(Numeral),
    PerMille(Numeral),
    Measure(Numeral, Unit),
    Fraction(Numeral, Numeral),
    /// `1/3 replicas`.
    OutOf(Numeral, Numeral),
    /// `3:1`.
    Ratio(Numeral, Numeral),
    /// `1h30m`.
    Several(Vec<Expression>),
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

/// A word behind a number that multiplies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    TenThousand,
    HundredMillion,
    Thousand,
    Million,
    Billion,
}

impl Scale {
    /// Where Chinese has a word for it.
    pub fn chinese(self) -> Option<&'static str> {
        match self {
            Self::TenThousand => Some("万"),
            Self::HundredMillion => Some("亿"),
            _ => None,
        }
    }

    /// Where English has a word for it.
    pub fn english(self) -> Option<&'static str> {
        match self {
            Self::Thousand => Some("thousand"),
            Self::Million => Some("million"),
            Self::Billion => Some("billion"),
            _ => None,
        }
    }

    pub fn zeros(self) -> usize {
        match self {
            Self::Thousand => 3,
            Self::TenThousand => 4,
            Self::Million => 6,
            Self::HundredMillion => 8,
            Self::Billion => 9,
        }
    }
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
    MoreThan,
    LessThan,
    AtLeast,
    AtMost,
    PlusOrMinus,
    About,
    /// Between the ends of a range.
    To,
}

impl Symbol {
    pub fn chinese(self) -> &'static str {
        match self {
            Self::And => "和",
            Self::Plus => "加",
            Self::Equals => "等于",
            Self::Times => "乘",
            Self::Hash => "井号",
            Self::Star => "星号",
            Self::MoreThan => "大于",
            Self::LessThan => "小于",
            Self::AtLeast => "大于等于",
            Self::AtMost => "小于等于",
            Self::PlusOrMinus => "正负",
            Self::About => "约",
            Self::To => "到",
        }
    }

    pub fn english(self) -> &'static str {
        match self {
            Self::And => "and",
            Self::Plus => "plus",
            Self::Equals => "equals",
            Self::Times => "times",
            Self::Hash => "pound key",
            Self::Star => "star",
            Self::MoreThan => "more than",
            Self::LessThan => "less than",
            Self::AtLeast => "at least",
            Self::AtMost => "at most",
            Self::PlusOrMinus => "plus or minus",
            Self::About => "about",
            Self::To => "to",
        }
    }
}
