//! Tests of both formats: every input is read or refused, and the values that are read are those that the client meant.

use axum::http::HeaderValue;
use proptest::prelude::*;
use quick_xml::escape::escape;

use super::*;
use crate::api::{LANDING_CALL, landing_calls};

const FIELDS: [&str; 4] = ["to", "mediaTxt", "userData", "respUrl"];

fn read_texts(format: BodyFormat, body: &str) -> Result<Vec<String>, Refusal> {
    let fields = read_as(format, &LANDING_CALL, body.as_bytes())?;
    let text = |name| Ok(fields.raw(name)?.unwrap_or_default().to_owned());
    FIELDS.into_iter().map(text).collect()
}

/// Returns a body with these values, each written by `write`.
fn body(format: BodyFormat, values: &[String], write: impl Fn(&str) -> String) -> String {
    let each = FIELDS.iter().zip(values);
    match format {
        BodyFormat::Xml => {
            let elements = each.map(|(name, text)| format!("<{name}>{}</{name}>\r\n", write(text)));
            format!(
                "<LandingCall>{}</LandingCall>",
                elements.collect::<String>()
            )
        }
        BodyFormat::Json => {
            let members = each.map(|(name, text)| format!("'{name}' : {}", write(text)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(",\n"))
        }
    }
}

fn json_escapes(text: &str) -> String {
    let escapes = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
    format!("\"{}\"", escapes.collect::<Vec<_>>().concat())
}

fn single_quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\'', "\\'");
    format!("'{escaped}'")
}

/// Writes a text in double quotes, with raw line breaks and tabs.
fn double_quoted_raw(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

fn numeric_references(text: &str) -> String {
    let references = text.chars().map(|character| match u32::from(character) {
        number if number % 2 == 0 => format!("&#{number};"),
        number => format!("&#x{number:X};"),
    });
    references.collect()
}

/// Escapes markup, but an ampersand only if it would begin a numeric reference. No client library does this.
fn raw_ampersands(text: &str) -> String {
    let text = text.replace('<', "&lt;").replace('>', "&gt;");
    text.replace("&#", "&amp;#")
}

fn any_value() -> impl Strategy<Value = String> {
    let awkward = "[a-z0-9\u{4e00}-\u{4e20}\u{1f600}-\u{1f620}'\"<>&;#/\\\\\\[\\]{}:,!= \t\r\n\u{3000}-]{0,40}";
    let any = any::<String>().prop_map(|text| text.replace(is_forbidden, ""));
    prop_oneof![3 => awkward, 1 => any]
}

fn any_values() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(any_value(), FIELDS.len())
}

/// Generates text that looks like a body, so that the readers get further than the first character.
fn anything_like_a_body() -> impl Strategy<Value = String> {
    let pieces = [
        "<LandingCall>",
        "</LandingCall>",
        "<to>",
        "</to>",
        "<to/>",
        "<mediaName type=\"1\"",
        " type='&#49;'",
        ">",
        "/>",
        "<",
        "&",
        "&amp;",
        "&#",
        "x41;",
        "&#0;",
        ";",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<?xml ",
        "?>",
        "<!DOCTYPE x [",
        "\"",
        "'",
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"to\"",
        "'to'",
        "\\",
        "\\u0",
        "\\ud800",
        "1e999",
        "-",
        "null",
        "true",
        "\u{feff}",
        "\0",
        "\n",
        "你",
    ];
    let piece = prop_oneof![9 => prop::sample::select(pieces.to_vec()).prop_map(str::to_owned), 1 => any::<String>()];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
        for (format, code) in [(BodyFormat::Xml, StatusCode::XmlUnreadable), (BodyFormat::Json, StatusCode::BodyFormat)] {
            if let Err(refusal) = read_as(format, &LANDING_CALL, &bytes) {
                prop_assert_eq!(refusal.code, code);
            }
        }
    }

    #[test]
    fn anything_like_a_body_is_read_or_refused_briefly_and_holds_no_control_characters(text in anything_like_a_body()) {
        for format in [BodyFormat::Xml, BodyFormat::Json] {
            match read_texts(format, &text) {
                Ok(values) => prop_assert!(!values.concat().contains(is_forbidden)),
                Err(refusal) => prop_assert!(refusal.message.chars().count() < LONGEST_PROBLEM + 50),
            }
        }
    }

    #[test]
    fn what_is_written_in_xml_is_what_is_read(values in any_values()) {
        let writings: [fn(&str) -> String; 4] = [
            |text| escape(text).into_owned(),
            numeric_references,
            raw_ampersands,
            |text| format!("<![CDATA[{}]]>", text.replace("]]>", "]]]]><![CDATA[>")),
        ];
        for write in writings {
            // A raw ampersand stands for itself, unless the text after it makes it a predefined reference.
            let predefined = ["&lt;", "&gt;", "&amp;", "&quot;", "&apos;"];
            let values: Vec<_> = values.iter().map(|text| predefined.iter().fold(text.clone(), |text, name| text.replace(name, ""))).collect();
            let body = body(BodyFormat::Xml, &values, write);
            prop_assert_eq!(&read_texts(BodyFormat::Xml, &body).unwrap(), &values, "{}", body);
        }
    }

    #[test]
    fn what_is_written_in_json_is_what_is_read(values in any_values()) {
        let writings: [fn(&str) -> String; 4] = [
            |text| serde_json::Value::from(text).to_string(),
            double_quoted_raw,
            single_quoted,
            json_escapes,
        ];
        for write in writings {
            let body = body(BodyFormat::Json, &values, write);
            prop_assert_eq!(&read_texts(BodyFormat::Json, &body).unwrap(), &values, "{}", body);
        }
    }

    #[test]
    fn an_attribute_is_read_as_an_element_would_be(value in any_value()) {
        let written = raw_ampersands(&value).replace('"', "&quot;");
        let attribute = format!("<LandingCall><mediaName type=\"{written}\">a.wav</mediaName></LandingCall>");
        let element = format!("<LandingCall><mediaNameType>{written}</mediaNameType></LandingCall>");
        let read = |body: &str| {
            let fields = read_as(BodyFormat::Xml, &LANDING_CALL, body.as_bytes()).unwrap();
            fields.text("mediaNameType").unwrap().map(str::to_owned)
        };
        prop_assert_eq!(read(&attribute), read(&element));
    }

    #[test]
    fn any_headers_lead_to_a_format(accept in any::<Option<Vec<u8>>>(), content_type in any::<Option<Vec<u8>>>(), body in any::<Vec<u8>>()) {
        let mut headers = HeaderMap::new();
        for (name, value) in [(ACCEPT, accept), (CONTENT_TYPE, content_type)] {
            if let Some(value) = value.and_then(|value| HeaderValue::from_bytes(&value).ok()) {
                headers.insert(name, value);
            }
        }
        BodyFormat::of_answer(&headers, &body);
        let _ = read(&LANDING_CALL, &headers, &body);
    }
}

