//! A number as it was written: digits before and behind the point, without its thousands separators.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Numeral {
    pub negative: bool,
    pub whole: String,
    pub fraction: Option<String>,
}

impl Numeral {
    pub fn is_plain(&self) -> bool {
        !self.negative && self.fraction.is_none()
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
