//! The webhook of uptime-kuma, with its preset body: a heartbeat, its monitor, and a message. A monitor is an incident, from down to up.

use std::collections::BTreeMap;

use jiff::tz::Offset;
use serde::Deserialize;

use super::super::alert::{Alert, AlertGroup, AlertNews};
use super::wire::{self, Text};
use crate::domain::intake::IntakeSettings;
use crate::domain::status_code::Refusal;

const DOWN: &str = "0";
const UP: &str = "1";

#[derive(Debug, Deserialize)]
struct WireReport {
    /// Both are missing where somebody tries the notification, and where a certificate expires.
    #[serde(default)]
    heartbeat: Option<WireHeartbeat>,
    #[serde(default)]
    monitor: Option<WireMonitor>,
    #[serde(default)]
    msg: Text,
}

#[derive(Debug, Deserialize)]
struct WireHeartbeat {
    #[serde(default)]
    status: Text,
    /// In UTC.
    #[serde(default)]
    time: Text,
    #[serde(default)]
    msg: Text,
}

#[derive(Debug, Deserialize)]
struct WireMonitor {
    #[serde(default)]
    id: Text,
    #[serde(default)]
    name: Text,
    #[serde(default)]
    hostname: Text,
    #[serde(default)]
    url: Text,
    #[serde(default, deserialize_with = "wire::list")]
    tags: Vec<WireTag>,
}

#[derive(Debug, Deserialize)]
struct WireTag {
    #[serde(default)]
    name: Text,
    #[serde(default)]
    value: Text,
}

pub fn read(body: &[u8], settings: &IntakeSettings) -> Result<AlertNews, Refusal> {
    let report: WireReport = wire::read(body)?;
    let (Some(heartbeat), Some(monitor)) = (report.heartbeat, report.monitor) else {
        wire::required(&report.msg.0, "msg")?;
        return Ok(told(&report.msg.0));
    };
    wire::required(&monitor.id.0, "monitor.id")?;
    match heartbeat.status.0.as_str() {
        UP => Ok(AlertNews::Resolved(monitor.id.0)),
        DOWN => Ok(monitor.down(&heartbeat, report.msg.0, settings)),
        // Pending, and maintenance.
        _ => Ok(AlertNews::Nothing),
    }
}

/// A message that is about no monitor.
fn told(message: &str) -> AlertNews {
    let alert = Alert {
        what: wire::phrase(message),
        ..Alert::default()
    };
    AlertNews::Firing(Box::new(AlertGroup {
        key: message.to_owned(),
        text: message.to_owned(),
        count: 1,
        alerts: vec![alert],
        ..AlertGroup::default()
    }))
}

impl WireMonitor {
    fn down(self, heartbeat: &WireHeartbeat, text: String, settings: &IntakeSettings) -> AlertNews {
        let tags = self.tags.into_iter();
        let labels: BTreeMap<_, _> = tags.map(|tag| (tag.name.0, tag.value.0)).collect();
        let to = settings.to_label.as_ref().and_then(|name| labels.get(name));
        let to = to.map_or_else(Vec::new, |to| super::names(to));
        let time = wire::local_time(&heartbeat.time.0);
        let alert = Alert {
            what: super::is_down(&self.name.0, &heartbeat.msg.0, settings),
            description: heartbeat.msg.0.clone(),
            since: time.and_then(|time| Offset::UTC.to_timestamp(time).ok()),
            place: match self.hostname.0.as_str() {
                "" => host_of(&self.url.0),
                name => name.to_owned(),
            },
            name: self.name.0,
            labels,
            ..Alert::default()
        };
        AlertNews::Firing(Box::new(AlertGroup {
            key: self.id.0,
            title: alert.name.clone(),
            text,
            count: 1,
            alerts: vec![alert],
            to,
            ..AlertGroup::default()
        }))
    }
}

/// A monitor that asks for no page has `https://`.
fn host_of(url: &str) -> String {
    let url = url::Url::parse(url).ok();
    let host = url.and_then(|url| url.host_str().map(str::to_owned));
    host.unwrap_or_default()
}
