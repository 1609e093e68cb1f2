//! For whatever watches this server: is it alive, is it ready, what does it count.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;

use super::{Api, PeerAddress};

/// The process answers. Says nothing about the database: restarting this process would not mend that.
pub async fn alive() -> &'static str {
    "ok\n"
}

/// New requests are welcome.
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
