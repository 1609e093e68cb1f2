//! What the two body targets have in common.

use clarion::api::wire::{BodyFormat, Fields, read_as};
use clarion::api::{LANDING_CALL, QUERY_CALL_STATE};

/// Whatever could be read holds no control characters, and comes out the same when a tidy client writes it again in either format.
pub fn check_body(format: BodyFormat, body: &[u8]) {
    let forbidden = |c: char| c.is_control() && !matches!(c, '\t' | '\r' | '\n');
    // Attributes, an element that is not closed, an object in a text.
    if let Ok(fields) = read_as(format, &QUERY_CALL_STATE, body) {
        for name in ["appId", "callid", "action"] {
            let text = fields.raw(name).ok().flatten();
            assert!(!text.is_some_and(|text| text.contains(forbidden)));
        }
    }
    let Ok(fields) = read_as(format, &LANDING_CALL, body) else {
        return;
    };
    let texts = texts(&fields);
    assert!(!texts.iter().any(|(_, text)| text.contains(forbidden)));
    let rewritten = [
        (BodyFormat::Xml, as_xml(&texts)),
        (BodyFormat::Json, as_json(&texts)),
    ];
    for (format, body) in rewritten {
        let again = read_as(format, &LANDING_CALL, body.as_bytes()).expect(&body);
        assert_eq!(self::texts(&again), texts, "{body}");
    }
}

fn texts(fields: &Fields) -> Vec<(&'static str, String)> {
    let names = LANDING_CALL.fields.iter().map(|field| field.name);
    // A field that is a structure is refused when it is asked for.
    names
        .filter_map(|name| Some((name, fields.raw(name).ok()??.to_owned())))
        .collect()
}

fn as_xml(texts: &[(&str, String)]) -> String {
    let elements = texts
        .iter()
        .map(|(name, text)| format!("<{name}>{}</{name}>", quick_xml::escape::escape(text)));
    format!(
        "<LandingCall>{}</LandingCall>",
        elements.collect::<String>()
    )
}

fn as_json(texts: &[(&str, String)]) -> String {
    let members = texts
        .iter()
        .cloned()
        .map(|(name, text)| (name.to_owned(), text.into()));
    serde_json::Value::Object(members.collect()).to_string()
}
