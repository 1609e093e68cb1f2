//! Exact amounts: whole millionths of the currency unit, never floating point.

use std::fmt;
use std::str::FromStr;

use super::wording::{Wording, wording};

const MILLIONTHS: i64 = 1_000_000;

/// An amount of money in millionths of the platform's currency unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Money(i64);

impl Money {
    pub const ZERO: Money = Money(0);

    pub const MAX: Money = Money(i64::MAX);

    pub const fn from_millionths(amount: i64) -> Self {
        Self(amount)
    }

    pub fn millionths(self) -> i64 {
        self.0
    }

    /// Saturates at nine million millions, because nobody bills that much.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self(self.0.saturating_mul(count.into()))
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Writes at least two decimals, and more only if they are needed: `12.50`, `0.035`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let amount = self.0.unsigned_abs();
        let (whole, rest) = (
            amount / MILLIONTHS.unsigned_abs(),
            amount % MILLIONTHS.unsigned_abs(),
        );
        let decimals = format!("{rest:06}");
        let kept = decimals.trim_end_matches('0').len().max(2);
        write!(f, "{sign}{whole}.{}", &decimals[..kept])
    }
}

impl FromStr for Money {
    type Err = Wording;

    fn from_str(text: &str) -> Result<Self, Wording> {
        let wrong = || {
            wording!(
                "`{text}` is not an amount: write it like 12.50, with at most six decimals",
                "`{text}` 不是金额，写法如 12.50，最多六位小数"
            )
        };
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(decimals) || decimals.len() > 6 {
            return Err(wrong());
        }
        let whole: i64 = whole.parse().map_err(|_| wrong())?;
        let rest: i64 = format!("{decimals:0<6}").parse().map_err(|_| wrong())?;
        let amount = whole
            .checked_mul(MILLIONTHS)
            .and_then(|w| w.checked_add(rest))
            .ok_or_else(wrong)?;
        Ok(Self(if negative { -amount } else { amount }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_read_as_people_write_them() {
        for (text, written) in [
            ("0", "0.00"),
            ("12.5", "12.50"),
            ("0.035", "0.035"),
            ("-3", "-3.00"),
            ("0.000001", "0.000001"),
        ] {
            assert_eq!(text.parse::<Money>().unwrap().to_string(), written);
        }
        for text in [
            "",
            ".5",
            "1.2345678",
            "1e3",
            "1,5",
            "99999999999999999999",
            "--1",
        ] {
            assert!(text.parse::<Money>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(amount in -i64::MAX..i64::MAX) {
            let money = Money::from_millionths(amount);
            prop_assert_eq!(money.to_string().parse::<Money>().unwrap(), money);
        }
    }
}
