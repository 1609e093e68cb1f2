//! How numbers are written in the platform's country, which of them are whole, and which are refused.

use super::digit_pattern::DigitPattern;
use super::number_pattern::NumberPattern;
use super::status_code::{Refusal, StatusCode};
use super::wording::wording;

/// Length of national numbers where the plan does not say how they look. No number is shorter than `110`; the country code has one digit at least.
const LENGTHS: std::ops::RangeInclusive<usize> = 3..=14;
/// Where the plan does not say: a longer number that begins with the country code has it.
const LONGEST_WITHOUT_CODE: usize = 10;
/// Length of an area code where the plan does not say.
const AREA_CODE: std::ops::RangeInclusive<usize> = 2..=4;
/// The digits that a number must always begin with for a dash to follow them: `400-8001234`, but not `138-0000-0000`.
const DASHED_BEGINNING: usize = 3;

#[derive(Debug, Clone)]
pub struct NumberingPlan {
    pub country_code: String,
    pub international_prefix: String,
    pub trunk_prefix: String,
    pub area_codes: Vec<DigitPattern>,
    /// What follows an area code.
    pub local_numbers: Vec<DigitPattern>,
    /// Numbers without an area code: mobile numbers and the like.
    pub national_numbers: Vec<DigitPattern>,
    /// Short numbers, with or without an area code.
    pub service_numbers: Vec<DigitPattern>,
    /// Canonical digits of the number that is shown if a request may not choose one.
    pub default_caller: Option<String>,
    pub emergency: Vec<String>,
    pub forbidden: Vec<NumberPattern>,
    pub permitted: Vec<NumberPattern>,
    /// Numbers behind which there are many telephones.
    pub switchboards: Vec<NumberPattern>,
    /// Each of them counts as so many callees.
    pub switchboard_lines: u32,
}

