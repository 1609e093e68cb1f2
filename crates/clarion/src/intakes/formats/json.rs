//! The form for everything else: `{"text": …, "key": …, "to": …}`, and `{"resolve": key}`.

use serde_json::{Map, Value, json};

use super::super::alert::{Alert, AlertGroup, AlertNews};
use super::wire::{self, Object, Scalar};
use crate::domain::status_code::Refusal;

/// Of the body itself: name, and what it means.
const OWN: [(&str, &str); 8] = [
    (
        "text",
        "What is wrong. It is spoken, unless the intake has a template of its own.",
    ),
    (
        "key",
        "What the incident is called. While it is open, the same key makes a new notice only where nobody has confirmed. Without a key, the text is the key.",
    ),
    (
        "to",
        "Whom to call instead of the intake's own people: numbers and `@lists`, separated by `;`. A number must be one that the intake allows.",
    ),
    ("title", "For a template."),
    (
        "severity",
        "How bad it is: critical, warning, or your own word.",
    ),
    ("where", "Where it is: a host, a room."),
    (
        "since",
        "Since when, as RFC 3339 has it, such as 2026-11-18T03:05:00Z.",
    ),
    (
        "resolve",
        "The key of an incident that is over. Nothing else is read then.",
    ),
];

/// Fields of a LandingCall that a body may bring. Whom to call and whom to tell is for the operator to say.
pub const FIELDS: [&str; 14] = [
    "confirmDtmf",
    "waitDtmfTime",
    "replayDtmf",
    "stopDtmf",
    "redialTimes",
    "redialInterval",
    "redialOn",
    "backupAfter",
    "startTime",
    "callWindow",
    "validTime",
    "priority",
    "ringTime",
    "playTimes",
];

pub fn read(body: &[u8]) -> Result<AlertNews, Refusal> {
    // One more than there are names: whatever is beyond them has a name that nobody knows, or one twice.
    let body: Object<{ OWN.len() + FIELDS.len() + 1 }> = wire::read(body)?;
    let body = body.first;
    let text = |name: &str| {
        let found = body.iter().rev().find(|(own, _)| own == name);
        match found {
            None => Ok(String::new()),
            Some((_, Scalar(None))) => Err(Refusal::field(format!("{name} must be a text"))),
            Some((_, Scalar(Some(text)))) => Ok(text.clone()),
        }
    };
    let over = text("resolve")?;
    if !over.is_empty() {
        return Ok(AlertNews::Resolved(over));
    }
    let known =
        |name: &String| OWN.iter().any(|(own, _)| own == name) || FIELDS.contains(&name.as_str());
    if let Some(name) = body.iter().map(|(name, _)| name).find(|name| !known(name)) {
        let name: String = name.chars().take(40).collect();
        return Err(Refusal::field(format!(
            "{name} is not a field of an alert (docs/alerting.md has them)"
        )));
    }
    let said = text("text")?;
    wire::required(&said, "text")?;
    let mut fields = Vec::new();
    for name in FIELDS {
        let value = text(name)?;
        if !value.is_empty() {
            fields.push((name, value));
        }
    }
    let key = text("key")?;
    let alert = Alert {
        what: wire::phrase(&said),
        severity: text("severity")?,
        place: text("where")?,
        since: wire::moment(&text("since")?),
        ..Alert::default()
    };
    Ok(AlertNews::Firing(Box::new(AlertGroup {
        key: if key.is_empty() { said.clone() } else { key },
        title: text("title")?,
        text: said,
        count: 1,
        alerts: vec![alert],
        to: super::names(&text("to")?),
        fields,
        ..AlertGroup::default()
    })))
}

/// The body as a JSON schema. `rule` tells what a field of a LandingCall means.
pub fn schema(rule: impl Fn(&str) -> &'static str) -> Value {
    let described =
        |about: &str| json!({ "type": ["string", "number", "boolean"], "description": about });
    let mut properties = Map::new();
    for (name, about) in OWN {
        properties.insert(name.to_owned(), described(about));
    }
    for name in FIELDS {
        properties.insert(name.to_owned(), described(rule(name)));
    }
    json!({
        "type": "object",
        "anyOf": [{ "required": ["text"] }, { "required": ["resolve"] }],
        "additionalProperties": false,
        "properties": properties,
    })
}
