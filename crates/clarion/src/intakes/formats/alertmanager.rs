//! The webhook of Alertmanager, version 4: a group of alerts (`template.Data` of its sources, with groupKey and truncatedAlerts).

use serde::Deserialize;

use super::super::alert::{Alert, AlertGroup, AlertNews, MOST_ALERTS};
use super::wire::{self, Text, Texts};
use crate::domain::intake::IntakeSettings;
use crate::domain::intake::incident::MOST_FINGERPRINTS;
use crate::domain::status_code::Refusal;

const VERSION: &str = "4";

/// Labels that say where something is, the best first.
const PLACES: &[&str] = &[
    "instance",
    "host",
    "hostname",
    "node",
    "nodename",
    "server",
    "device",
    "pod",
    "container",
    "service",
    "cluster",
    "namespace",
    "job",
];

/// A group of alerts. Grafana writes the same, with a little more.
#[derive(Debug, Deserialize)]
pub struct WireGroup {
    #[serde(default)]
    pub version: Text,
    #[serde(default, rename = "groupKey")]
    group_key: Text,
    #[serde(default, rename = "truncatedAlerts")]
    truncated: Text,
    #[serde(default)]
    status: Text,
    #[serde(default, rename = "groupLabels")]
    group_labels: Texts,
    #[serde(default, rename = "commonLabels")]
    common_labels: Texts,
    #[serde(default, rename = "commonAnnotations")]
    common_annotations: Texts,
    #[serde(default, deserialize_with = "wire::list")]
    alerts: Vec<WireAlert>,
}

#[derive(Debug, Deserialize)]
struct WireAlert {
    #[serde(default)]
    status: Text,
    #[serde(default)]
    labels: Texts,
    #[serde(default)]
    annotations: Texts,
    #[serde(default, rename = "startsAt")]
    starts_at: Text,
    #[serde(default)]
    fingerprint: Text,
}

pub fn read(body: &[u8], settings: &IntakeSettings) -> Result<AlertNews, Refusal> {
    let group: WireGroup = wire::read(body)?;
    if !matches!(group.version.0.as_str(), "" | VERSION) {
        return Err(Refusal::field(format!(
            "version must be {VERSION}: this intake reads the webhook of Alertmanager"
        )));
    }
    group.news(settings)
}

impl WireGroup {
    pub fn news(self, settings: &IntakeSettings) -> Result<AlertNews, Refusal> {
        wire::required(&self.group_key.0, "groupKey")?;
        match self.status.0.as_str() {
            "resolved" => return Ok(AlertNews::Resolved(self.group_key.0)),
            "firing" => {}
            _ => return Err(Refusal::field("status must be firing or resolved")),
        }
        let mut firing: Vec<_> = self.alerts.into_iter().collect();
        firing.retain(|alert| alert.status.0 != "resolved");
        if firing.is_empty() {
            return Err(Refusal::field("alerts must have one that is firing"));
        }
        let label = settings.to_label.as_deref();
        let named = |alert: &WireAlert| {
            let value = alert.labels.first(&[label?]);
            (!value.is_empty()).then_some(value)
        };
        let to = firing.iter().find_map(named).unwrap_or_default();
        let fingerprints = firing.iter().take(MOST_FINGERPRINTS);
        Ok(AlertNews::Firing(Box::new(AlertGroup {
            key: self.group_key.0,
            title: self.common_annotations.first(&["summary", "title"]),
            text: String::new(),
            count: firing.len() + self.truncated.0.parse::<u16>().map_or(0, usize::from),
            fingerprints: fingerprints.map(WireAlert::fingerprint).collect(),
            alerts: firing
                .iter()
                .take(MOST_ALERTS)
                .map(|alert| alert.read(&self.common_labels))
                .collect(),
            group: self.group_labels.0,
            to: super::names(&to),
            fields: Vec::new(),
        })))
    }
}

impl WireAlert {
    /// The tool's own, or its labels where it sends none.
    fn fingerprint(&self) -> String {
        match self.fingerprint.0.as_str() {
            "" => format!("{:?}", self.labels.0),
            own => own.to_owned(),
        }
    }

    fn read(&self, common: &Texts) -> Alert {
        let name = self.labels.first(&["alertname"]);
        let severity = &["severity", "priority", "level"];
        let own = self.labels.first(severity);
        let what = self
            .annotations
            .first(&["summary", "title", "message", "description"]);
        Alert {
            what: wire::phrase(&what),
            description: wire::phrase(&self.annotations.first(&["description", "message"])),
            severity: if own.is_empty() {
                common.first(severity)
            } else {
                own
            },
            place: self.labels.first(PLACES),
            since: wire::moment(&self.starts_at.0),
            labels: self.labels.0.clone(),
            annotations: self.annotations.0.clone(),
            name,
        }
    }
}
