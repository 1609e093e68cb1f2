//! What the media type for Zabbix sends (`packaging/zabbix/media_clarion.yaml`): the macros of an event, each as Zabbix writes it.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::super::alert::{Alert, AlertGroup, AlertNews};
use super::wire::{self, Text, Texts};
use crate::domain::status_code::Refusal;

/// What Zabbix writes for an item that has no value.
const UNKNOWN_VALUE: &str = "*UNKNOWN*";

#[derive(Debug, Deserialize)]
struct WireEvent {
    /// That of the problem, also where it is over.
    #[serde(default)]
    event_id: Text,
    /// 1: a problem; 0: it is over.
    #[serde(default)]
    event_value: Text,
    /// 1: somebody has written about it.
    #[serde(default)]
    event_update_status: Text,
    #[serde(default)]
    event_name: Text,
    #[serde(default)]
    event_severity: Text,
    #[serde(default)]
    event_opdata: Text,
    #[serde(default)]
    event_date: Text,
    #[serde(default)]
    event_time: Text,
    #[serde(default)]
    host_name: Text,
    #[serde(default)]
    host_ip: Text,
    #[serde(default)]
    trigger_description: Text,
    /// `Send to` of the user's media.
    #[serde(default)]
    to: Text,
}

pub fn read(body: &[u8], zone: &TimeZone) -> Result<AlertNews, Refusal> {
    let mut event: WireEvent = wire::read(body)?;
    event.forget_macros();
    wire::required(&event.event_id.0, "event_id")?;
    match (
        event.event_value.0.as_str(),
        event.event_update_status.0.as_str(),
    ) {
        ("0", _) => Ok(AlertNews::Resolved(event.key())),
        ("1", "1") => Ok(AlertNews::Nothing),
        ("1", _) => event.firing(zone),
        _ => Err(Refusal::field("event_value must be 1 or 0")),
    }
}

impl WireEvent {
    /// A macro that has no value here is sent as its own name, or as `*UNKNOWN*`: among several values too, those of a trigger's items.
    fn forget_macros(&mut self) {
        let texts = [
            &mut self.event_id,
            &mut self.event_value,
            &mut self.event_update_status,
            &mut self.event_name,
            &mut self.event_severity,
            &mut self.event_opdata,
            &mut self.event_date,
            &mut self.event_time,
            &mut self.host_name,
            &mut self.host_ip,
            &mut self.trigger_description,
            &mut self.to,
        ];
        for Text(text) in texts {
            if text.starts_with('{') && text.ends_with('}') {
                text.clear();
            } else if text.contains(UNKNOWN_VALUE) {
                let values = text.split(", ").filter(|value| *value != UNKNOWN_VALUE);
                *text = values.collect::<Vec<_>>().join(", ");
            }
        }
    }

    /// Zabbix sends a request for each user: each of those whom it names has an incident of their own.
    fn key(&self) -> String {
        match &super::names(&self.to.0)[..] {
            [] => self.event_id.0.clone(),
            to => format!("{} → {}", self.event_id.0, to.join(",")),
        }
    }

    fn firing(self, zone: &TimeZone) -> Result<AlertNews, Refusal> {
        wire::required(&self.event_name.0, "event_name")?;
        let key = self.key();
        let labels = [
            ("event_opdata", &self.event_opdata.0),
            ("host_ip", &self.host_ip.0),
        ];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.clone()));
        let what = match self.event_opdata.0.as_str() {
            "" => wire::phrase(&self.event_name.0),
            data => format!(
                "{}, {}",
                wire::phrase(&self.event_name.0),
                wire::phrase(data)
            ),
        };
        let alert = Alert {
            name: wire::phrase(&self.event_name.0),
            what,
            description: wire::phrase(&self.trigger_description.0),
            since: self.since(zone),
            severity: self.event_severity.0,
            place: self.host_name.0,
            labels: labels.into(),
            annotations: Texts::default().0,
        };
        Ok(AlertNews::Firing(Box::new(AlertGroup {
            key,
            title: self.event_name.0,
            count: 1,
            alerts: vec![alert],
            to: super::names(&self.to.0),
            ..AlertGroup::default()
        })))
    }

    /// Zabbix writes `2026.11.18` and `03:05:07`, in its own zone, which is taken for the platform's.
    fn since(&self, zone: &TimeZone) -> Option<Timestamp> {
        let time = format!("{} {}", self.event_date.0, self.event_time.0);
        let time = wire::local_time(&time)?.to_zoned(zone.clone()).ok()?;
        Some(time.timestamp())
    }
}
