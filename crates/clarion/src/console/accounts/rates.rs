//! What the calls of an account cost, on its page.

use std::sync::Arc;

use axum::response::Response;

use super::{account, address_of, sid_of};
use crate::console::Console;
use crate::console::guard::Visit;
use crate::console::page::led_to;
use crate::console::page_forms::{self, FieldMistake, FormError, FormField, PageForms};
use crate::console::refusal::Refused;
use crate::console::words::Words;
use crate::domain::bill::rating::{Prefix, Rate};

const FORM: &str = "rate";

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
pub fn fields(forms: &PageForms, words: &'static Words) -> [FormField; 4] {
    let line = |name, label, hint, otherwise| forms.line(FORM, name, label, hint, otherwise);
    [
        line("prefix", words.rate_prefix, words.rate_prefix_hint, ""),
        line("price", words.rate_price, words.rate_price_hint, ""),
        line("unit", words.rate_unit, "", "60"),
        line("unanswered", words.rate_unanswered, "", "0"),
    ]
}

fn read(visit: &Visit) -> Result<Rate, FieldMistake> {
    let words = visit.language.words();
    Ok(Rate {
        prefix: page_forms::read(visit, "prefix", words.rate_prefix)?,
        price: page_forms::read(visit, "price", words.rate_price)?,
        unit_seconds: page_forms::read_number(
            visit,
            "unit",
            words.rate_unit,
            1..=Rate::LONGEST_UNIT,
        )?,
        unanswered: page_forms::read(visit, "unanswered", words.rate_unanswered)?,
    })
}

pub async fn set(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let sid = sid_of(&visit)?;
    let set = async {
        let rate = read(&visit)?;
        console.acting(&visit).set_rate(&sid, rate).await?;
        Ok::<_, FormError>(())
    };
    match set.await {
        Ok(()) => Ok(led_to(&address_of(&sid), "rate-set")),
        Err(error) => account::refused(&console, &visit, FORM, error).await,
    }
}

pub async fn remove(console: Arc<Console>, visit: Arc<Visit>) -> Result<Response, Refused> {
    let sid = sid_of(&visit)?;
    let prefix: Prefix = visit
        .field("prefix")
        .parse()
        .map_err(|_| Refused::BadForm)?;
    console.acting(&visit).remove_rate(&sid, &prefix).await?;
    Ok(led_to(&address_of(&sid), "rate-removed"))
}
