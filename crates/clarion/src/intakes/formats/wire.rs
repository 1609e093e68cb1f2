//! Reading JSON that others write: any scalar is a text, long texts are cut, and what is missing is empty.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::domain::status_code::{Refusal, StatusCode};

/// Longer texts are cut: nobody listens to more.
const LONGEST_TEXT: usize = 2000;
/// Labels beyond these are left out.
const MOST_LABELS: usize = 64;
/// Characters of a problem that are told.
const LONGEST_PROBLEM: usize = 200;
/// A moment before this means that there is none.
const FIRST_YEAR: i16 = 2000;

pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    serde_json::from_slice(body).map_err(|error| {
        let problem: String = error.to_string().chars().take(LONGEST_PROBLEM).collect();
        Refusal::new(
            StatusCode::BodyFormat,
            format!("the JSON body cannot be read: {problem}"),
        )
    })
}

/// A text, or a number or flag that stands for one.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(text(Value::deserialize(deserializer)?)))
    }
}

/// Characters that a request may not have are blanks.
fn text(value: Value) -> String {
    let text = match value {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    };
    cut(&text)
}

pub fn cut(text: &str) -> String {
    let plain = |character: char| match character {
        '\n' => '\n',
        '\u{fffe}' | '\u{ffff}' => ' ',
        control if control.is_control() => ' ',
        other => other,
    };
    let text: String = text.trim().chars().take(LONGEST_TEXT).map(plain).collect();
    text.trim().to_owned()
}

/// Labels or annotations.
#[derive(Debug, Clone, Default)]
pub struct Texts(pub BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Option::<Map<String, Value>>::deserialize(deserializer)?;
        let pairs = map.unwrap_or_default().into_iter().take(MOST_LABELS);
        Ok(Self(
            pairs
                .map(|(name, value)| (cut(&name), text(value)))
                .collect(),
        ))
    }
}

impl Texts {
    /// The first of these that says something.
    pub fn first(&self, names: &[&str]) -> String {
        let said = |name: &&str| self.0.get(*name).filter(|text| !text.is_empty());
        names.iter().find_map(said).cloned().unwrap_or_default()
    }
}

/// A list, where there may be none.
pub fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

/// A moment as RFC 3339 has it.
pub fn moment(text: &str) -> Option<Timestamp> {
    let moment: Timestamp = text.parse().ok()?;
    let year = jiff::tz::Offset::UTC.to_datetime(moment).year();
    (year >= FIRST_YEAR).then_some(moment)
}

/// A local time such as `2026-11-18 03:05:07`.
pub fn local_time(text: &str) -> Option<DateTime> {
    let time: DateTime = text
        .replace('.', "-")
        .parse()
        .ok()
        .or_else(|| text.parse().ok())?;
    (time.year() >= FIRST_YEAR).then_some(time)
}

/// Words without the mark at their end: sentences are made of them.
pub fn phrase(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim_end_matches(['.', '。', '!', '！', ';', '；', ',', '，', ' '])
        .to_owned()
}

pub fn required(text: &str, field: &str) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(Refusal::field(format!("{field} is required")));
    }
    Ok(())
}
