//! Where alerts come in: `POST /intake/{name}` with a token, and `POST /api/v2/calls/tts` as SMSEagle's clients send it. No signature is asked for:
//! monitoring tools cannot make one.
//!
//! Answers have ordinary HTTP statuses. 5xx is sent only where trying again helps: tools repeat such a request, and drop any other that is refused.

mod answer;
mod arrival;
mod forgetting;
mod incidents;
mod notice;

use std::any::Any;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use tower_http::catch_panic::CatchPanicLayer;

use self::arrival::IncomingAlert;
use super::Api;
use crate::domain::status_code::StatusCode;
use crate::fair_places::FairPlaces;

pub use self::arrival::token as token_of;
pub use self::forgetting::keep_forgetting;
pub use self::notice::{AlertCaller, WantedAlert};

pub const ROUTE: &str = "/intake/{name}";
pub const CALL_ROUTE: &str = "/api/v2/calls/tts";
/// The same, with a voice of SMSEagle's that nobody has here.
pub const VOICE_CALL_ROUTE: &str = "/api/v2/calls/tts_advanced";

/// Places for long alerts.
pub fn places() -> FairPlaces {
    FairPlaces::new(arrival::LONG_ALERTS, arrival::LONG_ALERTS_OF_ACCOUNT)
}

/// A tool takes any answer but 5xx for an alert that has arrived: one whose request ended in a panic comes again.
pub fn routes() -> Router<Arc<Api>> {
    Router::new()
        .route(ROUTE, post(receive))
        .route(CALL_ROUTE, post(receive_call))
        .route(VOICE_CALL_ROUTE, post(receive_call))
        .layer(CatchPanicLayer::custom(after_panic))
}

fn after_panic(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("an alert ended in a panic");
    answer::refused(&StatusCode::UnknownError.into())
}

async fn receive(State(api): State<Arc<Api>>, alert: IncomingAlert) -> Response {
    match incidents::follow(&api, &alert).await {
        Ok(outcomes) => answer::accepted(&outcomes),
        Err(refusal) => answer::refused(&refusal),
    }
}

async fn receive_call(State(api): State<Arc<Api>>, alert: IncomingAlert) -> Response {
    match incidents::follow(&api, &alert).await {
        Ok(outcomes) => answer::queued(&outcomes),
        Err(refusal) => answer::refused(&refusal),
    }
}
