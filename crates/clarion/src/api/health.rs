//! For whatever watches this server: is it alive, is it ready, what does it count.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;

use super::{Api, PeerAddress};

/// The process answers. Says nothing about the database: restarting this process would not mend that.
pub async fn alive() -> &'static str {
    "ok\n"
}

/// New requests are welcome: the database takes writes, and the server is not stopping.
pub async fn ready(State(api): State<Arc<Api>>) -> (StatusCode, &'static str) {
    match readiness(&api).await {
        Ok(()) => (StatusCode::OK, "ready\n"),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
    }
}

async fn readiness(api: &Api) -> Result<(), &'static str> {
    if api.stopping.load(Ordering::Relaxed) {
        return Err("stopping\n");
    }
    api.store.ready().await.map_err(|error| {
        tracing::warn!(%error, "not ready");
        "the database does not answer\n"
    })
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
    let ready = readiness(&api).await.is_ok();
    metrics::gauge!("clarion_ready").set(f64::from(u8::from(ready)));
    (StatusCode::OK, api.metrics.render())
}
