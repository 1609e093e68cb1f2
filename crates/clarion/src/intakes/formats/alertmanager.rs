//! The webhook of Alertmanager, version 4: a group of alerts (`template.Data` of its sources, with groupKey and truncatedAlerts).

use serde::{Deserialize, Deserializer};

use super::super::alert::{Alert, AlertGroup, AlertNews, MAX_ALERTS};
use super::wire::{self, Text, Texts};
use crate::domain::intake::IntakeSettings;
use crate::domain::intake::incident::{self, MAX_FINGERPRINTS};
use crate::domain::status_code::Refusal;

const VERSION: &str = "4";
const RESOLVED: &str = "resolved";
/// So many people are called whom the alerts of a group name.
const MAX_NAMED: usize = 20;

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

/// A group of alerts, of Alertmanager or of Grafana.
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
    #[serde(default)]
    alerts: Option<FiringAlerts>,
    /// These two are Grafana's own.
    #[serde(default)]
    pub title: Text,
    #[serde(default)]
    pub message: Text,
}

/// The first of those that are firing, and how many there are.
#[derive(Debug, Default)]
struct FiringAlerts {
    first: Vec<WireAlert>,
    count: usize,
}

impl<'de> Deserialize<'de> for FiringAlerts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut firing = Self::default();
        let Self { first, count } = &mut firing;
        let mut more = 0;
        let take = |alert: WireAlert| {
            if alert.status.0 != RESOLVED {
                *count += 1;
                first.push(alert);
            }
            wire::go_on_while(first.len() < MAX_FINGERPRINTS)
        };
        // Of a million others only their number is told.
        let in_short = |alert: AlertStatus| more += usize::from(alert.status.0 != RESOLVED);
        wire::each(deserializer, take, in_short)?;
        firing.count += more;
        Ok(firing)
    }
}

/// What is read of an alert that is counted only.
#[derive(Debug, Deserialize)]
struct AlertStatus {
    #[serde(default)]
    status: Text,
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
            // The status is that of the alerts that Alertmanager has not left out (`max_alerts`).
            "resolved" if self.left_out() > 0 => {
                return Ok(AlertNews::PartlyResolved(self.group_key.0));
            }
            "resolved" => return Ok(AlertNews::Resolved(self.group_key.0)),
            "firing" => {}
            _ => return Err(Refusal::field("status must be firing or resolved")),
        }
        let left_out = self.left_out();
        let FiringAlerts {
            first: firing,
            count,
        } = self.alerts.unwrap_or_default();
        if firing.is_empty() {
            return Err(Refusal::field("alerts must have one that is firing"));
        }
        let label = settings.to_label.as_deref();
        let mut to: Vec<String> = Vec::new();
        for name in label.iter().flat_map(|label| named(&firing, label)) {
            if to.len() < MAX_NAMED && !to.contains(&name) {
                to.push(name);
            }
        }
        let fingerprints = firing.iter();
        Ok(AlertNews::Firing(Box::new(AlertGroup {
            key: self.group_key.0,
            title: self.common_annotations.first(&["summary", "title"]),
            text: String::new(),
            count: count.saturating_add(left_out),
            fingerprints: fingerprints.map(WireAlert::fingerprint).collect(),
            alerts: firing
                .iter()
                .take(MAX_ALERTS)
                .map(|alert| alert.read(&self.common_labels))
                .collect(),
            group: self.group_labels.0,
            to,
            fields: Vec::new(),
        })))
    }

    /// How many alerts of the group the tool does not tell of.
    fn left_out(&self) -> usize {
        self.truncated.0.parse().unwrap_or(0)
    }
}

/// Whom the alerts name by this label.
fn named(alerts: &[WireAlert], label: &str) -> Vec<String> {
    let values = alerts.iter().map(|alert| alert.labels.first(&[label]));
    values.flat_map(|value| super::names(&value)).collect()
}

impl WireAlert {
    /// The tool's own, or its labels where it sends none.
    fn fingerprint(&self) -> String {
        match self.fingerprint.0.as_str() {
            "" => incident::fingerprint(&format!("{:?}", self.labels.0)),
            own => incident::fingerprint(own),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_million_alerts_a_thousand_are_kept_and_the_firing_ones_counted() {
        let firing = br#",{"labels":{"alertname":"Down"}},{"status":"resolved"}"#;
        let mut body =
            br#"{"groupKey":"g","status":"firing","alerts":[{"labels":{"alertname":"First"}}"#
                .to_vec();
        body.extend(firing.repeat(500_000));
        body.extend(b"]}");
        let group: WireGroup = wire::read(&body).unwrap();
        let alerts = group.alerts.as_ref().unwrap();
        assert_eq!(
            (alerts.first.len(), alerts.count),
            (MAX_FINGERPRINTS, 500_001)
        );
        let news = group.news(&IntakeSettings::default()).unwrap();
        let AlertNews::Firing(group) = news else {
            panic!("{news:?}");
        };
        assert_eq!((group.alerts.len(), group.count), (MAX_ALERTS, 500_001));
        assert_eq!(group.alerts[0].name, "First");
    }
}
