//! `[numbers]`: how numbers are written in the platform's country, and which numbers are refused.

use super::section::{Mistake, Section};
use crate::domain::digit_pattern::DigitPattern;
use crate::domain::numbering_plan::NumberingPlan;
use crate::domain::phone_number::{NumberPattern, PhoneNumber};

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
        write_out_china(&mut plan);
    }
    plan.default_caller = section.parsed_or_none("default_caller", |text| {
        PhoneNumber::parse(text, &plan)
            .map(|number| number.digits().to_owned())
            .map_err(|_| format!("`{text}` is not a telephone number"))
    })?;
    Ok(plan)
}

/// The numbers of China, as `config.default.toml` lists them.
fn write_out_china(plan: &mut NumberingPlan) {
    fn patterns(text: &str) -> Vec<DigitPattern> {
        let parsed = text.split(' ').map(str::parse);
        parsed.collect::<Result<_, _>>().expect("they are patterns")
    }
    plan.area_codes = patterns("10 2X [3-9]XX");
    plan.local_numbers = patterns("NXXXXXX NXXXXXXX");
    plan.national_numbers = patterns("1[3-9]XXXXXXXXX 400XXXXXXX 800XXXXXXX");
    plan.service_numbers = patterns(
        "1[0-2]X 10XXX 111XX 12XXX 11[4-8]XXX 10XXXXX 101XXXXX 16XXXXXX 9[56]XXX 9[56]XXXX 9[56]XXXXX 9[56]XXXXXX",
    );
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
