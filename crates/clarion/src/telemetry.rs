//! Logs and metrics. Logs carry masked numbers and no secrets; metrics are read at `/metrics`.

use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use phone::signalling::SipRefusal;
use sound::speech::{EMBEDDED, VoiceOutcome};
use supervisor::Watch;
use tracing_subscriber::fmt;

use crate::config::{LogConfig, LogFormat};
use crate::disk_room::WatchedDisk;
use crate::domain::callback::DeliveryResult;
use crate::domain::intake::REFUSAL_CODES;
use crate::domain::intake::incident::IncidentResult;
use crate::domain::outcome::Outcome;

const SECONDS: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0,
];
const SIZES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
const UPKEEP: Duration = Duration::from_secs(5);
const DISK: Duration = Duration::from_secs(15);

/// Logs go to standard error, so that standard output belongs to what a command was asked for.
pub fn start_logging(config: &LogConfig) -> anyhow::Result<()> {
    let logs = fmt()
        .with_env_filter(config.filter.clone())
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
        begin_at_zero();
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
pub async fn keep_up(metrics: PrometheusHandle, watch: Watch) {
    loop {
        watch.heartbeat();
        tokio::time::sleep(UPKEEP).await;
        metrics.run_upkeep();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// One metric: its name, what tells its series apart, and what it means.
#[derive(Debug)]
pub struct Metric {
    pub kind: Kind,
    pub name: &'static str,
    pub labels: &'static [&'static str],
    pub meaning: &'static str,
}

const fn metric(
    kind: Kind,
    name: &'static str,
    labels: &'static [&'static str],
    meaning: &'static str,
) -> Metric {
    Metric {
        kind,
        name,
        labels,
        meaning,
    }
}

/// Every metric there is. The table in docs/operating.md is made from this one; dashboard and alerts are checked against it.
pub const METRICS: &[Metric] = {
    use Kind::{Counter, Gauge, Histogram};
    &[
        metric(
            Gauge,
            "clarion_build_info",
            &["version"],
            "always 1; which program runs",
        ),
        metric(
            Gauge,
            "clarion_ready",
            &[],
            "1 while the server is ready, as at `/readyz`: the database takes writes, every task is up, the disk has room, and the server is not stopping",
        ),
        metric(
            Gauge,
            "clarion_task_up",
            &["task"],
            "1 while a long-lived task or thread of the server runs; 0 while it is down or makes no progress",
        ),
        metric(
            Gauge,
            "clarion_data_free_bytes",
            &[],
            "free space at `data_dir`, read every 15 s",
        ),
        metric(
            Counter,
            "clarion_http_responses_total",
            &["operation", "code"],
            "answers by statusCode; accepted calls are those of LandingCalls and VoiceVerify with 000000",
        ),
        metric(
            Histogram,
            "clarion_http_seconds",
            &["operation"],
            "time to the answer",
        ),
        metric(Gauge, "clarion_http_connections", &[], "open connections"),
        metric(
            Counter,
            "clarion_failed_logins_total",
            &[],
            "requests with a wrong sig, and alerts and downloads of bills with a wrong token",
        ),
        metric(
            Counter,
            "clarion_intake_incidents_total",
            &["result"],
            "what became of alerts at intakes: people are called (called), are being called or know already (known), the incident is over (resolved), there was nothing to do (nothing), refused",
        ),
        metric(
            Counter,
            "clarion_intake_refused_total",
            &["code"],
            "alerts that were refused, by statusCode, and those whose callee was: the tool may drop them (`alerting.md`)",
        ),
        metric(
            Gauge,
            "clarion_claims_held",
            &["reason"],
            "1 while this node claims no calls for that reason: its clock is too far from the database's (clock), prompts cannot be made (prompts), packets leave too late (quality)",
        ),
        metric(
            Gauge,
            "clarion_clock_offset_seconds",
            &[],
            "how far the database's clock is ahead of this machine's",
        ),
        metric(Gauge, "clarion_queue_calls", &[], "calls that wait"),
        metric(
            Gauge,
            "clarion_queue_oldest_seconds",
            &[],
            "how long the call that has been due the longest waits to be dialled; those that wait for a later time or for their callee do not count",
        ),
        metric(
            Gauge,
            "clarion_calls",
            &["state"],
            "calls that run on this node, by state; an `answered` call is playing",
        ),
        metric(
            Gauge,
            "clarion_dialling_stopped",
            &[],
            "1 after `clarion call stop-all`",
        ),
        metric(
            Counter,
            "clarion_calls_ended_total",
            &["outcome"],
            "ended calls by outcome (`calls.md`)",
        ),
        metric(
            Histogram,
            "clarion_call_setup_seconds",
            &[],
            "time from accept to the first INVITE, the wait in the queue included",
        ),
        metric(
            Counter,
            "clarion_sip_refused_total",
            &["what"],
            "SIP that was refused before any work: packets (datagram) and connections (connection) of strangers, connections beyond the limits or without a message (excess_connection), and messages of ours that a Contact or route would have led to this machine or its network segment (target)",
        ),
        metric(
            Counter,
            "clarion_media_packets_total",
            &[],
            "RTP packets sent, counted when their call is over",
        ),
        metric(
            Counter,
            "clarion_media_packets_late_total",
            &[],
            "RTP packets that left more than 5 ms late",
        ),
        metric(
            Gauge,
            "clarion_trunk_up",
            &["trunk"],
            "1 if the trunk is used: it answers, does not keep failing and is not drained",
        ),
        metric(
            Gauge,
            "clarion_trunk_slowed_accounts",
            &["trunk"],
            "accounts whose calls the trunk gets one by one, because it refuses their numbers; those of others go on",
        ),
        metric(
            Gauge,
            "clarion_trunk_calls",
            &["trunk"],
            "calls that run over the trunk",
        ),
        metric(
            Histogram,
            "clarion_prompt_wait_seconds",
            &[],
            "time that a claimed call waited for its prompt; near 0 where prompts were rendered ahead",
        ),
        metric(
            Counter,
            "clarion_prompts_prerendered_total",
            &["result"],
            "prompts that were to be rendered while their calls waited: `rendered`, `failed`, or `given up` because too many waited",
        ),
        metric(
            Gauge,
            "clarion_prompts_prerender_waiting",
            &[],
            "prompts that wait to be rendered ahead of their calls",
        ),
        metric(
            Counter,
            "clarion_voice_texts_total",
            &["voice", "result"],
            "texts that a voice was to speak: `spoken`, `failed`, or `passed` because it rests after failures, has too much to do to speak in time, or may speak no more characters today",
        ),
        metric(
            Counter,
            "clarion_voice_characters_total",
            &["voice"],
            "characters that a voice was given",
        ),
        metric(
            Histogram,
            "clarion_voice_seconds",
            &["voice"],
            "time that a voice took for a text",
        ),
        metric(
            Counter,
            "clarion_callback_attempts_total",
            &["verdict"],
            "attempts to deliver a callback",
        ),
        metric(
            Histogram,
            "clarion_callback_lag_seconds",
            &[],
            "time from when a callback was due to its attempt; grows when `callbacks.concurrency` is too small",
        ),
        metric(
            Counter,
            "clarion_callback_polls_total",
            &[],
            "looks for callbacks that are due; what this process itself owes is mostly sent without one",
        ),
        metric(
            Counter,
            "clarion_callbacks_given_up_total",
            &[],
            "callbacks that will not be tried again (`clarion callback list --state given-up`)",
        ),
        metric(
            Counter,
            "clarion_callbacks_put_back_total",
            &[],
            "callbacks that were put back because their account had no place at the address of the receiver (`callbacks.per_address`)",
        ),
        metric(
            Gauge,
            "clarion_callbacks_waiting",
            &[],
            "callbacks still to be delivered, counted every 15 s",
        ),
        metric(
            Gauge,
            "clarion_callbacks_oldest_seconds",
            &[],
            "age of the oldest callback that waits",
        ),
        metric(
            Histogram,
            "clarion_store_batch_size",
            &[],
            "changes committed together (PostgreSQL: accepted calls); grows with the load",
        ),
        metric(
            Histogram,
            "clarion_store_commit_seconds",
            &[],
            "time of one commit with all its changes",
        ),
        metric(
            Gauge,
            "clarion_store_longest_commit_seconds",
            &[],
            "the longest commit since the start",
        ),
        metric(
            Gauge,
            "clarion_store_wal_bytes",
            &[],
            "size of SQLite's write-ahead log; it is restarted at 8 MiB, and at 256 MiB at the latest",
        ),
        metric(
            Counter,
            "clarion_store_disk_full_total",
            &[],
            "commits on SQLite that found the disk full and were tried again in the room of the reserve",
        ),
        metric(
            Counter,
            "clarion_bill_days_closed_total",
            &[],
            "days that this node has closed and filed",
        ),
    ]
};

fn describe() {
    for metric in METRICS {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.meaning),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.meaning),
            Kind::Histogram => metrics::describe_histogram!(metric.name, metric.meaning),
        }
    }
}

