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
