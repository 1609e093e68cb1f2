//! `[numbers]`: how numbers are written in the platform's country, and which numbers are refused.

use super::section::{Mistake, Section};
use crate::domain::number_pattern::NumberPattern;
use crate::domain::numbering_plan::NumberingPlan;
use crate::domain::phone_number::PhoneNumber;

/// The country whose numbers are known without settings.
const CHINA: &str = "86";

pub(super) fn read(section: &mut Section) -> Result<NumberingPlan, Mistake> {
    let mut plan = NumberingPlan {
        country_code: section.parsed_by("country_code", country_code)?,
        international_prefix: section.parsed_by("international_prefix", digits)?,
        trunk_prefix: section.parsed_by("trunk_prefix", digits)?,
        area_codes: section.list("area_codes", str::parse)?,
        local_numbers: section.list("local_numbers", str::parse)?,
        national_numbers: section.list("national_numbers", str::parse)?,
        service_numbers: section.list("service_numbers", str::parse)?,
        default_caller: None,
        emergency: section.list("emergency", emergency)?,
        forbidden: section.list("forbidden", str::parse::<NumberPattern>)?,
        permitted: section.list("permitted", str::parse::<NumberPattern>)?,
        switchboards: section.list("switchboards", str::parse::<NumberPattern>)?,
        switchboard_lines: section.number("switchboard_lines", 1..=10_000)?,
    };
    if plan.area_codes.is_empty() != plan.local_numbers.is_empty() {
        let rule = "there are area codes and local numbers, or neither of them";
        return Err(section.mistake("local_numbers", rule));
    }
    if plan.country_code == CHINA && plan.says_nothing() {
        plan.write_out_china();
    }
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
