//! Logs and metrics. Logs carry masked numbers and no secrets; metrics are read at `/metrics`.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::{LogConfig, LogFormat};

const SECONDS: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0,
];
const SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
const UPKEEP: Duration = Duration::from_secs(5);

/// Logs go to standard error, so that standard output belongs to what a command was asked for.
/// The SIP library writes whole messages to its log, passwords' digests and telephone numbers included. Whoever wants to see them names it.
const QUIET: &str = "rsipstack=error";

pub fn start_logging(config: &LogConfig) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(format!("{QUIET},{}", config.filter))
        .with_context(|| format!("log.filter: `{}` is not a filter", config.filter))?;
    let logs = fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match config.format {
        LogFormat::Text => logs.try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))
}

/// Metrics of this process: there is one recorder, also where a test process runs several servers.
pub fn start_metrics() -> PrometheusHandle {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    let start = || {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
            .and_then(|builder| {
                builder.set_buckets_for_metric(Matcher::Suffix("_size".to_owned()), SIZES)
            })
            .expect("the lists of buckets are not empty")
            .build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).expect("nobody else sets a recorder");
        describe();
        handle
    };
    RECORDER.get_or_init(start).clone()
}

/// Notes how long a commit took: in the histogram, and the longest since the start by itself, because that is what a stall is seen by.
pub fn note_commit(time: Duration, longest: &mut Duration) {
    metrics::histogram!("clarion_store_commit_seconds").record(time);
    if time > *longest {
        *longest = time;
        metrics::gauge!("clarion_store_longest_commit_seconds").set(time.as_secs_f64());
    }
}

/// Sorts what has been recorded into its buckets. The recorder keeps every sample until someone does, and nobody may be reading.
pub async fn keep_up(metrics: PrometheusHandle) {
    loop {
        tokio::time::sleep(UPKEEP).await;
        metrics.run_upkeep();
    }
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
    metrics::describe_counter!(
        "clarion_callback_attempts_total",
        "Attempts to deliver a callback, by verdict"
    );
    metrics::describe_histogram!(
        "clarion_callback_lag_seconds",
        metrics::Unit::Seconds,
        "Time from when a callback was due to its attempt"
    );
    metrics::describe_gauge!(
        "clarion_callbacks_waiting",
        "Callbacks still to be delivered"
    );
    metrics::describe_gauge!(
        "clarion_callbacks_oldest_seconds",
        metrics::Unit::Seconds,
        "Age of the oldest callback still to be delivered"
    );
    metrics::describe_histogram!("clarion_store_batch_size", "Changes committed together");
    metrics::describe_histogram!(
        "clarion_store_commit_seconds",
        metrics::Unit::Seconds,
        "Time of one commit, with everything in it"
    );
    metrics::describe_gauge!(
        "clarion_store_longest_commit_seconds",
        metrics::Unit::Seconds,
        "The longest commit since the start"
    );
    metrics::describe_counter!(
        "clarion_bill_days_closed_total",
        "Days that this node has closed and filed"
    );
    metrics::describe_gauge!(
        "clarion_store_wal_bytes",
        metrics::Unit::Bytes,
        "Length of SQLite's write-ahead log"
    );
}
