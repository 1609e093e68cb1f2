//! A number as it was written: digits before and behind the point, without its thousands separators.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Numeral {
    pub negative: bool,
    pub whole: String,
    pub fraction: Option<String>,
}

impl Numeral {
    pub fn of_digits(digits: &str) -> Self {
        Self {
            negative: false,
            whole: digits.to_owned(),
            fraction: None,
        }
    }

    pub fn is_plain(&self) -> bool {
        !self.negative && self.fraction.is_none()
    }

    /// With the point moved so many places, as `1.5e+06` says it. What nobody could say stays as it is.
    #[must_use]
    pub fn shifted(mut self, places: i32) -> Self {
        const MOST: i32 = 15;
        if places.abs() > MOST {
            return self;
        }
        let mut fraction = self.fraction.take().unwrap_or_default();
        for _ in 0..places {
            let digit = if fraction.is_empty() {
                '0'
            } else {
                fraction.remove(0)
            };
            self.whole.push(digit);
        }
        for _ in places..0 {
            let digit = self.whole.pop().unwrap_or('0');
            fraction.insert(0, digit);
        }
        let whole = self.whole.trim_start_matches('0').to_owned();
        self.whole = if whole.is_empty() {
            "0".to_owned()
        } else {
            whole
        };
        self.fraction =
            Some(fraction.trim_end_matches('0').to_owned()).filter(|digits| !digits.is_empty());
        self
    }

    /// A number with so many digits that a program must have written it, rounded to what people say: two digits that count.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        const SAID: usize = 2;
        const MOST: usize = 4;
        let Some(fraction) = self.fraction.take_if(|digits| digits.len() > MOST) else {
            return self;
        };
        let is_zero = self.whole.bytes().all(|digit| digit == b'0');
        let zeros = fraction.bytes().take_while(|digit| *digit == b'0').count();
        let kept = if is_zero { zeros + SAID } else { SAID }.min(fraction.len());
        let rounds_up = fraction
            .as_bytes()
            .get(kept)
            .is_some_and(|digit| *digit >= b'5');
        let mut digits: Vec<u8> = [self.whole.as_bytes(), &fraction.as_bytes()[..kept]].concat();
        if rounds_up {
            let mut place = digits.len();
            loop {
                let Some(before) = place.checked_sub(1) else {
                    digits.insert(0, b'1');
                    break;
                };
                place = before;
                if digits[place] < b'9' {
                    digits[place] += 1;
                    break;
                }
                digits[place] = b'0';
            }
        }
        let digits = String::from_utf8(digits).unwrap_or_default();
        let (whole, fraction) = digits.split_at(digits.len() - kept);
        let fraction = fraction.trim_end_matches('0').to_owned();
        whole.clone_into(&mut self.whole);
        self.fraction = Some(fraction).filter(|digits| !digits.is_empty());
        self
    }

    /// A hundred times as much has two more zeros.
    pub fn with_zeros(&self, zeros: usize) -> Self {
        let fraction = self.fraction.as_deref().unwrap_or_default();
        let (moved, left) = fraction.split_at(zeros.min(fraction.len()));
        let missing = "0".repeat(zeros - moved.len());
        let left = left.trim_end_matches('0');
        Self {
            negative: self.negative,
            whole: format!("{}{moved}{missing}", self.whole),
            fraction: (!left.is_empty()).then(|| left.to_owned()),
        }
    }

    /// Without zeros at the end of the fraction.
    pub fn shortest(&self) -> Self {
        self.with_zeros(0)
    }

    pub fn is_like_a_year(&self) -> bool {
        let is_near = |year| (1800..=2199).contains(&year);
        self.whole.len() == 4 && self.small().is_some_and(is_near)
    }

    /// The value, where it is small enough to be a day, an hour or a year.
    pub fn small(&self) -> Option<u32> {
        (self.is_plain() && self.whole.len() <= 6).then(|| self.whole.parse().ok())?
    }
}

/// Digits one by one, in the groups in which people say them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DigitGroups(pub Vec<String>);

impl DigitGroups {
    /// A number that begins with its country code: that of China is a group of its own, and what follows is grouped as at home.
    pub fn international(digits: &str) -> Self {
        let home = digits.strip_prefix("86").filter(|home| home.len() >= 8);
        match home {
            Some(home) => {
                let mut groups = vec!["86".to_owned()];
                groups.extend(Self::of(home).0);
                Self(groups)
            }
            None => Self::of(digits),
        }
    }

    /// Telephone numbers in the usual groups, others in groups that one remembers.
    pub fn of(digits: &str) -> Self {
        let sizes: &[usize] = match digits.len() {
            0..=5 => &[5],
            6 => &[3, 3],
            7 => &[3, 4],
            8 => &[4, 4],
            10 if digits.starts_with("400") || digits.starts_with("800") => &[3, 3, 4],
            11 if digits.starts_with('1') => &[3, 4, 4],
            11 if digits.starts_with("01") || digits.starts_with("02") => &[3, 4, 4],
            12 if digits.starts_with('0') => &[4, 4, 4],
            _ => &[4],
        };
        let mut groups = Vec::new();
        let mut rest = digits;
        let mut place = 0;
        while !rest.is_empty() {
            let size = sizes[place.min(sizes.len() - 1)].min(rest.len());
            let (group, others) = rest.split_at(size);
            groups.push(group.to_owned());
            rest = others;
            place += 1;
        }
        Self(groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeral(text: &str) -> Numeral {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction.to_owned())),
            None => (text, None),
        };
        Numeral {
            negative: false,
            whole: whole.to_owned(),
            fraction,
        }
    }

    fn shown(number: &Numeral) -> String {
        match &number.fraction {
            Some(fraction) => format!("{}.{fraction}", number.whole),
            None => number.whole.clone(),
        }
    }

    #[test]
    fn what_a_program_has_written_is_rounded_to_what_people_say() {
        for (written, said) in [
            ("95.34883720930233", "95.35"),
            ("99.99999", "100"),
            ("0.0034567", "0.0035"),
            ("0.00001", "0.00001"),
            ("3.1416", "3.1416"),
            ("12.00001", "12"),
            ("7", "7"),
        ] {
            assert_eq!(shown(&numeral(written).shortened()), said, "{written}");
        }
    }

    #[test]
    fn an_exponent_moves_the_point() {
        for (written, places, said) in [
            ("1.5", 6, "1500000"),
            ("1.234567", 3, "1234.567"),
            ("5", -3, "0.005"),
            ("12.5", -1, "1.25"),
            ("1", 99, "1"),
        ] {
            assert_eq!(
                shown(&numeral(written).shifted(places)),
                said,
                "{written} {places}"
            );
        }
    }
}
