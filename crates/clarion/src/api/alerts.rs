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
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tower_http::catch_panic::CatchPanicLayer;

use self::answer::AlertOutcome;
use self::arrival::IncomingAlert;
use super::Api;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::fair_places::FairPlaces;

pub use self::arrival::token as token_of;
pub use self::forgetting::keep_forgetting;
pub use self::notice::{AlertCaller, WantedAlert};

pub const ROUTE: &str = "/intake/{name}";
pub const CALL_ROUTE: &str = "/api/v2/calls/tts";
/// The same, with a voice of SMSEagle's that nobody has here.
pub const VOICE_CALL_ROUTE: &str = "/api/v2/calls/tts_advanced";

/// So many alerts that have arrived are followed at once, of all accounts and of one. Each asks the database several times: what one account has under way there
/// at once, the calls of the others wait for.
const AT_ONCE: usize = 8;
const AT_ONCE_OF_ACCOUNT: usize = 1;
/// So long an alert waits for its place; then its tool sends it again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Places for long alerts, while they arrive.
pub fn long_places() -> FairPlaces {
    FairPlaces::new(arrival::LONG_ALERTS, arrival::LONG_ALERTS_OF_ACCOUNT)
}

/// Places for alerts that have arrived.
pub fn places() -> FairPlaces {
    FairPlaces::new(AT_ONCE, AT_ONCE_OF_ACCOUNT)
}

/// Threads that read long alerts: what they take of the processors, calls do not get.
pub fn readers() -> Arc<Semaphore> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new((processors / 2).max(1)))
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

async fn follow(api: &Arc<Api>, alert: &IncomingAlert) -> Result<Vec<AlertOutcome>, Refusal> {
    let deadline = Instant::now() + PATIENCE;
    let place = api
        .admission
        .alerts
        .take(alert.account.sid.as_str(), deadline);
    let _place = place.await.map_err(|_| {
        Refusal::new(
            StatusCode::TooManyRequests,
            "too many alerts are being followed",
        )
    })?;
    incidents::follow(api, alert).await
}

async fn receive(State(api): State<Arc<Api>>, alert: IncomingAlert) -> Response {
    match follow(&api, &alert).await {
        Ok(outcomes) => answer::accepted(&outcomes),
        Err(refusal) => answer::refused(&refusal),
    }
}

async fn receive_call(State(api): State<Arc<Api>>, alert: IncomingAlert) -> Response {
    match follow(&api, &alert).await {
        Ok(outcomes) => answer::queued(&outcomes),
        Err(refusal) => answer::refused(&refusal),
    }
}
