//! One canonical form for every called number, made once, when a call is accepted.
//!
//! `+86110`, `0086110` and `110` are one number to every rule: allow-lists, emergency and premium rules, frequency caps, rates and the
//! comparison with displayNum all read the canonical digits, never the text that the client sent.

use std::fmt;
use std::str::FromStr;

use super::status_code::{Refusal, StatusCode};

/// E.164 allows fifteen digits, country code included.
const LONGEST: usize = 15;
/// No telephone number is shorter than `110`.
const SHORTEST_NATIONAL: usize = 3;
/// Length of a foreign number with its country code. Shorter ones are foreign service numbers, which do not work across borders.
const SHORTEST_FOREIGN: usize = 7;
const LONGEST_EXTENSION: usize = 12;

/// How numbers are written in the platform's country, and which numbers are refused.
#[derive(Debug, Clone)]
pub struct NumberingPlan {
    pub country_code: String,
    pub international_prefix: String,
    pub trunk_prefix: String,
    pub longest_national: usize,
    pub local_lengths: Vec<usize>,
    /// Canonical digits of the number that is shown if a request may not choose one.
    pub default_caller: Option<String>,
    pub emergency: Vec<String>,
    pub forbidden: Vec<NumberPattern>,
    pub permitted: Vec<NumberPattern>,
}

/// A called number in canonical form, with its extension kept apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhoneNumber {
    digits: String,
    extension: Option<String>,
}

impl PhoneNumber {
    /// Returns the digits, country code first.
    pub fn digits(&self) -> &str {
        &self.digits
    }

    pub fn extension(&self) -> Option<&str> {
        self.extension.as_deref()
    }

    /// Returns who is called. Each extension behind a switchboard is a different callee.
    pub fn callee(&self) -> String {
        match &self.extension {
            Some(extension) => format!("{}-{extension}", self.digits),
            None => self.digits.clone(),
        }
    }

    /// Makes a number from stored digits, which are canonical already.
    pub fn from_stored(digits: String, extension: Option<String>) -> Self {
        Self { digits, extension }
    }

    /// Reads `to` as clients write it: `13800000000`, `01052823298`, `01052823298-3627`, `0086138…`, `+86138…`.
    pub fn parse(text: &str, plan: &NumberingPlan) -> Result<Self, Refusal> {
        let (number, extension) = match text.split_once('-') {
            Some((number, extension)) => (number, Some(extension)),
            None => (text, None),
        };
        if let Some(extension) = extension {
            let fits = (1..=LONGEST_EXTENSION).contains(&extension.len());
            if !fits
                || !extension
                    .bytes()
                    .all(|b| b.is_ascii_digit() || b == b'*' || b == b'#')
            {
                return Err(Refusal::field(format!(
                    "to: the extension after '-' must be 1 to {LONGEST_EXTENSION} of the characters 0-9 * #"
                )));
            }
        }
        let digits = canonical(number, plan)?;
        Ok(Self {
            digits,
            extension: extension.map(str::to_owned),
        })
    }

    /// Refuses emergency and forbidden numbers, unless the operator has named them as permitted.
    pub fn check_allowed(&self, plan: &NumberingPlan) -> Result<(), Refusal> {
        if plan
            .permitted
            .iter()
            .any(|pattern| pattern.matches(&self.digits))
        {
            return Ok(());
        }
        if plan.is_emergency(&self.digits) {
            return Err(Refusal::new(
                StatusCode::CalledNotAllowed,
                "to: emergency numbers are not called",
            ));
        }
        if plan
            .forbidden
            .iter()
            .any(|pattern| pattern.matches(&self.digits))
        {
            return Err(Refusal::new(
                StatusCode::CalledNotAllowed,
                "to: numbers with this prefix are not called",
            ));
        }
        Ok(())
    }
}

/// Writes the number for logs: enough to recognise a known number, not enough to learn an unknown one.
impl fmt::Display for PhoneNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = &self.digits;
        if digits.len() < 9 {
            return write!(f, "+{}…", &digits[..2]);
        }
        write!(
            f,
            "+{}****{}",
            &digits[..digits.len() - 8],
            &digits[digits.len() - 4..]
        )
    }
}

