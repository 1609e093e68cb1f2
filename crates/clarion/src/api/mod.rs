//! HTTP in. Every route is on this screen.

use std::any::Any;
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{FromRequest, MatchedPath, Request, State};
use axum::http::StatusCode as HttpStatus;
use axum::http::request::Parts;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::{Notify, Semaphore, mpsc};
use tower_http::catch_panic::CatchPanicLayer;
use url::form_urlencoded;

use self::directory::Directory;
use self::limiter::Limiter;
use self::request::Authenticated;
use self::wire::BodyFormat;
use crate::audio_files::AudioFiles;
use crate::billing::Billing;
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::prompt::Prompt;
use crate::domain::status_code::StatusCode;
use crate::store::Store;

mod account_info;
pub mod auth;
mod bill_file;
mod bill_records;
mod call_result;
mod directory;
mod health;
mod landing_calls;
mod limiter;
mod media_upload;
pub mod openapi;
mod request;
pub mod wire;

pub use self::landing_calls::FORM as LANDING_CALL;

/// What the handlers work with.
#[derive(Debug)]
pub struct Api {
    pub config: Arc<Config>,
    pub store: Arc<dyn Store>,
    pub audio_files: AudioFiles,
    pub billing: Arc<Billing>,
    pub clock: Clock,
    /// Told when a call has been accepted.
    pub queued: Arc<Notify>,
    /// Where what shall be played is made ready while a call waits.
    pub ahead: Option<mpsc::Sender<Prompt>>,
    /// Numbers that are never called, as they were a moment ago.
    pub barred: Arc<RwLock<HashSet<String>>>,
    pub metrics: PrometheusHandle,
    /// Set when the server stops accepting: the readiness probe tells it.
    pub stopping: Arc<AtomicBool>,
    directory: Directory,
    limiter: Limiter,
    /// Places for uploads: each may take as much memory as an upload is long.
    uploads: Arc<Semaphore>,
}

impl Api {
    pub fn new(
        config: Arc<Config>,
        store: Arc<dyn Store>,
        audio_files: AudioFiles,
        billing: Arc<Billing>,
        clock: Clock,
        metrics: PrometheusHandle,
        stopping: Arc<AtomicBool>,
    ) -> Self {
        let directory = Directory::new(Arc::clone(&store));
        let limiter = Limiter::new(config.limits.clone());
        let uploads = Arc::new(Semaphore::new(config.audio_files.uploads_at_once));
        Self {
            config,
            store,
            audio_files,
            billing,
            clock,
            queued: Arc::default(),
            ahead: None,
            barred: Arc::default(),
            metrics,
            stopping,
            directory,
            limiter,
            uploads,
        }
    }
}

impl Api {
    pub fn is_barred(&self, digits: &str) -> bool {
        let barred = self.barred.read().unwrap_or_else(PoisonError::into_inner);
        barred.contains(digits)
    }

    /// Reads the list of barred numbers every second: an operator's change is honoured soon, and a request costs no question.
    pub async fn keep_barred(store: Arc<dyn Store>, barred: Arc<RwLock<HashSet<String>>>) {
        loop {
            match store.barred_numbers().await {
                Ok(numbers) => {
                    *barred.write().unwrap_or_else(PoisonError::into_inner) =
                        numbers.into_iter().collect();
                }
                Err(error) => tracing::error!(%error, "the barred numbers could not be read"),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// The client's address, as far as it is known and believed; the listener adds it to every request.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub IpAddr);

/// Trailing slashes are taken off before routing: clients write both forms.
pub fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route(
            "/{version}/Accounts/{sid}/Calls/LandingCalls",
            post(landing_calls::create).fallback(anything_else),
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
        .route(bill_file::ROUTE, get(bill_file::download))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(openapi::document))
        .fallback(anything_else)
        // No panic is known to be reachable from outside; should there be one, it is answered and ends nothing else.
        .layer(CatchPanicLayer::custom(after_panic))
        .layer(middleware::from_fn(measure))
        .with_state(api)
}

/// Below `/{SoftVersion}/Accounts`, whatever is not offered is refused in the API's own way, after authentication, with HTTP 200.
async fn anything_else(State(api): State<Arc<Api>>, request: Request) -> Response {
    if request.uri().path().split('/').nth(2) != Some("Accounts") {
        return (HttpStatus::NOT_FOUND, "not found\n").into_response();
    }
    match Authenticated::from_request(request, &api).await {
        Ok(request) => request.answer(&Err(StatusCode::NotOffered.into())),
        Err(refused) => refused,
    }
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
    metrics::counter!("clarion_http_answers_total", "operation" => operation, "code" => code)
        .increment(1);
    answer
}

/// The route's last word, for the metrics.
fn operation(route: &str) -> &'static str {
    const OPERATIONS: [&str; 9] = [
        "LandingCalls",
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
    let last = route.rsplit('/').next();
    OPERATIONS
        .into_iter()
        .find(|operation| last == Some(operation))
        .unwrap_or("other")
}

/// The first value of a query parameter, decoded; `None` where it is absent or empty.
fn query_value(parts: &Parts, name: &str) -> Option<String> {
    form_urlencoded::parse(parts.uri.query()?.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
        .filter(|value| !value.is_empty())
}