impl NumberingPlan {
    /// The national part of a number that was dialled within the country, with or without the country code.
    pub(super) fn national_part<'a>(&self, digits: &'a str) -> Option<&'a str> {
        if self.without_trunk_prefix(digits) != digits {
            return Some(digits);
        }
        let is_long = self.says_nothing() && digits.len() > LONGEST_WITHOUT_CODE;
        if self.is_whole_as_dialled(digits) && !(is_long && digits.starts_with(&self.country_code))
        {
            return Some(digits);
        }
        // Some clients write the country code without its plus.
        let behind_code = digits.strip_prefix(self.country_code.as_str());
        let behind_code =
            behind_code.filter(|national| self.is_whole(self.without_trunk_prefix(national)));
        // And some leave out the 0 before the area code.
        behind_code.or_else(|| self.is_landline(digits).then_some(digits))
    }

    /// Returns the canonical digits of a national number, with or without its trunk prefix.
    pub(super) fn canonical(&self, national: &str) -> Result<String, Refusal> {
        let significant = self.without_trunk_prefix(national);
        if self.is_whole(significant) {
            return Ok(format!("{}{significant}", self.country_code));
        }
        Err(self.not_whole())
    }

    pub(super) fn not_whole(&self) -> Refusal {
        let code = &self.country_code;
        let rule = wording!(
            "to must be a whole number of country code {code}: a mobile number, a landline number with its area code, or a service number; a foreign number begins with '+'",
            "应为国家码 {code} 的完整号码：手机号、带区号的固话或服务号码；国际号码以 + 开头"
        );
        Refusal::worded(StatusCode::FieldWrong, &rule)
    }

    fn without_trunk_prefix<'a>(&self, digits: &'a str) -> &'a str {
        match self.trunk_prefix.as_str() {
            "" => digits,
            prefix => digits.trim_start_matches(prefix),
        }
    }

    fn is_whole(&self, significant: &str) -> bool {
        self.is_whole_as_dialled(significant)
            || self.is_landline(significant)
            || self
                .behind_area_codes(significant)
                .any(|rest| self.is_service(rest))
    }

    /// Whether it is whole without an area code.
    fn is_whole_as_dialled(&self, digits: &str) -> bool {
        if self.says_nothing() {
            return LENGTHS.contains(&digits.len());
        }
        matches_one(&self.national_numbers, digits) || self.is_service(digits)
    }

    fn is_service(&self, digits: &str) -> bool {
        matches_one(&self.service_numbers, digits) || self.emergency.iter().any(|one| one == digits)
    }

    /// The numbers of China. `config.default.toml` lists them too, for people.
    pub fn write_out_china(&mut self) {
        fn patterns(text: &str) -> Vec<DigitPattern> {
            let parsed = text.split(' ').map(str::parse);
            parsed.collect::<Result<_, _>>().expect("they are patterns")
        }
        self.area_codes = patterns("10 2X [3-9]XX");
        self.local_numbers = patterns("NXXXXXX NXXXXXXX");
        self.national_numbers = patterns("1[3-9]XXXXXXXXX 400XXXXXXX 800XXXXXXX");
        self.service_numbers = patterns(
            "1[0-2]X 10XXX 111XX 12XXX 11[4-8]XXX 10XXXXX 101XXXXX 16XXXXXX 9[56]XXX 9[56]XXXX 9[56]XXXXX 9[56]XXXXXX",
        );
    }

    /// Whether nothing is known of the numbers of this country. Then every one of a usual length is whole.
    pub fn says_nothing(&self) -> bool {
        self.area_codes.is_empty()
            && self.national_numbers.is_empty()
            && self.service_numbers.is_empty()
    }

    fn is_landline(&self, significant: &str) -> bool {
        let mut behind = self.behind_area_codes(significant);
        behind.any(|local| matches_one(&self.local_numbers, local))
    }

    fn behind_area_codes<'a>(&'a self, significant: &'a str) -> impl Iterator<Item = &'a str> {
        let codes = self.area_codes.iter();
        codes.filter_map(move |code| code.strip(significant))
    }

    /// Whether a dash after these digits is inside a number: after an area code with its 0, and after the beginning of a number such as `400`.
    pub(super) fn goes_on_after(&self, beginning: &str) -> bool {
        let area = beginning.strip_prefix(self.trunk_prefix.as_str());
        let is_area = area.is_some_and(|area| matches_one(&self.area_codes, area));
        if is_area && !self.trunk_prefix.is_empty() {
            return true;
        }
        let mut numbers = self.national_numbers.iter();
        beginning.len() >= DASHED_BEGINNING && numbers.any(|number| number.beginning() == beginning)
    }

    /// What canonical digits mean to a network: the rules hold for each. `010110` reaches the police of Beijing as `110` does, and some networks
    /// pass over a 0 behind a foreign country code.
    pub(super) fn readings(&self, digits: &str) -> Vec<String> {
        let mut readings = vec![digits.to_owned()];
        match digits.strip_prefix(&self.country_code) {
            Some(national) => {
                let behind = self.behind_area_codes(national);
                let services = behind.filter(|rest| self.is_service(rest));
                readings.extend(services.map(|service| format!("{}{service}", self.country_code)));
                // Some networks take the country code for itself wherever it stands.
                let twice = national.strip_prefix(&self.country_code);
                let twice = twice.map(|rest| self.without_trunk_prefix(rest));
                let twice = twice.filter(|rest| self.is_whole(rest));
                readings.extend(twice.map(|rest| format!("{}{rest}", self.country_code)));
            }
            None => readings.extend((1..=3).filter_map(|length| {
                let (code, rest) = digits.split_at_checked(length)?;
                let bare = rest.trim_start_matches('0');
                (bare.len() < rest.len()).then(|| format!("{code}{bare}"))
            })),
        }
        readings
    }

    pub(super) fn is_emergency(&self, digits: &str) -> bool {
        let Some(national) = digits.strip_prefix(&self.country_code) else {
            return false;
        };
        self.emergency.iter().any(|number| {
            let before = national.strip_suffix(number.as_str());
            before.is_some_and(|area| {
                area.is_empty() || self.says_nothing() && AREA_CODE.contains(&area.len())
            })
        })
    }
}

fn matches_one(patterns: &[DigitPattern], digits: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(digits))
}

#[cfg(test)]
impl NumberingPlan {
    /// For tests that need a plan.
    pub fn china() -> Self {
        let mut plan = Self {
            country_code: "86".into(),
            international_prefix: "00".into(),
            trunk_prefix: "0".into(),
            area_codes: vec![],
            local_numbers: vec![],
            national_numbers: vec![],
            service_numbers: vec![],
            default_caller: None,
            emergency: vec!["110".into(), "119".into(), "120".into()],
            forbidden: vec!["+86168*".parse().unwrap()],
            permitted: vec![],
            switchboards: vec![],
            switchboard_lines: 10,
        };
        plan.write_out_china();
        plan
    }
}
