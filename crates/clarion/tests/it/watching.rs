//! What is watched: the metrics that a server really shows are those that the documents, the dashboard and the alert rules speak of.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use clarion::domain::status_code::StatusCode;
use clarion::telemetry::{Kind, METRICS, Metric};
use serde_json::Value;

use crate::support::child::{Caller, ChildServer, Installation};
use crate::support::receiver::{Receiver, ok};
use crate::support::{APP, eventually};

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging")
        .join(file)
}

/// Every label that a series of one metric has, with its values.
type Labels = BTreeMap<String, BTreeSet<String>>;

/// What `/metrics` says: kind and labels of each metric.
#[derive(Debug, Default)]
struct Shown {
    kinds: BTreeMap<String, String>,
    labels: BTreeMap<String, Labels>,
}

impl Shown {
    fn read(text: &str) -> Self {
        let mut shown = Self::default();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                shown.kinds.insert(name.to_owned(), kind.to_owned());
            } else if !line.starts_with('#') && !line.is_empty() {
                let end = line.find(['{', ' ']).unwrap();
                let name = base(&line[..end], |name| shown.kinds.contains_key(name)).to_owned();
                let known = shown.labels.entry(name).or_default();
                for (label, value) in selectors(&line[end..]) {
                    known.entry(label).or_default().insert(value);
                }
            }
        }
        shown
    }
}

/// The metric behind a series: a histogram has three kinds of them.
fn base(series: &str, known: impl Fn(&str) -> bool) -> &str {
    if known(series) {
        return series;
    }
    let mut endings = ["_bucket", "_sum", "_count"].iter();
    let bare = endings.find_map(|ending| series.strip_suffix(ending));
    bare.unwrap_or(series)
}

/// Label and value of each selector in `{…}` at the beginning of a text.
fn selectors(text: &str) -> Vec<(String, String)> {
    let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
        return Vec::new();
    };
    let pieces = inner.0.split("\",").filter(|piece| !piece.is_empty());
    let selector = |piece: &str| {
        let (name, value) = piece.split_once('"').unwrap();
        let name = name.trim_end_matches(['=', '~', '!']);
        (name.to_owned(), value.trim_end_matches('"').to_owned())
    };
    pieces.map(selector).collect()
}

