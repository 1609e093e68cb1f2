//! `[numbers]`: how numbers are written in the platform's country, and which numbers are refused.

use super::section::{Mistake, Section};
use crate::domain::phone_number::{NumberPattern, NumberingPlan, PhoneNumber};

/// E.164 allows fifteen digits.
const LONGEST: usize = 15;

pub(super) fn read(section: &mut Section) -> Result<NumberingPlan, Mistake> {
    let mut plan = NumberingPlan {
        country_code: section.parsed_by("country_code", country_code)?,
        international_prefix: section.parsed_by("international_prefix", digits)?,
        trunk_prefix: section.parsed_by("trunk_prefix", digits)?,
        longest_national: section.number("longest_national", 0..=LONGEST)?,
        local_lengths: section.numbers("local_lengths", &(0..=LONGEST))?,
        default_caller: None,
        emergency: section.list("emergency", emergency)?,
        forbidden: section.list("forbidden", str::parse::<NumberPattern>)?,
        permitted: section.list("permitted", str::parse::<NumberPattern>)?,
    };
    plan.default_caller = section.parsed_or_none("default_caller", |text| {
        PhoneNumber::parse(text, &plan)
            .map(|number| number.digits().to_owned())
            .map_err(|_| format!("`{text}` is not a telephone number"))
    })?;
    Ok(plan)
}

fn digits(text: &str) -> Result<String, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    Err(format!("`{text}` must be digits"))
}

fn country_code(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("must be digits, such as 86".to_owned());
    }
    digits(text)
}

fn emergency(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("an empty text is no number".to_owned());
    }
    digits(text)
}
