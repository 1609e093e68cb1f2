//! `POST …/Calls/CallCancel`: the application does not want a call any more.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::request::{APP_ID, Authenticated};
use super::wire::{AnswerForm, Content, Field, Form};
use super::{Api, call_result};
use crate::domain::call::{CallProgress, CallSid};
use crate::domain::call_state::CallState;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::store::unavailable;

/// Below an account, and below a sub-account too.
pub const PATH: &str = "Calls/CallCancel";

pub const FORM: Form = Form {
    root: "CallCancel",
    fields: &[
        APP_ID,
        Field::required("callSid", "The call."),
        Field::optional(
            "type",
            "0",
            "0 = whatever its state, 1 or 2 = only while nobody has answered.",
        ),
    ],
    attributes: &[],
    unclosed: None,
};

pub const ANSWER: AnswerForm = AnswerForm {
    group: Some(FORM.root),
    fields: &[
        Field::required("callSid", "The call."),
        Field::required(
            "state",
            "How far it had come: 3 queued, 4 dialling or ringing, 5 talking.",
        ),
    ],
};

pub async fn cancel(State(api): State<Arc<Api>>, request: Authenticated) -> Response {
    request.answer(&mark(&api, &request).await)
}

async fn mark(api: &Api, request: &Authenticated) -> Result<Content, Refusal> {
    let fields = request.fields(&FORM)?;
    request.application(api, &fields).await?;
    let wanted = fields.text("callSid")?;
    let wanted = wanted.ok_or_else(|| Refusal::field("callSid is required"))?;
    let before_answer = match fields.text("type")? {
        None | Some("0") => false,
        Some("1" | "2") => true,
        Some(_) => return Err(Refusal::field("type must be 0, 1 or 2")),
    };
    // A text that cannot be a callSid is as unknown as a callSid of another account.
    let sid: CallSid = wanted.parse().map_err(|_| StatusCode::CallUnknown)?;
    let account = &request.account.sid;
    let cancelled = api
        .store
        .cancel_call_of(account, &sid, before_answer)
        .await
        .map_err(|error| unavailable(&error))?;
    let Some(state) = cancelled else {
        return Err(too_late(api, request, &sid, before_answer).await);
    };
    tracing::info!(callSid = %sid, "cancelled by its application");
    Ok(Content::Group(
        FORM.root,
        vec![
            ("callSid", sid.to_string()),
            ("state", CallProgress::under_way(state).digit().to_string()),
        ],
    ))
}

/// Why a call was not cancelled.
async fn too_late(
    api: &Api,
    request: &Authenticated,
    sid: &CallSid,
    before_answer: bool,
) -> Refusal {
    match call_result::progress_of(api, request, sid.as_str()).await {
        Err(refusal) => refusal,
        Ok((_, progress)) if before_answer && progress.state != CallState::Ended => Refusal::new(
            StatusCode::CallOver,
            "type: the call has been answered; type 0 ends it all the same",
        ),
        // Somebody has confirmed it, too: that is not undone.
        Ok(_) => StatusCode::CallOver.into(),
    }
}
