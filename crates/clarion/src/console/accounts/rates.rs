//! What the calls of an account cost, on its page.

use std::sync::Arc;

use axum::response::Response;

use super::account_forms::RATE;
use super::{account, address_of, sid_of};
use crate::console::Console;
use crate::console::page::led_to;
use crate::console::page_forms::{self, FieldMistake, FormError};
use crate::console::refusal::Refused;
use crate::console::visit::Visit;
use crate::domain::bill::rating::{Prefix, Rate};

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
        Err(error) => account::refused(&console, &visit, RATE, error).await,
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
