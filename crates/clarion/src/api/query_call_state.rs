//! `POST …/ivr/call`: whether a call is still going on (`QueryCallState`).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::request::{APP_ID, Authenticated};
use super::wire::{AnswerForm, Content, Field, Form};
use super::{Api, call_result};
use crate::domain::call_state::CallState;
use crate::domain::callback::{OwedCallback, RespUrl};
use crate::domain::status_code::{Refusal, StatusCode};
use crate::store::unavailable;

const ELEMENT: &str = "QueryCallState";

/// The call and the address are attributes of the element `QueryCallState`. One client library does not close it.
pub const FORM: Form = Form {
    root: "Request",
    fields: &[
        APP_ID,
        Field::optional(
            "callid",
            "the query parameter callid",
            "The call: an attribute of the element QueryCallState in XML, a member of the object QueryCallState in JSON.",
        ),
        Field::optional(
            "action",
            "",
            "http or https address that gets the same answer as a callback; it stands beside callid.",
        ),
    ],
    attributes: &[(ELEMENT, "callid", "callid"), (ELEMENT, "action", "action")],
    unclosed: Some(ELEMENT),
};

pub const ANSWER: AnswerForm = AnswerForm {
    group: Some(ELEMENT),
    fields: &[
        Field::required("callid", "The call."),
        Field::required("state", "1 while it is not over, else 0."),
    ],
};

pub async fn query(State(api): State<Arc<Api>>, request: Authenticated) -> Response {
    request.answer(&find(&api, &request).await)
}

async fn find(api: &Api, request: &Authenticated) -> Result<Content, Refusal> {
    let fields = request.fields(&FORM)?;
    let application = request.application(api, &fields).await?;
    let wanted = fields.text("callid")?.map(str::to_owned);
    let wanted = wanted.or_else(|| request.query("callid"));
    let wanted = wanted.ok_or_else(|| Refusal::field("callid is required"))?;
    let action = fields.text("action")?;
    let action = action.map(|url| RespUrl::named_by("action", url));
    let action = action.transpose()?;
    let (sid, progress) = call_result::progress_of(api, request, &wanted).await?;
    let is_over = progress.state == CallState::Ended;
    if let Some(url) = action {
        let (app, now) = (application.id.clone(), api.clock.now());
        let owed = OwedCallback::of_state(sid.clone(), app, url, is_over, now);
        let receiver = owed.clone().numbered(1).receiver();
        let is_owed = api.store.owe_event(owed).await;
        if !is_owed.map_err(|error| unavailable(&error))? {
            return Err(Refusal::new(
                StatusCode::TooManyRequests,
                "action: too many answers about this call have been asked for",
            ));
        }
        let (account, app) = (&request.account.sid, &application.id);
        api.callback_owed.is_owed_at(account, app, [receiver]);
    }
    let state = if is_over { "0" } else { "1" };
    Ok(Content::Group(
        ELEMENT,
        vec![("callid", sid.to_string()), ("state", state.to_owned())],
    ))
}
