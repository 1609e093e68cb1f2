//! The name of a voice, by which applications and requests ask for it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::wording::{Wording, wording};

const LONGEST: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VoiceName(String);

impl VoiceName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VoiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for VoiceName {
    type Err = Wording;

    fn from_str(text: &str) -> Result<Self, Wording> {
        let belongs = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_name = (1..=LONGEST).contains(&text.len()) && text.chars().all(belongs);
        if is_name {
            return Ok(Self(text.to_owned()));
        }
        Err(wording!(
            "the name of a voice has 1 to {LONGEST} letters, digits, - or _",
            "发音人名称为 1 到 {LONGEST} 位字母、数字、- 或 _"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for name in ["a", "natural-en", "A_1", &"x".repeat(32)] {
            assert_eq!(name.parse::<VoiceName>().unwrap().as_str(), name);
        }
        for name in ["", "a b", "é", "a/b", &"x".repeat(33)] {
            assert!(name.parse::<VoiceName>().is_err(), "{name}");
        }
    }
}
