//! The beginning of a number, as rates and routes use it.

use std::fmt;
use std::str::FromStr;

use super::wording::{Wording, wording};

/// The beginning of canonical numbers: the country code and the digits after it. An empty prefix means all numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(String);

impl Prefix {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns every prefix of a number, the shortest first.
    pub fn all_of(digits: &str) -> Vec<&str> {
        (0..=digits.len())
            .filter_map(|end| digits.get(..end))
            .collect()
    }
}

impl FromStr for Prefix {
    type Err = Wording;

    fn from_str(text: &str) -> Result<Self, Wording> {
        if text == "*" || text.is_empty() {
            return Ok(Self::default());
        }
        let digits = text.strip_prefix('+').unwrap_or(text);
        let digits = digits.strip_suffix('*').unwrap_or(digits);
        let right = (1..=20).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        if right {
            Ok(Self(digits.to_owned()))
        } else {
            Err(wording!(
                "`{text}` is not a prefix: write it like +86138, or * for all numbers",
                "`{text}` 不是号码前缀，写法如 +86138，* 表示所有号码"
            ))
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str("*")
        } else {
            write!(f, "+{}", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_written_as_people_write_them() {
        for (text, wanted) in [
            ("+86138", "+86138"),
            ("86138*", "+86138"),
            ("*", "*"),
            ("", "*"),
        ] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), wanted);
        }
        assert!("abc".parse::<Prefix>().is_err());
        assert_eq!(Prefix::all_of("861"), ["", "8", "86", "861"]);
    }
}