fn canonical(number: &str, plan: &NumberingPlan) -> Result<String, Refusal> {
    let (international, digits) = match number.strip_prefix('+') {
        Some(rest) => (true, rest),
        None => match number.strip_prefix(plan.international_prefix.as_str()) {
            Some(rest) if !plan.international_prefix.is_empty() => (true, rest),
            _ => (false, number),
        },
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Refusal::field(
            "to must be one telephone number: digits with an optional leading '+', and '-' only before an extension",
        ));
    }
    // No national number is that long, so a longer number must already have the country code. Some clients send it without a '+'.
    let carries_country = international
        || (digits.len() > plan.longest_national && digits.starts_with(&plan.country_code));
    if !carries_country {
        check_area_code(digits, plan)?;
        return national(digits, plan);
    }
    match digits.strip_prefix(plan.country_code.as_str()) {
        // A number that keeps the 0 of its area code (`+86 010 …`) is the same number.
        Some(rest) => national(rest, plan),
        None if digits.starts_with('0') => Err(Refusal::field("to: no country code begins with 0")),
        None if (SHORTEST_FOREIGN..=LONGEST).contains(&digits.len()) => Ok(digits.to_owned()),
        None => Err(Refusal::field(format!(
            "to: an international number has {SHORTEST_FOREIGN} to {LONGEST} digits with its country code"
        ))),
    }
}

/// Refuses a number without its area code. Only a number without any prefix can lack it: it always follows the long-distance prefix or the
/// country code.
fn check_area_code(digits: &str, plan: &NumberingPlan) -> Result<(), Refusal> {
    let with_area_code =
        !plan.trunk_prefix.is_empty() && digits.starts_with(plan.trunk_prefix.as_str());
    // Service numbers of these lengths begin with 1 or 9. Any other number is a subscriber's number that lacks its area code.
    let local = plan.local_lengths.contains(&digits.len()) && !digits.starts_with(['1', '9']);
    if local && !with_area_code {
        return Err(Refusal::field(
            "to: a landline number carries the area code",
        ));
    }
    Ok(())
}

fn national(digits: &str, plan: &NumberingPlan) -> Result<String, Refusal> {
    let significant = match plan.trunk_prefix.as_str() {
        "" => digits,
        prefix => digits.trim_start_matches(prefix),
    };
    if !(SHORTEST_NATIONAL..=plan.longest_national).contains(&significant.len()) {
        return Err(Refusal::field(format!(
            "to: a national number has {SHORTEST_NATIONAL} to {} digits (write an extension after '-', and no '-' after the area code)",
            plan.longest_national
        )));
    }
    Ok(format!("{}{significant}", plan.country_code))
}

impl NumberingPlan {
    /// Returns whether this is an emergency number, alone or after an area code: `010110` reaches the police of Beijing just as `110` does.
    fn is_emergency(&self, digits: &str) -> bool {
        let Some(national) = digits.strip_prefix(&self.country_code) else {
            return false;
        };
        self.emergency.iter().any(|number| {
            national
                .strip_suffix(number.as_str())
                .is_some_and(|area| matches!(area.len(), 0 | 2 | 3))
        })
    }
}

/// An exact number (`+864001234567`) or, with a star at the end, all numbers with a prefix (`+86400*`). The `+` is optional, because
/// patterns are always canonical, country code first.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl fmt::Display for NumberPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}{}", self.digits, if self.prefix { "*" } else { "" })
    }
}

impl FromStr for NumberPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
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
            Err(format!(
                "`{text}` is not a number pattern: write country code and number, as +864001234567, or a prefix with a star, as +86400*"
            ))
        }
    }
}

