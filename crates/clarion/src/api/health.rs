//! For monitoring: whether this server is alive, whether it is ready, and its metrics.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;

use super::{Api, PeerAddress};

/// Shows that the process answers. Does not check the database: a restart of this process would not mend it.
pub async fn alive() -> &'static str {
    "ok\n"
}

/// Shows whether the server takes new requests.
pub async fn ready(State(api): State<Arc<Api>>) -> (StatusCode, String) {
    match api.readiness.check().await {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

pub async fn metrics(
    State(api): State<Arc<Api>>,
    Extension(PeerAddress(from)): Extension<PeerAddress>,
) -> (StatusCode, String) {
    if !api
        .config
        .http
        .metrics_networks
        .iter()
        .any(|network| network.contains(&from))
    {
        return (
            StatusCode::FORBIDDEN,
            "http.metrics_networks does not name your address\n".to_owned(),
        );
    }
    let ready = api.readiness.check().await.is_ok();
    metrics::gauge!("clarion_ready").set(f64::from(u8::from(ready)));
    for task in api.supervisor.tasks() {
        metrics::gauge!("clarion_task_up", "task" => task.name).set(f64::from(u8::from(task.up)));
    }
    (StatusCode::OK, api.metrics.render())
}
