//! JSON bodies, as real clients write them.
//!
//! `repair` first turns a body into plain JSON (single quotes, raw line breaks and tabs inside strings), then `serde_json` reads it. A
//! number keeps its text as it was written, so `13800000000`, `2` and `1e999` reach the rule of their field.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Fields, Form, Value, check_characters};

pub fn read(form: &Form, text: &str) -> Result<Fields, String> {
    check_characters(text)?;
    let text = repair(text);
    // A stray `;` or blanks are as common after the object as after an XML root.
    let text = text
        .trim_end_matches(|character: char| character.is_ascii_whitespace() || character == ';');
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let fields = deserializer
        .deserialize_map(FieldsVisitor { form })
        .map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok(fields)
}

struct FieldsVisitor<'a> {
    form: &'a Form,
}

impl<'de> Visitor<'de> for FieldsVisitor<'_> {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::default();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if self.form.has_only_attributes(&name) {
                let raw: &RawValue = map.next_value()?;
                members(self.form, &name, raw.get(), &mut fields)
                    .map_err(serde::de::Error::custom)?;
                continue;
            }
            let Some(known) = self.form.known(&name) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let raw: &RawValue = map.next_value()?;
            let value = scalar(raw.get()).map_err(serde::de::Error::custom)?;
            fields.put(known, value).map_err(serde::de::Error::custom)?;
        }
        Ok(fields)
    }
}

/// Reads an object whose members stand for the attributes of an element. One client library sends it as a text.
fn members(form: &Form, element: &str, raw: &str, fields: &mut Fields) -> Result<(), String> {
    let text = match scalar(raw)? {
        Value::Text(text) if text.trim().is_empty() => return Ok(()),
        Value::Text(text) => repair(&text).into_owned(),
        Value::Structure => raw.to_owned(),
    };
    let visitor = MembersVisitor {
        form,
        element,
        fields,
    };
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let read = deserializer.deserialize_map(visitor);
    read.and_then(|()| deserializer.end())
        .map_err(|error| format!("{element}: {error}"))
}

struct MembersVisitor<'a> {
    form: &'a Form,
    element: &'a str,
    fields: &'a mut Fields,
}

impl<'de> Visitor<'de> for MembersVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let raw: &RawValue = map.next_value()?;
            if let Some(field) = self.form.set_by(self.element, &name) {
                let value = scalar(raw.get()).map_err(serde::de::Error::custom)?;
                let put = self.fields.put(field, value);
                put.map_err(serde::de::Error::custom)?;
            }
        }
        Ok(())
    }
}

fn scalar(raw: &str) -> Result<Value, String> {
    Ok(match raw.as_bytes().first() {
        Some(b'"') => {
            let text: String = serde_json::from_str(raw).map_err(|error| error.to_string())?;
            check_characters(&text)?;
            Value::Text(text)
        }
        Some(b'n') => Value::Text(String::new()),
        Some(b'{' | b'[' | b't' | b'f') => Value::Structure,
        _ => Value::Text(raw.to_owned()),
    })
}

/// Turns the output of the vendor's PHP SDK and similar clients into JSON: strings in single quotes, and raw TAB, CR and LF inside strings.
/// Text that is JSON already is returned unchanged.
fn repair(text: &str) -> Cow<'_, str> {
    // Nearly every text is JSON already, without any of the bytes that this is about.
    if !text
        .bytes()
        .any(|byte| matches!(byte, b'\'' | b'\n' | b'\r' | b'\t'))
    {
        return Cow::Borrowed(text);
    }
    let mut repaired = String::with_capacity(text.len() + 16);
    let mut changed = false;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, '\'' | '"') => {
                quote = Some(character);
                changed |= character == '\'';
                repaired.push('"');
            }
            (Some(open), close) if open == close => {
                quote = None;
                repaired.push('"');
            }
            (Some('\''), '"') => repaired.push_str("\\\""),
            (Some(_), '\\') => match characters.next() {
                Some('\'') => {
                    changed = true;
                    repaired.push('\'');
                }
                Some(escaped) => repaired.extend(['\\', escaped]),
                None => repaired.push('\\'),
            },
            (Some(_), '\n' | '\r' | '\t') => {
                changed = true;
                repaired.push_str(match character {
                    '\n' => "\\n",
                    '\r' => "\\r",
                    _ => "\\t",
                });
            }
            (_, character) => repaired.push(character),
        }
    }
    if changed {
        Cow::Owned(repaired)
    } else {
        Cow::Borrowed(text)
    }
}
