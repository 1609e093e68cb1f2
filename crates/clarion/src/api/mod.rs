//! Incoming HTTP requests. Every route is in this file.

use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::Router;
use axum::extract::{FromRequest, MatchedPath, Request, State};
use axum::http::StatusCode as HttpStatus;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use metrics_exporter_prometheus::PrometheusHandle;
use supervisor::{PanicPoint, Supervisor};
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;

use self::directory::Directory;
use self::downloads::Downloads;
use self::failed_logins::FailedLogins;
use self::limiter::Limiter;
use self::request::Authenticated;
use self::wire::BodyFormat;
use crate::audio_files::AudioFiles;
use crate::billing::Billing;
use crate::callbacks::OwedSignal;
use crate::clock::Clock;
use crate::config::Config;
use crate::disk_room::DiskRoom;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::fair_places::FairPlaces;
use crate::placing::CallPlacing;
use crate::readiness::Readiness;
use crate::store::Store;

mod account_info;
pub mod alerts;
mod arrival;
pub mod auth;
mod bill_file;
mod bill_records;
mod call_cancel;
mod call_result;
mod directory;
pub mod dissect;
mod downloads;
mod event_fields;
mod failed_logins;
mod health;
mod key_fields;
mod landing_calls;
mod limiter;
mod media_upload;
mod notice_fields;
pub mod openapi;
pub mod operations;
mod placing;
mod query;
mod query_call_state;
mod request;
mod voice_verify;
pub mod wire;

pub use self::arrival::Arrival;
pub use self::landing_calls::FORM as LANDING_CALL;
pub use self::query::name as query_name;
pub use self::query_call_state::FORM as QUERY_CALL_STATE;

/// Everything that the handlers use.
#[derive(Debug)]
pub struct Api {
    pub config: Arc<Config>,
    pub store: Arc<dyn Store>,
    pub audio_files: AudioFiles,
    pub billing: Arc<Billing>,
    pub clock: Clock,
    pub placing: Arc<CallPlacing>,
    /// To be told when something is owed to an application.
    pub callback_owed: Arc<OwedSignal>,
    pub disk: Arc<DiskRoom>,
    pub readiness: Arc<Readiness>,
    pub supervisor: Supervisor,
    pub metrics: PrometheusHandle,
    pub admission: Admission,
}

/// Decides who may send a request now: accounts as they were a moment ago, and the places that they take.
#[derive(Debug)]
pub struct Admission {
    directory: Directory,
    limiter: Limiter,
    /// Limits the uploads at once, because each may take as much memory as it is long.
    uploads: FairPlaces,
    alerts: FairPlaces,
    long_alerts: FairPlaces,
    long_alert_readers: Arc<Semaphore>,
    downloads: Downloads,
    failures: FailedLogins,
    admitted_point: PanicPoint,
}

impl Admission {
    pub fn new(config: &Config, store: Arc<dyn Store>, supervisor: &Supervisor) -> Self {
        Self {
            admitted_point: supervisor.panic_point("request"),
            directory: Directory::new(store),
            limiter: Limiter::new(config.limits.clone()),
            uploads: FairPlaces::new(
                config.audio_files.uploads_at_once,
                config.audio_files.uploads_per_account,
            ),
            alerts: alerts::places(),
            long_alerts: alerts::long_places(),
            long_alert_readers: alerts::readers(),
            downloads: Downloads::new(config.http.body_time),
            failures: FailedLogins::default(),
        }
    }
}

/// The client's address, as far as it is known and trusted. The listener adds it to every request.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub IpAddr);

/// Whether a connection has shown who it is. The listener adds it to every request.
#[derive(Debug, Clone, Default)]
pub struct KnownClient(Arc<AtomicBool>);

