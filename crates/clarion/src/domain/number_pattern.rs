//! Numbers by their canonical digits: which are forbidden, permitted, shown, or switchboards.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::wording::{Wording, wording};

/// E.164 allows fifteen digits, country code included.
const LONGEST: usize = 15;

/// An exact number (`+864001234567`) or, with a star at the end, all numbers with a prefix (`+86400*`). The `+` is optional, because
/// patterns are always canonical, country code first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct NumberPattern {
    digits: String,
    prefix: bool,
}

impl NumberPattern {
    pub fn matches(&self, digits: &str) -> bool {
        if self.prefix {
            digits.starts_with(&self.digits)
        } else {
            digits == self.digits
        }
    }
}

pub fn matches_any(patterns: &[NumberPattern], digits: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(digits))
}

impl fmt::Display for NumberPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}{}", self.digits, if self.prefix { "*" } else { "" })
    }
}

impl TryFrom<String> for NumberPattern {
    type Error = Wording;

    fn try_from(text: String) -> Result<Self, Wording> {
        text.parse()
    }
}

impl From<NumberPattern> for String {
    fn from(pattern: NumberPattern) -> Self {
        pattern.to_string()
    }
}

impl FromStr for NumberPattern {
    type Err = Wording;

    fn from_str(text: &str) -> Result<Self, Wording> {
        let bare = text.strip_prefix('+').unwrap_or(text);
        let (digits, prefix) = bare
            .strip_suffix('*')
            .map_or((bare, false), |digits| (digits, true));
        let sound = (1..=LONGEST).contains(&digits.len())
            && digits.bytes().all(|b| b.is_ascii_digit())
            && !digits.starts_with('0');
        if sound {
            Ok(Self {
                digits: digits.to_owned(),
                prefix,
            })
        } else {
            Err(wording!(
                "`{text}` is not a number pattern: write country code and number, as +864001234567, or a prefix with a star, as +86400*",
                "`{text}` 写法有误：写带国家码的号码，如 +864001234567，或以星号结尾的前缀，如 +86400*"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_exact_numbers_or_prefixes() {
        let exact: NumberPattern = "+864001234567".parse().unwrap();
        let prefix: NumberPattern = "86400*".parse().unwrap();
        assert!(exact.matches("864001234567") && !exact.matches("8640012345678"));
        assert!(prefix.matches("864009999999") && !prefix.matches("86755"));
        assert_eq!(
            (exact.to_string(), prefix.to_string()),
            ("+864001234567".into(), "+86400*".into())
        );
        for text in ["", "*", "+", "abc", "0400*", "40*0"] {
            assert!(text.parse::<NumberPattern>().is_err(), "{text}");
        }
    }
}
