//! `POST …/BillRecords`: asks for the previous day's bill.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::request::{APP_ID, Authenticated};
use super::wire::{AnswerForm, Content, Field, Form};
use super::{Api, bill_file};
use crate::domain::bill::keywords::Keywords;
use crate::domain::status_code::{Refusal, StatusCode};

pub const FORM: Form = Form {
    root: "BillRecords",
    fields: &[
        APP_ID,
        Field::required("date", "`day`: the previous day, 00:00 to 23:59."),
        Field::optional(
            "keywords",
            "",
            "Query condition: terms separated by blanks, all must match; `field=value` matches a column exactly. Ignored when empty.",
        ),
    ],
    attributes: &[],
    unclosed: None,
};

pub const ANSWER: AnswerForm = AnswerForm {
    group: None,
    fields: &[
        Field::optional(
            "downUrl",
            "",
            "In XML: address of the file, to which the client adds `?token=` and the token.",
        ),
        Field::optional(
            "downurl",
            "",
            "In JSON: the same. An operator can have it named downUrl, for the platform or for one application.",
        ),
        Field::required("token", "Check code of the download, valid for 24 hours."),
    ],
};

pub async fn request(State(api): State<Arc<Api>>, request: Authenticated) -> Response {
    request.answer(&find(&api, &request).await)
}

async fn find(api: &Api, request: &Authenticated) -> Result<Content, Refusal> {
    let fields = request.fields(&FORM)?;
    let application = request.application(api, &fields).await?;
    if !request.account.permissions.bill_download {
        return Err(StatusCode::PermissionMissing.into());
    }
    check_date(fields.text("date")?)?;
    let keywords = Keywords::parse(fields.text("keywords")?.unwrap_or_default())?;
    let granted = api
        .billing
        .request(&request.account.sid, &application.id, keywords)
        .await?;
    let json_name = application.bill_json_key;
    let json_name = json_name.unwrap_or(api.config.bills.bill_json_key);
    Ok(Content::Download {
        url: format!(
            "{}{}",
            request.server_url(api),
            bill_file::path(&granted.file)
        ),
        json_name: json_name.as_str(),
        token: granted.token,
    })
}

fn check_date(date: Option<&str>) -> Result<(), Refusal> {
    match date {
        None => Err(Refusal::field(
            "date is required: day, for the previous day",
        )),
        Some(date) if date.eq_ignore_ascii_case("day") => Ok(()),
        Some(_) => Err(Refusal::field(
            "date must be day: only the previous day's bill is offered (no week, no month)",
        )),
    }
}
