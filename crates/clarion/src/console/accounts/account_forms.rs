//! The forms for a rate and for an application, which the page of an account has.

use crate::console::page_forms::{FormField, PageForms};
use crate::console::words::Words;
use crate::domain::bill::rating::Rate;

/// The names of the forms.
pub const RATE: &str = "rate";
pub const APPLICATION: &str = "app";

#[derive(Debug)]
pub struct RateRow {
    pub prefix: String,
    pub price: String,
    pub unit: u32,
    pub unanswered: String,
}

impl RateRow {
    pub fn new(rate: &Rate) -> Self {
        Self {
            prefix: rate.prefix.to_string(),
            price: rate.price.to_string(),
            unit: rate.unit_seconds,
            unanswered: rate.unanswered.to_string(),
        }
    }
}

/// The form for one rate.
pub fn rate_fields(forms: &PageForms, words: &'static Words) -> [FormField; 4] {
    let line = |name, label, hint, otherwise| forms.line(RATE, name, label, hint, otherwise);
    [
        line("prefix", words.rate_prefix, words.rate_prefix_hint, ""),
        line("price", words.rate_price, words.rate_price_hint, ""),
        line("unit", words.rate_unit, "", "60"),
        line("unanswered", words.rate_unanswered, "", "0"),
    ]
}

/// What the form for an application asks for.
pub fn app_name_field(forms: &PageForms, words: &'static Words) -> FormField {
    forms.line(APPLICATION, "name", words.set_name, words.app_name_hint, "")
}