#[test]
fn a_reference_is_decoded_only_where_it_is_one() {
    for (written, meant) in [
        ("&#65;&#x41;&#X41;", "AAA"),
        ("&#+65;&#x+41;&#-65;", "&#+65;&#x+41;&#-65;"),
        ("&#;&#x;&;&", "&#;&#x;&;&"),
        (
            "&#xD800;&#1114112;&#99999999999;",
            "&#xD800;&#1114112;&#99999999999;",
        ),
        ("&lt&gt;&amp;lt;&AMP;", "&lt>&lt;&AMP;"),
        ("a=1&b=2;c&d", "a=1&b=2;c&d"),
    ] {
        let texts = read_texts(
            BodyFormat::Xml,
            &format!("<LandingCall><to>{written}</to></LandingCall>"),
        );
        assert_eq!(texts.unwrap()[0], meant);
    }
}

#[test]
fn the_attribute_wins_over_the_element_unless_it_is_blank() {
    let kind = |body: &str| {
        let body = format!("<LandingCall>{body}</LandingCall>");
        let fields = read_as(BodyFormat::Xml, &landing_calls::FORM, body.as_bytes()).unwrap();
        fields.text("mediaNameType").unwrap().map(str::to_owned)
    };
    let element = "<mediaNameType>0</mediaNameType>";
    assert_eq!(
        kind(&format!("{element}<mediaName type='1'/>")),
        Some("1".into())
    );
    assert_eq!(
        kind(&format!("<mediaName type='1'/>{element}")),
        Some("1".into())
    );
    assert_eq!(
        kind(&format!("<mediaName type=' '/>{element}")),
        Some("0".into())
    );
    assert_eq!(
        kind("<mediaName x='2' type='&#49;' y='3'/>"),
        Some("1".into())
    );
}

#[test]
fn a_problem_is_described_without_quoting_the_whole_body() {
    let name = "x".repeat(60_000);
    for (format, body) in [
        (
            BodyFormat::Xml,
            format!("<LandingCall><{name}></to></LandingCall>"),
        ),
        (BodyFormat::Json, format!("\"{name}\"")),
    ] {
        let refusal = read_as(format, &LANDING_CALL, body.as_bytes()).unwrap_err();
        assert!(refusal.message.len() < 300, "{}", refusal.message.len());
    }
}

#[test]
fn the_answers_format_is_what_accept_names_or_else_the_bodys() {
    let format = |accept: Option<&'static str>, content_type: Option<&'static str>, body: &str| {
        let mut headers = HeaderMap::new();
        for (name, value) in [(ACCEPT, accept), (CONTENT_TYPE, content_type)] {
            headers.extend(value.map(|value| (name, HeaderValue::from_static(value))));
        }
        BodyFormat::of_answer(&headers, body.as_bytes())
    };
    let json_body = Some("Application/JSON;");
    for (accept, content_type, body, expected) in [
        (None, json_body, "{}", BodyFormat::Xml),
        (Some(""), json_body, "{}", BodyFormat::Xml),
        (Some("application/json;"), None, "", BodyFormat::Json),
        (Some("APPLICATION/XML"), json_body, "{}", BodyFormat::Xml),
        (
            Some("text/html, application/json, text/xml"),
            None,
            "",
            BodyFormat::Json,
        ),
        (Some("*/*"), json_body, "<", BodyFormat::Json),
        (Some("*/*"), Some("text/plain"), " {", BodyFormat::Json),
        (Some("*/*"), None, "\u{feff}\r\n{", BodyFormat::Json),
        (Some("*/*"), None, "<", BodyFormat::Xml),
        (Some("text/html"), None, "", BodyFormat::Xml),
    ] {
        let found = format(accept, content_type, body);
        assert_eq!(found, expected, "{accept:?} {content_type:?} {body}");
    }
}