/// A server that has made one call and reported it.
async fn busy_server() -> (Installation, ChildServer, String) {
    let receiver = Receiver::start(vec![ok()]).await;
    let trunk = "[callbacks]\nallowed_networks = [\"127.0.0.0/8\"]\n[[trunk]]\nname = \"loopback\"\nloopback = true\nchannels = 5\ncalls_per_second = 5\nprefixes = [\"\"]\n";
    let installation = Installation::with_settings(None, trunk).await;
    let server = installation.start().await;
    let mut caller = Caller::connect(&server.client).await.unwrap();
    let fields = format!(
        "\"to\":\"13800000005\",\"mediaTxt\":\"hello\",\"respUrl\":\"{}\"",
        receiver.url()
    );
    caller.place(&fields).await.unwrap();
    let code = format!("{{\"appId\":\"{APP}\",\"to\":\"13800000002\",\"verifyCode\":\"1234\"}}");
    let code = caller.operation("Calls/VoiceVerify", &code).await.unwrap();
    assert!(code.contains("000000"), "{code}");
    let mut text = String::new();
    eventually("the call is over and counted", async || {
        text = server.metrics().await;
        text.contains("clarion_callback_attempts_total{verdict=\"delivered\"} 1")
            && text.contains("clarion_calls_ended_total{outcome=\"talked\"} 1")
            && text.contains("clarion_trunk_calls")
    })
    .await;
    (installation, server, text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_shows_exactly_the_metrics_that_are_documented_and_watched() {
    let (_installation, _server, text) = busy_server().await;
    let shown = Shown::read(&text);
    let names: BTreeSet<_> = shown.kinds.keys().map(String::as_str).collect();
    let wanted: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(names, wanted);
    for metric in METRICS {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        assert_eq!(shown.kinds[metric.name], kind, "{}", metric.name);
        let labels = shown.labels[metric.name].keys().map(String::as_str);
        let labels: BTreeSet<_> = labels.filter(|label| *label != "le").collect();
        let wanted: BTreeSet<_> = metric.labels.iter().copied().collect();
        assert_eq!(labels, wanted, "{}", metric.name);
    }
    for (place, expression) in expressions() {
        judge(&place, &expression, &shown);
    }
    assert!(text.contains("clarion_ready 1"), "{text}");
}

/// Every expression of the alert rules and of the dashboard, with where it stands.
fn expressions() -> Vec<(String, String)> {
    let rules = std::fs::read_to_string(packaging("alerts.yaml")).unwrap();
    let mut found: Vec<_> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "))
        .map(|expression| ("alerts.yaml".to_owned(), expression.to_owned()))
        .collect();
    assert!(found.len() >= 10);
    let dashboard = std::fs::read_to_string(packaging("grafana-dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let title = format!("panel {}", panel["title"]);
            found.push((title, target["expr"].as_str().unwrap().to_owned()));
        }
    }
    found
}

fn known(series: &str) -> Option<&'static Metric> {
    let find = |name: &str| METRICS.iter().find(|metric| metric.name == name);
    let histogram = |metric: &&Metric| metric.kind == Kind::Histogram;
    find(series).or_else(|| find(base(series, |_| false)).filter(histogram))
}

/// Every name and label of an expression exists, and so does every value that it picks.
fn judge(place: &str, expression: &str, shown: &Shown) {
    let mut labels = BTreeSet::from(["instance", "le"]);
    let mut metrics = 0;
    for (start, _) in expression.match_indices("clarion_") {
        let rest = &expression[start..];
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let metric = known(&rest[..end])
            .unwrap_or_else(|| panic!("{place}: there is no metric {}", &rest[..end]));
        metrics += 1;
        labels.extend(metric.labels);
        for (label, value) in selectors(&rest[end..]) {
            if label == "instance" {
                continue;
            }
            assert!(
                metric.labels.contains(&label.as_str()),
                "{place}: {} has no {label}",
                metric.name
            );
            for value in value.split('|').filter(|value| !value.is_empty()) {
                let exists = shown.labels[metric.name][&label].contains(value)
                    || (label == "code" && StatusCode::ALL.iter().any(|code| code.code() == value));
                assert!(
                    exists,
                    "{place}: no {label} of {} is ever {value}",
                    metric.name
                );
            }
        }
    }
    assert!(
        metrics > 0 || expression.starts_with("up{"),
        "{place}: {expression}"
    );
    for group in expression.split("by (").skip(1) {
        for label in group.split(')').next().unwrap().split(',') {
            assert!(labels.contains(label.trim()), "{place}: groups by {label}");
        }
    }
}

#[test]
fn every_metric_is_on_the_dashboard() {
    let dashboard = std::fs::read_to_string(packaging("grafana-dashboard.json")).unwrap();
    for metric in METRICS {
        assert!(
            dashboard.contains(metric.name),
            "{} is not shown",
            metric.name
        );
    }
}

/// Prometheus' own tool, from the machine or from where `make setup` has put it.
fn promtool() -> Command {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/promtool/promtool");
    Command::new(if ours.exists() {
        ours
    } else {
        "promtool".into()
    })
}

#[test]
fn the_alert_rules_are_rules_and_wake_somebody_when_they_should() {
    for arguments in [
        ["check", "rules", "alerts.yaml"],
        ["test", "rules", "alerts.test.yaml"],
    ] {
        let output = promtool()
            .args(arguments)
            .current_dir(packaging(""))
            .output()
            .expect("promtool is there: run `make setup`");
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
}
