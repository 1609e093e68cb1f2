//! What a tool is told. A status of 5xx makes tools try again, so it is sent only where that helps.

use std::time::Duration;

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode as HttpStatus};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::domain::call::CallSid;
use crate::domain::intake::incident::IncidentResult;
use crate::domain::status_code::{Refusal, StatusCode};

/// Alerts that were refused by the limits of their account may come again after this.
pub const TRY_AGAIN: Duration = Duration::from_secs(5);

/// What became of one incident.
#[derive(Debug)]
pub struct AlertOutcome {
    /// What the tool calls the incident.
    pub key: String,
    pub result: IncidentResult,
    /// Why, where it was refused.
    pub refusal: Option<Refusal>,
    /// Its notice, where it has one.
    pub call: Option<CallSid>,
    /// Whom to call, where the alert named somebody.
    pub to: Option<String>,
}

fn http_status(code: StatusCode) -> HttpStatus {
    match code {
        StatusCode::Success => HttpStatus::OK,
        StatusCode::IntakeInvalid => HttpStatus::UNAUTHORIZED,
        StatusCode::AddressNotAllowed
        | StatusCode::AccountNotActivated
        | StatusCode::AccountSuspended
        | StatusCode::AccountClosed
        | StatusCode::AppDeleted
        | StatusCode::AppDisabled
        | StatusCode::AppMissing => HttpStatus::FORBIDDEN,
        StatusCode::DataTooLong => HttpStatus::PAYLOAD_TOO_LARGE,
        StatusCode::BodyFormat => HttpStatus::BAD_REQUEST,
        // Later it may go through, and an incident never makes two notices of one.
        StatusCode::TooManyRequests
        | StatusCode::UnknownError
        | StatusCode::AcceptUnknown
        | StatusCode::NoRoom => HttpStatus::SERVICE_UNAVAILABLE,
        _ => HttpStatus::UNPROCESSABLE_ENTITY,
    }
}

/// Counts a refusal: a tool may drop the alert, and nobody else would know.
pub fn count(refusal: &Refusal) {
    let code = refusal.code.code();
    metrics::counter!("clarion_intake_refused_total", "code" => code).increment(1);
}

pub fn refused(refusal: &Refusal) -> Response {
    count(refusal);
    told(refusal)
}

fn told(refusal: &Refusal) -> Response {
    let (status, code) = (http_status(refusal.code), refusal.code);
    let body = json!({ "statusCode": code.code(), "statusMsg": refusal.message });
    let mut response = answer(status, code, body);
    if status == HttpStatus::SERVICE_UNAVAILABLE {
        let seconds = HeaderValue::from(TRY_AGAIN.as_secs());
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

/// What became of each incident. Where all of them are refused, so is the request.
pub fn accepted(outcomes: &[AlertOutcome]) -> Response {
    count_outcomes(outcomes);
    if let Some(refusal) = refusal_of_all(outcomes) {
        return told(refusal);
    }
    let incidents: Vec<_> = outcomes.iter().map(AlertOutcome::describe).collect();
    let code = StatusCode::Success;
    let body = json!({ "statusCode": code.code(), "incidents": incidents });
    answer(HttpStatus::OK, code, body)
}

/// The same as SMSEagle says it: a list, with an entry for each number.
pub fn queued(outcomes: &[AlertOutcome]) -> Response {
    count_outcomes(outcomes);
    if let Some(refusal) = refusal_of_all(outcomes) {
        return told(refusal);
    }
    let entry = |outcome: &AlertOutcome| {
        let (status, message) = match &outcome.refusal {
            Some(refusal) => ("error", refusal.message.as_str()),
            None => ("queued", outcome.result.as_str()),
        };
        let id = outcome.call.as_ref().map(CallSid::as_str);
        json!({ "status": status, "message": message, "number": outcome.to, "id": id })
    };
    let entries: Value = outcomes.iter().map(entry).collect();
    answer(HttpStatus::OK, StatusCode::Success, entries)
}

fn refusal_of_all(outcomes: &[AlertOutcome]) -> Option<&Refusal> {
    let is_refused = |outcome: &AlertOutcome| outcome.refusal.is_some();
    let first = outcomes.first()?.refusal.as_ref();
    first.filter(|_| outcomes.iter().all(is_refused))
}

fn count_outcomes(outcomes: &[AlertOutcome]) {
    for outcome in outcomes {
        outcome.refusal.iter().for_each(count);
        let result = outcome.result.as_str();
        metrics::counter!("clarion_intake_incidents_total", "result" => result).increment(1);
    }
}

impl AlertOutcome {
    fn describe(&self) -> Value {
        let mut described = json!({ "key": self.key, "result": self.result.as_str() });
        if let Some(call) = &self.call {
            described["callSid"] = call.as_str().into();
        }
        if let Some(refusal) = &self.refusal {
            described["statusCode"] = refusal.code.code().into();
            described["statusMsg"] = refusal.message.as_str().into();
        }
        described
    }
}

fn answer(status: HttpStatus, code: StatusCode, body: Value) -> Response {
    let mut response = (status, Json(body)).into_response();
    // For the metrics.
    response.extensions_mut().insert(code);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_tries_again_only_where_that_helps() {
        for (code, status) in [
            (StatusCode::IntakeInvalid, 401),
            (StatusCode::AddressNotAllowed, 403),
            (StatusCode::AccountSuspended, 403),
            (StatusCode::BodyFormat, 400),
            (StatusCode::DataTooLong, 413),
            (StatusCode::FieldWrong, 422),
            (StatusCode::CalledNotAllowed, 422),
            (StatusCode::BalanceInsufficient, 422),
            (StatusCode::UnknownError, 503),
            (StatusCode::AcceptUnknown, 503),
            (StatusCode::TooManyRequests, 503),
        ] {
            assert_eq!(http_status(code).as_u16(), status, "{code:?}");
            let response = refused(&code.into());
            let again = response.headers().contains_key(RETRY_AFTER);
            assert_eq!(again, status == 503, "{code:?}");
        }
    }
}
