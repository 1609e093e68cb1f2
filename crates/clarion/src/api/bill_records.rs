//! `POST …/BillRecords`: asks for the previous day's bill.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::Api;
use super::request::Authenticated;
use super::wire::{Content, Field, Form};
use crate::domain::status_code::{Refusal, StatusCode};

pub const FORM: Form = Form {
    root: "BillRecords",
    fields: &[
        Field {
            name: "appId",
            required: true,
            rule: "Application id: 32 letters or digits.",
        },
        Field {
            name: "date",
            required: true,
            rule: "`day`: the previous day, 00:00 to 23:59.",
        },
        Field {
            name: "keywords",
            required: false,
            rule: "Query condition; ignored when empty.",
        },
    ],
    attributes: &[],
};

pub async fn request(State(api): State<Arc<Api>>, request: Authenticated) -> Response {
    request.answer(&find(&api, &request).await)
}

async fn find(api: &Api, request: &Authenticated) -> Result<Content, Refusal> {
    let fields = request.fields(&FORM)?;
    request.application(api, &fields).await?;
    match fields.text("date")? {
        None => {
            return Err(Refusal::field(
                "date is required: day, for the previous day",
            ));
        }
        Some(date) if date.eq_ignore_ascii_case("day") => {}
        Some(_) => {
            return Err(Refusal::field(
                "date must be day: only the previous day's bill is offered (no week, no month)",
            ));
        }
    }
    // Nothing is dialled yet in this version, so no day has a bill.
    Err(Refusal::new(
        StatusCode::BillNotAvailable,
        "the bill is not available: this version does not make bills yet",
    ))
}
