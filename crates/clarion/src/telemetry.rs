//! Logs and metrics. Logs carry masked numbers and no secrets; metrics are read at `/metrics`.

use std::thread;
use std::time::Duration;

use anyhow::Context;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::{LogConfig, LogFormat};

const UPKEEP: Duration = Duration::from_secs(5);

/// Logs go to standard error, so that standard output belongs to what a command was asked for.
pub fn start_logging(config: &LogConfig) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&config.filter)
        .with_context(|| format!("log.filter: `{}` is not a filter", config.filter))?;
    let logs = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match config.format {
        LogFormat::Text => logs.try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))
}

/// Metrics of this process. Where they are started already (several servers in one test process), the parts share them.
pub fn start_metrics() -> PrometheusHandle {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_ok() {
        describe();
        tidy_up_regularly(handle.clone());
    }
    handle
}

/// Histograms keep every single value until somebody reads them; where nobody scrapes `/metrics` they would grow for ever.
fn tidy_up_regularly(handle: PrometheusHandle) {
    thread::Builder::new()
        .name("metrics-upkeep".to_owned())
        .spawn(move || {
            loop {
                thread::sleep(UPKEEP);
                handle.run_upkeep();
            }
        })
        .expect("the operating system gives us a thread at start");
}

fn describe() {
    metrics::describe_counter!(
        "clarion_http_answers_total",
        "Answers of the API, by operation and status code"
    );
    metrics::describe_histogram!(
        "clarion_http_seconds",
        metrics::Unit::Seconds,
        "Time from a request's last byte to its answer"
    );
    metrics::describe_gauge!("clarion_http_connections", "Open connections");
    metrics::describe_histogram!("clarion_store_batch_size", "Changes committed together");
    metrics::describe_histogram!(
        "clarion_store_commit_seconds",
        metrics::Unit::Seconds,
        "Time from taking a batch of changes to being free for the next"
    );
    metrics::describe_gauge!(
        "clarion_store_wal_bytes",
        metrics::Unit::Bytes,
        "Length of SQLite's write-ahead log"
    );
}