/// Counters that begin at 0 rather than with their first event: a rate over a series that was not there before sees nothing.
fn begin_at_zero() {
    metrics::gauge!("clarion_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    for name in [
        "clarion_media_packets_total",
        "clarion_media_packets_late_total",
        "clarion_callbacks_given_up_total",
        "clarion_callbacks_put_back_total",
        "clarion_bill_days_closed_total",
        "clarion_store_disk_full_total",
        "clarion_failed_logins_total",
    ] {
        metrics::counter!(name).increment(0);
    }
    for refusal in SipRefusal::ALL {
        metrics::counter!("clarion_sip_refused_total", "what" => refusal.as_str()).increment(0);
    }
    for code in REFUSAL_CODES {
        metrics::counter!("clarion_intake_refused_total", "code" => code.code()).increment(0);
    }
    for result in IncidentResult::ALL {
        metrics::counter!("clarion_intake_incidents_total", "result" => result.as_str())
            .increment(0);
    }
    metrics::gauge!("clarion_prompts_prerender_waiting").set(0.0);
    for result in ["rendered", "failed", "given up"] {
        metrics::counter!("clarion_prompts_prerendered_total", "result" => result).increment(0);
    }
    for outcome in VoiceOutcome::ALL {
        metrics::counter!("clarion_voice_texts_total", "voice" => EMBEDDED, "result" => outcome.as_str())
            .increment(0);
    }
    for outcome in Outcome::ALL {
        metrics::counter!("clarion_calls_ended_total", "outcome" => outcome.as_str()).increment(0);
    }
    for verdict in DeliveryResult::ALL {
        metrics::counter!("clarion_callback_attempts_total", "verdict" => verdict.as_str())
            .increment(0);
    }
}

/// A full disk stops everything, so it is watched from inside as well.
pub async fn watch_disk(disk: Arc<WatchedDisk>, watch: Watch) {
    loop {
        watch.heartbeat();
        if let Some(free) = disk.free().await {
            metrics::gauge!("clarion_data_free_bytes").set(free as f64);
        }
        tokio::time::sleep(DISK).await;
    }
}
