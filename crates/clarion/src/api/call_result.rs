//! `GET` or `POST …/CallResult?callsid=…`: how far a call has come.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::Api;
use super::request::Authenticated;
use super::wire::{AnswerForm, Content, Field, Form};
use crate::domain::call::{CallProgress, CallSid};
use crate::domain::notice::ending::Confirmation;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::store::unavailable;

const GROUP: &str = "CallResult";

/// By POST the callSid may be in the body instead of the query.
pub const FORM: Form = Form {
    root: GROUP,
    fields: &[
        Field::optional("callSid", "", "The call, where the query does not name it."),
        Field::optional("callsid", "", "The same, as the query spells it."),
    ],
    attributes: &[],
    unclosed: None,
};

pub const ANSWER: AnswerForm = AnswerForm {
    group: Some(GROUP),
    fields: &[
        Field::required(
            "state",
            "0 talked, 1 not answered, 2 failed, 3 queued, 4 dialling or ringing, 5 talking.",
        ),
        Field::required(
            "callTime",
            "Seconds from answer to hang-up, rounded up; 0 while there are none.",
        ),
        Field::required("duration", "The same; some programs read this name."),
        Field::optional(
            "attempts",
            "",
            "Of a notice: attempts that were dialled and are over.",
        ),
        Field::optional(
            "confirm",
            "",
            "Of a notice: 1 if somebody has pressed a key of confirmDtmf, else 0.",
        ),
        Field::optional(
            "confirmNumber",
            "",
            "Where confirm is 1: the number that was called, as the request or the list writes it.",
        ),
        Field::optional("dtmf", "", "Where confirm is 1: the key."),
        Field::optional(
            "answeredby",
            "",
            "Of a notice with machineDetect that is over: who answered the attempt that came furthest: human, machine or unknown.",
        ),
    ],
};

pub async fn show(State(api): State<Arc<Api>>, request: Authenticated) -> Response {
    request.answer(&find(&api, &request).await)
}

async fn find(api: &Api, request: &Authenticated) -> Result<Content, Refusal> {
    let mut wanted = request
        .query("callsid")
        .or_else(|| request.query("callSid"));
    if wanted.is_none() && request.has_body() {
        let fields = request.fields(&FORM)?;
        wanted = fields
            .text("callSid")?
            .or(fields.text("callsid")?)
            .map(str::to_owned);
    }
    let wanted = wanted.ok_or_else(|| Refusal::field("callsid is required"))?;
    let (_, progress) = progress_of(api, request, &wanted).await?;
    let seconds = progress.seconds().to_string();
    let mut values = vec![
        ("state", progress.digit().to_string()),
        // Most programs read the first, some the second.
        ("callTime", seconds.clone()),
        ("duration", seconds),
    ];
    if let Some(notice) = progress.notice {
        values.push(("attempts", notice.attempts.to_string()));
        let is_confirmed = u8::from(notice.confirmed.is_some());
        values.push(("confirm", is_confirmed.to_string()));
        if let Some(Confirmation { called, key }) = notice.confirmed {
            values.push(("confirmNumber", called));
            values.push(("dtmf", key.to_string()));
        }
        if let Some(answered_by) = notice.answered_by {
            values.push(("answeredby", answered_by.as_str().to_owned()));
        }
    }
    Ok(Content::Group(GROUP, values))
}

/// How far a call of the account has come. A text that cannot be a callSid is as unknown as a callSid of another account.
pub async fn progress_of(
    api: &Api,
    request: &Authenticated,
    wanted: &str,
) -> Result<(CallSid, CallProgress), Refusal> {
    let sid: CallSid = wanted.parse().map_err(|_| StatusCode::CallUnknown)?;
    let progress = api.store.call_progress(&request.account.sid, &sid).await;
    let progress = progress.map_err(|error| unavailable(&error))?;
    Ok((sid, progress.ok_or(StatusCode::CallUnknown)?))
}
