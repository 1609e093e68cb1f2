//! `POST /api/v2/calls/tts` of SMSEagle, as uptime-kuma's provider of that name sends it: a text, and whom to call. Each of them is an incident of its own.
//!
//! uptime-kuma writes `[name] [🔴 Down] message` and `[name] [✅ Up] message`, so that the monitor can be told by its name.

use std::ops::ControlFlow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::super::alert::{Alert, AlertGroup, AlertNews};
use super::wire::{self, Text};
use crate::domain::intake::IntakeSettings;
use crate::domain::status_code::Refusal;

/// So many people are called by one request.
const MAX_CALLEES: usize = 20;
const DOWN: &str = "] [🔴 Down]";
const UP: &str = "] [✅ Up]";

#[derive(Debug, Deserialize)]
struct WireCall<'a> {
    #[serde(default)]
    text: Text,
    /// A list of numbers, or one.
    #[serde(default, borrow)]
    to: Option<&'a RawValue>,
}

pub fn read(body: &[u8], settings: &IntakeSettings) -> Result<Vec<AlertNews>, Refusal> {
    let call: WireCall = wire::read(body)?;
    let text = call.text.0;
    wire::required(&text, "text")?;
    let callees = callees(call.to)?;
    let named = |mark: &str| {
        let (name, message) = text.strip_prefix('[')?.split_once(mark)?;
        Some((name.trim().to_owned(), message.trim().to_owned()))
    };
    // Whom the people of the intake stand for, where nobody is named.
    let keys = |what: &str| -> Vec<(String, Vec<String>)> {
        match &callees[..] {
            [] => vec![(what.to_owned(), Vec::new())],
            some => some
                .iter()
                .map(|to| (format!("{what} → {to}"), vec![to.clone()]))
                .collect(),
        }
    };
    if let Some((name, _)) = named(UP).filter(|_| settings.skips_recoveries) {
        let over = keys(&name).into_iter();
        return Ok(over.map(|(key, _)| AlertNews::Resolved(key)).collect());
    }
    let (name, what) = match named(DOWN) {
        Some((name, message)) => {
            let what = super::is_down(&name, &message, settings);
            (name, what)
        }
        None => (text.clone(), wire::phrase(&text)),
    };
    let group = |(key, to): (String, Vec<String>)| {
        let alert = Alert {
            what: what.clone(),
            ..Alert::default()
        };
        AlertNews::Firing(Box::new(AlertGroup {
            key,
            text: what.clone(),
            count: 1,
            alerts: vec![alert],
            to,
            ..AlertGroup::default()
        }))
    };
    Ok(keys(&name).into_iter().map(group).collect())
}

fn callees(to: Option<&RawValue>) -> Result<Vec<String>, Refusal> {
    let wrong = || Refusal::field("to must be a list of numbers");
    let Some(to) = to.map(RawValue::get) else {
        return Ok(Vec::new());
    };
    // One more than may be called shows that there are too many.
    let mut callees: Vec<String> = Vec::new();
    let mut add = |text: Text| {
        for name in super::names(&text.0) {
            if callees.len() <= MAX_CALLEES && callees.last() != Some(&name) {
                callees.push(name);
            }
        }
    };
    let added = match to.as_bytes().first() {
        Some(b'[') => {
            let take = |text| {
                add(text);
                ControlFlow::Continue(())
            };
            wire::each(
                &mut serde_json::Deserializer::from_str(to),
                take,
                |_: IgnoredAny| {},
            )
        }
        Some(b'{' | b't' | b'f') => return Err(wrong()),
        _ => serde_json::from_str(to).map(&mut add),
    };
    added.map_err(|_| wrong())?;
    if callees.len() > MAX_CALLEES {
        return Err(Refusal::field(format!(
            "to must have at most {MAX_CALLEES} numbers"
        )));
    }
    Ok(callees)
}
