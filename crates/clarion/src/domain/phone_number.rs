//! One canonical form for every called number, made once, when a call is accepted.
//!
//! `+86110`, `0086110` and `110` are one number to every rule: allow-lists, emergency and premium rules, frequency caps, rates and the
//! comparison with displayNum all read the canonical digits, never the text that the client sent.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::number_pattern::matches_any;
use super::numbering_plan::NumberingPlan;
use super::status_code::{Refusal, StatusCode};
use super::wording::{Wording, wording};

/// E.164 allows fifteen digits, country code included.
const LONGEST: usize = 15;
/// Length of a foreign number with its country code. Shorter ones are foreign service numbers, which do not work across borders.
const SHORTEST_FOREIGN: usize = 7;
const LONGEST_EXTENSION: usize = 12;

/// A called number in canonical form, with its extension kept apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Makes a number from stored digits, which are canonical already.
    pub fn from_stored(digits: String, extension: Option<String>) -> Self {
        Self { digits, extension }
    }

    /// Reads `to` as clients write it: `13800000000`, `01052823298`, `0755-83765566`, `01052823298-3627`, `0086138…`, `+86138…`.
    pub fn parse(text: &str, plan: &NumberingPlan) -> Result<Self, Refusal> {
        let (number, extension) = apart(text, plan)?;
        let extension = extension.map(checked_extension).transpose()?;
        let digits = canonical(&number, plan)?;
        Ok(Self { digits, extension })
    }

    /// Refuses emergency and forbidden numbers, unless the operator has named them as permitted.
    pub fn check_allowed(&self, plan: &NumberingPlan) -> Result<(), Refusal> {
        let refused = |rule| Refusal::worded(StatusCode::CalledNotAllowed, &rule);
        for digits in plan.readings(&self.digits) {
            if matches_any(&plan.permitted, &digits) {
                continue;
            }
            if plan.is_emergency(&digits) {
                return Err(refused(wording!(
                    "to: emergency numbers are not called",
                    "不允许呼叫紧急号码"
                )));
            }
            if matches_any(&plan.forbidden, &digits) {
                return Err(refused(wording!(
                    "to: numbers with this prefix are not called",
                    "不允许呼叫该号段"
                )));
            }
        }
        Ok(())
    }

    /// Refuses emergency numbers, even those that the operator has permitted: nobody has them called again and again by a program.
    pub fn check_no_emergency(&self, field: &str, plan: &NumberingPlan) -> Result<(), Refusal> {
        let readings = plan.readings(&self.digits);
        if readings.iter().any(|digits| plan.is_emergency(digits)) {
            let rule = wording!(
                "emergency numbers are not called again, nor instead of another number",
                "紧急号码不能重拨，也不能作为备用号码"
            );
            let refusal = Refusal::worded(StatusCode::CalledNotAllowed, &rule);
            return Err(refusal.about(&format!("{field}:")));
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

/// The number and its extension. A dash after an area code or after `400` belongs to the number.
fn apart<'a>(
    text: &'a str,
    plan: &NumberingPlan,
) -> Result<(Cow<'a, str>, Option<&'a str>), Refusal> {
    let parts: Vec<_> = text.splitn(3, '-').collect();
    match parts[..] {
        [number] => Ok((number.into(), None)),
        [beginning, rest] if plan.goes_on_after(beginning) => {
            Ok((format!("{beginning}{rest}").into(), None))
        }
        [number, extension] => Ok((number.into(), Some(extension))),
        [beginning, rest, extension] if plan.goes_on_after(beginning) => {
            Ok((format!("{beginning}{rest}").into(), Some(extension)))
        }
        _ => Err(wrong(&wording!(
            "to: '-' stands only after an area code and before an extension",
            "- 只能写在区号之后或分机号之前"
        ))),
    }
}

fn wrong(rule: &Wording) -> Refusal {
    Refusal::worded(StatusCode::FieldWrong, rule)
}

fn checked_extension(extension: &str) -> Result<String, Refusal> {
    let fits = (1..=LONGEST_EXTENSION).contains(&extension.len());
    let is_key = |byte: u8| byte.is_ascii_digit() || byte == b'*' || byte == b'#';
    if fits && extension.bytes().all(is_key) {
        return Ok(extension.to_owned());
    }
    Err(wrong(&wording!(
        "to: the extension after '-' must be 1 to {LONGEST_EXTENSION} of the characters 0-9 * #",
        "- 之后的分机号为 1 到 {LONGEST_EXTENSION} 位，只能含 0-9、* 和 #"
    )))
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
        return Err(wrong(&wording!(
            "to must be one telephone number: digits with an optional leading '+', and '-' only after an area code or before an extension",
            "应为一个电话号码：只含数字，开头可加 +，- 只能写在区号之后或分机号之前"
        )));
    }
    let own = if international {
        digits.strip_prefix(plan.country_code.as_str())
    } else {
        plan.national_part(digits)
    };
    match own {
        Some(national) => plan.canonical(national),
        None if !international => Err(plan.not_whole()),
        None if digits.starts_with('0') => Err(wrong(&wording!(
            "to: no country code begins with 0",
            "国家码不能以 0 开头"
        ))),
        None if (SHORTEST_FOREIGN..=LONGEST).contains(&digits.len()) => Ok(digits.to_owned()),
        None => Err(wrong(&wording!(
            "to: an international number has {SHORTEST_FOREIGN} to {LONGEST} digits with its country code",
            "国际号码含国家码共 {SHORTEST_FOREIGN} 到 {LONGEST} 位数字"
        ))),
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
            ("8616812345", &["16812345", "8616812345", "+8616812345"]),
            (
                "861016812345",
                &["01016812345", "010-16812345", "861016812345"],
            ),
            (
                "8675583765566",
                &[
                    "0755-83765566",
                    "075583765566",
                    "75583765566",
                    "8675583765566",
                ],
            ),
            (
                "864008001234",
                &["400-8001234", "4008001234", "864008001234"],
            ),
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
        for text in ["010-52823298-3627", "13800000000-3627", "400-8001234-3627"] {
            assert_eq!(parsed(text).unwrap().1, Some("3627".into()), "{text}");
        }
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
            "0755",
            "0755-",
            "400",
            "138-00000000",
            "1380-0000000",
            "0138-00000000",
            "1380000000",
            "138000000000",
            "0101681234567",
            "0755523",
            "1101",
            "11012",
            "0755--83765566",
            "0755-83765566-",
            "0755-8376-5566",
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
        plan.emergency.push("999".into());
        plan.forbidden.push("+1900*".parse().unwrap());
        for text in [
            "110",
            "+86110",
            "0086110",
            "010110",
            "0755120",
            "010-110",
            "86110",
            "8610110",
            "999",
            "16812345",
            "+8616812345",
            "01016812345",
            "010-16812345",
            "8616812345",
            "861016812345",
            "+86016812345",
            "16812345-1",
            "+19005550123",
            "+109005550123",
            "08616812345",
            "+868616812345",
        ] {
            let number = PhoneNumber::parse(text, &plan).unwrap();
            assert_eq!(
                number.check_allowed(&plan).unwrap_err().code,
                StatusCode::CalledNotAllowed,
                "{text}"
            );
        }
        for text in [
            "13800000110",
            "01052823110",
            "95588",
            "01062816812",
            "12110",
        ] {
            assert!(
                PhoneNumber::parse(text, &plan)
                    .unwrap()
                    .check_allowed(&plan)
                    .is_ok(),
                "{text}"
            );
        }
        plan.permitted = vec!["+86120".parse().unwrap(), "+8610*".parse().unwrap()];
        let beijing = PhoneNumber::parse("010110", &plan).unwrap();
        assert!(
            beijing.check_allowed(&plan).is_err(),
            "an area is no police"
        );
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
    fn a_country_without_patterns_has_numbers_of_a_usual_length() {
        let plan = NumberingPlan {
            country_code: "49".into(),
            area_codes: vec![],
            local_numbers: vec![],
            national_numbers: vec![],
            service_numbers: vec![],
            ..NumberingPlan::china()
        };
        for (text, canonical) in [
            ("030123456", "4930123456"),
            ("+4930123456", "4930123456"),
            ("4915112345678", "4915112345678"),
            ("110", "49110"),
        ] {
            assert_eq!(PhoneNumber::parse(text, &plan).unwrap().digits, canonical);
        }
        for text in ["110", "030110", "+4930110"] {
            let number = PhoneNumber::parse(text, &plan).unwrap();
            assert!(number.check_allowed(&plan).is_err(), "{text}");
        }
        assert!(PhoneNumber::parse("12", &plan).is_err());
    }

    #[test]
    fn a_callee_is_a_number_without_its_extension_or_a_line_of_a_switchboard() {
        let mut plan = NumberingPlan::china();
        let callee = |plan: &NumberingPlan, text: &str| {
            let number = PhoneNumber::parse(text, plan).unwrap();
            plan.callee(&number)
        };
        let extensions = (0..50).map(|extension| format!("01052823298-{extension}"));
        let extensions: Vec<_> = extensions.collect();
        for text in &extensions {
            assert_eq!(callee(&plan, text), "861052823298");
        }
        plan.switchboards = vec!["+8610528*".parse().unwrap()];
        let callees = extensions.iter().map(|text| callee(&plan, text));
        let callees: std::collections::HashSet<_> = callees.collect();
        assert_eq!(callees.len(), 10, "one for each line: {callees:?}");
        assert_eq!(callee(&plan, "01052823298"), "861052823298");
        assert_eq!(callee(&plan, "13800000000-7"), "8613800000000");
    }

    /// Every way to write a number of China. The first digits are an area code, if there is one.
    fn spellings(area: &str, rest: &str) -> Vec<String> {
        let national = format!("{area}{rest}");
        let mut written = vec![
            format!("+86{national}"),
            format!("+860{national}"),
            format!("0086{national}"),
            format!("00860{national}"),
            format!("86{national}"),
            format!("860{national}"),
            format!("0{national}"),
        ];
        if area.is_empty() {
            written.push(national);
        } else {
            written.push(format!("0{area}-{rest}"));
        }
        for beginning in ["400", "800"] {
            let behind = rest.strip_prefix(beginning);
            if let Some(behind) = behind.filter(|behind| area.is_empty() && behind.len() == 7) {
                written.push(format!("{beginning}-{behind}"));
            }
        }
        // A landline may be written without its 0, unless its area code looks like the code of the country.
        let is_local = rest.len() >= 7 && rest.starts_with(|digit| digit >= '2');
        if is_local && !area.is_empty() && !area.starts_with("86") {
            written.push(format!("{area}{rest}"));
        }
        written
    }

    const AREA: &str = "10|2[0-9]|[3-9][0-9]{2}";
    const NATIONAL: &str = "1[3-9][0-9]{9}|[48]00[0-9]{7}";
    const LOCAL: &str = "[2-9][0-9]{6,7}";
    const SERVICE: &str = "1[0-2][0-9]|10[0-9]{3}|111[0-9]{2}|12[0-9]{3}|11[4-8][0-9]{3}|10[0-9]{5}|101[0-9]{5}|16[0-9]{6}|9[56][0-9]{3,6}";

    /// A number of every kind that China has: an area code, or none, and the rest.
    fn number() -> impl Strategy<Value = (String, String)> {
        let alone = prop_oneof![NATIONAL, SERVICE].prop_map(|rest| (String::new(), rest));
        prop_oneof![alone, (AREA, LOCAL), (AREA, SERVICE)]
    }

    proptest! {
        #[test]
        fn one_number_is_one_to_every_rule_however_it_is_written(
            (area, rest) in number(),
            extension in proptest::option::of("[0-9*#]{1,12}"),
        ) {
            let plan = NumberingPlan::china();
            let canonical = format!("86{area}{rest}");
            let is_allowed = |number: &PhoneNumber| number.check_allowed(&plan).is_ok();
            let one = PhoneNumber::from_stored(canonical.clone(), None);
            // A number that is refused by itself is refused behind an area code as well, where it can stand there.
            let alone = format!("86{rest}");
            let is_refused = plan.is_emergency(&alone) || matches_any(&plan.forbidden, &alone);
            prop_assert!(!is_refused || !is_allowed(&one), "{}", canonical);
            for text in spellings(&area, &rest) {
                let text = match &extension {
                    Some(extension) => format!("{text}-{extension}"),
                    None => text,
                };
                let number = PhoneNumber::parse(&text, &plan);
                prop_assert!(number.is_ok(), "{}: {:?}", text, number);
                let number = number.unwrap();
                prop_assert_eq!(number.digits(), &canonical, "{}", text);
                prop_assert_eq!(number.extension(), extension.as_deref());
                prop_assert_eq!(plan.callee(&number), canonical.clone());
                prop_assert_eq!(is_allowed(&number), is_allowed(&one), "{}", text);
            }
        }

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
