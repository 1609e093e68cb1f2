//! Digits by their places, as dial plans write them.

use std::str::FromStr;

/// The most places of a pattern: no number is longer.
const LONGEST: usize = 15;

/// One set of digits for each place: `X` is any digit, `Z` is 1 to 9, `N` is 2 to 9, `[3-9]` or `[46]` is one of those, and a digit is itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigitPattern {
    /// The digits of each place, one bit each.
    places: Vec<u16>,
}

impl DigitPattern {
    pub fn matches(&self, digits: &str) -> bool {
        self.strip(digits) == Some("")
    }

    /// What follows a beginning that fits.
    pub fn strip<'a>(&self, digits: &'a str) -> Option<&'a str> {
        let (beginning, rest) = digits.split_at_checked(self.places.len())?;
        let mut pairs = beginning.bytes().zip(&self.places);
        pairs
            .all(|(byte, place)| byte.is_ascii_digit() && place & bit(byte) != 0)
            .then_some(rest)
    }

    /// The digits that every number of this pattern begins with.
    pub fn beginning(&self) -> String {
        let single = self
            .places
            .iter()
            .take_while(|place| place.is_power_of_two());
        single
            .filter_map(|place| char::from_digit(place.trailing_zeros(), 10))
            .collect()
    }
}

fn bit(digit: u8) -> u16 {
    1 << (digit - b'0')
}

fn range(from: u8, to: u8) -> Option<u16> {
    let sound = from.is_ascii_digit() && to.is_ascii_digit() && from <= to;
    sound.then(|| (from..=to).map(bit).sum())
}

/// The set between brackets, such as `3-9` or `46`.
fn set(text: &[u8]) -> Option<u16> {
    match text {
        [] => Some(0),
        [from, b'-', to, rest @ ..] => Some(range(*from, *to)? | set(rest)?),
        [digit, rest @ ..] => Some(range(*digit, *digit)? | set(rest)?),
    }
}

/// The first place of a pattern, and what follows it.
fn first_place(text: &str) -> Option<(u16, &str)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, rest) = rest.split_once(']')?;
        return Some((set(inside.as_bytes()).filter(|set| *set != 0)?, rest));
    }
    let byte = *text.as_bytes().first()?;
    let place = match byte {
        b'X' => range(b'0', b'9'),
        b'Z' => range(b'1', b'9'),
        b'N' => range(b'2', b'9'),
        digit => range(digit, digit),
    };
    Some((place?, &text[1..]))
}

impl FromStr for DigitPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut places, mut rest) = (Vec::new(), text);
        while let Some((place, after)) = first_place(rest) {
            places.push(place);
            rest = after;
        }
        if rest.is_empty() && (1..=LONGEST).contains(&places.len()) {
            return Ok(Self { places });
        }
        Err(format!(
            "`{text}` is no pattern of 1 to {LONGEST} digits: X is any digit, Z is 1 to 9, N is 2 to 9, [3-9] is one of these"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> DigitPattern {
        text.parse().unwrap()
    }

    #[test]
    fn each_place_has_its_digits() {
        for (text, fits, fails) in [
            (
                "1[3-9]X",
                &["130", "199"][..],
                &["120", "13", "1300", "1a0"][..],
            ),
            ("NZX0", &["2100"], &["1100", "2000", "2101"]),
            ("9[56]", &["95", "96"], &["94", "9", "９５"]),
            ("[13-57]", &["1", "4", "7"], &["2", "6", "", "é"]),
        ] {
            for digits in fits {
                assert!(pattern(text).matches(digits), "{text} {digits}");
            }
            for digits in fails {
                assert!(!pattern(text).matches(digits), "{text} {digits}");
            }
        }
        assert_eq!(pattern("2X").strip("2152"), Some("52"));
        assert_eq!(pattern("400XXX").beginning(), "400");
        assert_eq!(pattern("1[3-9]X").beginning(), "1");
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "",
            "x",
            "1[",
            "1]",
            "[]",
            "[9-3]",
            "[a]",
            "[3-]",
            "1.",
            "é",
            "XXXXXXXXXXXXXXXX",
        ] {
            let said = text.parse::<DigitPattern>().unwrap_err();
            assert!(said.contains("is no pattern"), "{text}: {said}");
        }
    }
}
