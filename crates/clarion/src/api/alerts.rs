//! Where alerts come in: `POST /intake/{name}` with a token, and `POST /api/v2/calls/tts` as SMSEagle's clients send it. No signature is asked for:
//! monitoring tools cannot make one.
//!
//! Answers have ordinary HTTP statuses. 5xx is sent only where trying again helps: tools repeat such a request, and drop any other that is refused.

mod answer;
mod arrival;
mod forgetting;
mod incidents;
mod notice;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use self::arrival::IncomingAlert;
use super::Api;

pub use self::forgetting::keep_forgetting;
pub use self::notice::{AlertCaller, WantedAlert};

pub const ROUTE: &str = "/intake/{name}";
pub const CALL_ROUTE: &str = "/api/v2/calls/tts";

pub async fn receive(State(api): State<Arc<Api>>, alert: IncomingAlert) -> Response {
    match incidents::follow(&api, &alert).await {
        Ok(outcomes) => answer::accepted(&outcomes),
        Err(refusal) => answer::refused(&refusal),
    }
}

pub async fn receive_call(State(api): State<Arc<Api>>, alert: IncomingAlert) -> Response {
    match incidents::follow(&api, &alert).await {
        Ok(outcomes) => answer::queued(&outcomes),
        Err(refusal) => answer::refused(&refusal),
    }
}
