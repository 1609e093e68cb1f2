//! An alert as every tool can tell it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::domain::intake::incident::IncidentKey;

/// So many alerts of a group are kept in detail; the others are counted.
pub const MAX_ALERTS: usize = 20;

/// One thing that is wrong. Empty texts say nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Alert {
    pub name: String,
    /// In a few words.
    pub what: String,
    pub description: String,
    pub severity: String,
    #[serde(rename = "where")]
    pub place: String,
    #[serde(serialize_with = "as_text")]
    pub since: Option<Timestamp>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

#[expect(clippy::ref_option, reason = "serde asks for a reference to the field")]
fn as_text<S: Serializer>(since: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = since.map(|since| since.to_string()).unwrap_or_default();
    serializer.serialize_str(&text)
}

/// Alerts that a tool brings together, as one incident.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertGroup {
    /// What the tool calls the incident.
    pub key: String,
    /// What the tool itself would say, where it has such a text.
    pub title: String,
    pub text: String,
    /// Those that are firing; not more than are kept.
    pub alerts: Vec<Alert>,
    /// All of them, with those that the tool has left out.
    pub count: usize,
    /// What tells one alert from another.
    pub fingerprints: Vec<String>,
    /// What the tool groups by.
    pub group: BTreeMap<String, String>,
    /// Whom to call, where the alert says so: numbers and lists.
    pub to: Vec<String>,
    /// Fields of a LandingCall that it brings.
    pub fields: Vec<(&'static str, String)>,
}

impl AlertGroup {
    pub fn incident(&self) -> IncidentKey {
        IncidentKey::new(&self.key)
    }
}

/// What a request of a tool comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertNews {
    Firing(Box<AlertGroup>),
    /// The incident of this key is over.
    Resolved(String),
    /// What the tool tells of is over; it has left out others.
    PartlyResolved(String),
    /// Nobody needs to know.
    Nothing,
}