impl KnownClient {
    pub fn record(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Trailing slashes are removed before routing, because clients write both forms.
pub fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route(
            "/{version}/Accounts/{sid}/Calls/LandingCalls",
            post(landing_calls::create).fallback(anything_else),
        )
        .route(
            "/{version}/Accounts/{sid}/Calls/VoiceVerify",
            post(voice_verify::create).fallback(anything_else),
        )
        .route(
            "/{version}/Accounts/{sid}/Calls/CallCancel",
            post(call_cancel::cancel).fallback(anything_else),
        )
        // Where the vendor's client libraries send it.
        .route(
            "/{version}/SubAccounts/{sid}/Calls/CallCancel",
            post(call_cancel::cancel).fallback(anything_else),
        )
        .route(
            "/{version}/Accounts/{sid}/ivr/call",
            post(query_call_state::query).fallback(anything_else),
        )
        .route(
            "/{version}/Accounts/{sid}/Calls/MediaFileUpload",
            post(media_upload::upload)
                .get(media_upload::download)
                .fallback(anything_else),
        )
        .route(
            "/{version}/Accounts/{sid}/BillRecords",
            post(bill_records::request).fallback(anything_else),
        )
        .route(
            "/{version}/Accounts/{sid}/CallResult",
            get(call_result::show)
                .post(call_result::show)
                .fallback(anything_else),
        )
        .route(
            "/{version}/Accounts/{sid}/AccountInfo",
            get(account_info::show)
                .post(account_info::show)
                .fallback(anything_else),
        )
        .merge(alerts::routes())
        .route(bill_file::ROUTE, get(bill_file::download))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(openapi::document))
        .fallback(anything_else)
        // No panic is known to be reachable from outside. If one happens, its request is answered and nothing else ends.
        .layer(CatchPanicLayer::custom(after_panic))
        .layer(middleware::from_fn(measure))
        .with_state(api)
}

/// Refuses every other request. Below `/{SoftVersion}/Accounts`, and where some clients look for the accounts of their customers, the refusal is
/// an API answer with HTTP 200, after authentication.
async fn anything_else(State(api): State<Arc<Api>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let mut segments = path.splitn(5, '/').skip(2);
    if !matches!(segments.next(), Some("Accounts" | "SubAccounts")) {
        return (HttpStatus::NOT_FOUND, "not found\n").into_response();
    }
    let refusal = not_offered(segments.nth(1).unwrap_or_default(), &path);
    match Authenticated::from_request(request, &api).await {
        Ok(request) => request.answer(&Err(refusal)),
        Err(refused) => refused,
    }
}

/// Says what the client may do instead.
fn not_offered(operation: &str, path: &str) -> Refusal {
    let message = match operations::at(operation) {
        None => format!(
            "this operation is not offered here; offered are {}",
            operations::offered()
        ),
        // Spelled otherwise, below another kind of account, or by another method.
        Some(known)
            if !path.ends_with(known.path)
                || path.contains("/SubAccounts/") && known.path != call_cancel::PATH =>
        {
            format!(
                "the operation is offered as Accounts/{{accountSid}}/{}",
                known.path
            )
        }
        Some(known) => format!(
            "{} is offered by another method: use {}",
            known.path,
            known.methods.join(" or ")
        ),
    };
    Refusal::new(StatusCode::NotOffered, message)
}

fn after_panic(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a request ended in a panic");
    wire::answer(BodyFormat::Xml, &Err(StatusCode::UnknownError.into()))
}

async fn measure(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let operation = route.map_or("other", |path| operation(path.as_str()));
    let began = Instant::now();
    let answer = next.run(request).await;
    metrics::histogram!("clarion_http_seconds", "operation" => operation)
        .record(began.elapsed().as_secs_f64());
    let code = answer
        .extensions()
        .get::<StatusCode>()
        .map_or("", |code| code.code());
    metrics::counter!("clarion_http_responses_total", "operation" => operation, "code" => code)
        .increment(1);
    answer
}

/// Returns the last word of the route, for the metrics.
fn operation(route: &str) -> &'static str {
    const OPERATIONS: [&str; 11] = [
        "LandingCalls",
        "VoiceVerify",
        "CallCancel",
        "MediaFileUpload",
        "BillRecords",
        "CallResult",
        "AccountInfo",
        "healthz",
        "readyz",
        "metrics",
        "openapi.json",
    ];
    if route == bill_file::ROUTE {
        return "BillFile";
    }
    if [alerts::ROUTE, alerts::CALL_ROUTE, alerts::VOICE_CALL_ROUTE].contains(&route) {
        return "Intake";
    }
    if route.ends_with("/ivr/call") {
        return "QueryCallState";
    }
    let last = route.rsplit('/').next();
    OPERATIONS
        .into_iter()
        .find(|operation| last == Some(operation))
        .unwrap_or("other")
}