#[cfg(test)]
impl NumberingPlan {
    /// For tests that need a plan.
    pub fn china() -> Self {
        Self {
            country_code: "86".into(),
            international_prefix: "00".into(),
            trunk_prefix: "0".into(),
            longest_national: 11,
            local_lengths: vec![7, 8],
            default_caller: None,
            emergency: vec!["110".into(), "119".into(), "120".into()],
            forbidden: vec!["+86168*".parse().unwrap()],
            permitted: vec![],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Result<(String, Option<String>), Refusal> {
        PhoneNumber::parse(text, &NumberingPlan::china()).map(|n| (n.digits, n.extension))
    }

    #[test]
    fn one_number_has_one_canonical_form_however_it_is_written() {
        for (canonical, written) in [
            (
                "8613800000000",
                &[
                    "13800000000",
                    "013800000000",
                    "+8613800000000",
                    "008613800000000",
                    "8613800000000",
                ][..],
            ),
            (
                "861052823298",
                &[
                    "01052823298",
                    "+861052823298",
                    "00861052823298",
                    "+8601052823298",
                ],
            ),
            ("86110", &["110", "+86110", "0086110", "+860110"]),
            ("864001234567", &["4001234567", "+864001234567"]),
            ("8695588", &["95588"]),
            ("8675595588", &["075595588", "+8675595588", "0086075595588"]),
            ("12125550123", &["+12125550123", "0012125550123"]),
        ] {
            for text in written {
                assert_eq!(parsed(text).unwrap().0, canonical, "{text}");
            }
        }
    }

    #[test]
    fn an_extension_is_kept_apart() {
        assert_eq!(
            parsed("01052823298-3627").unwrap(),
            ("861052823298".into(), Some("3627".into()))
        );
        assert_eq!(parsed("01052823298-1*2#").unwrap().1, Some("1*2#".into()));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "+",
            "00",
            "-1",
            "abc",
            "1380000000a",
            "138 0000 0000",
            "12",
            "52823298",
            "010-52823298",
            "01052823298-",
            "01052823298-36-27",
            "+01234567",
            "000123",
            "139000000001",
            "+123456",
            "+1234567890123456",
            "１３８００００００００",
            "13800000000;13900000000",
        ] {
            assert_eq!(
                parsed(text).unwrap_err().code,
                StatusCode::FieldWrong,
                "{text}"
            );
        }
    }

    #[test]
    fn emergency_and_premium_numbers_are_refused_in_every_spelling() {
        let mut plan = NumberingPlan::china();
        for text in [
            "110",
            "+86110",
            "0086110",
            "010110",
            "0755120",
            "16812345",
            "+8616812345",
        ] {
            let number = PhoneNumber::parse(text, &plan).unwrap();
            assert_eq!(
                number.check_allowed(&plan).unwrap_err().code,
                StatusCode::CalledNotAllowed,
                "{text}"
            );
        }
        for text in ["13800000110", "01052823110", "95588"] {
            assert!(
                PhoneNumber::parse(text, &plan)
                    .unwrap()
                    .check_allowed(&plan)
                    .is_ok(),
                "{text}"
            );
        }
        plan.permitted = vec!["+86120".parse().unwrap()];
        assert!(
            PhoneNumber::parse("120", &plan)
                .unwrap()
                .check_allowed(&plan)
                .is_ok()
        );
        assert!(
            PhoneNumber::parse("110", &plan)
                .unwrap()
                .check_allowed(&plan)
                .is_err()
        );
    }

    #[test]
    fn a_number_in_a_log_is_masked() {
        assert_eq!(
            PhoneNumber::parse("13812345678", &NumberingPlan::china())
                .unwrap()
                .to_string(),
            "+86138****5678"
        );
        assert_eq!(
            PhoneNumber::parse("110", &NumberingPlan::china())
                .unwrap()
                .to_string(),
            "+86…"
        );
    }

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

    proptest! {
        #[test]
        fn any_text_is_a_canonical_number_or_a_refusal(text in "\\PC{0,40}|[+]?[0-9]{0,17}(-[0-9*#]{0,13})?") {
            if let Ok(number) = PhoneNumber::parse(&text, &NumberingPlan::china()) {
                prop_assert!(number.digits.len() <= LONGEST && number.digits.bytes().all(|b| b.is_ascii_digit()));
                let again = PhoneNumber::parse(&format!("+{}", number.digits), &NumberingPlan::china()).unwrap();
                prop_assert_eq!(again.digits, number.digits.clone());
                let _ = number.to_string();
            }
        }
    }
}
