//! Writes answers: one line, no attributes, every value a string, `statusMsg` only on failure.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use quick_xml::escape::escape;

use super::BodyFormat;
use crate::domain::status_code::{Refusal, StatusCode};

/// The content of a successful answer beside its statusCode. No other shape is ever sent, because an unknown scalar at the top level of a
/// JSON answer crashes the vendor's Java client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// One group of values under a name.
    Group(&'static str, Vec<(&'static str, String)>),
    /// One value that is sent only in XML.
    XmlValue(&'static str, String),
    /// The URL of a bill, the name of that URL in JSON, and the token for it.
    Download {
        url: String,
        json_name: &'static str,
        token: String,
    },
}

/// Longer than most answers, so that their buffers need not grow.
const CAPACITY: usize = 320;

/// Makes the answer, always with HTTP 200: client libraries discard the body of any other status.
pub fn answer(format: BodyFormat, result: &Result<Content, Refusal>) -> Response {
    let (body, content_type) = match format {
        BodyFormat::Xml => (xml(result), "application/xml;charset=utf-8"),
        BodyFormat::Json => (json(result), "application/json;charset=utf-8"),
    };
    let code = result
        .as_ref()
        .map_or_else(|refusal| refusal.code, |_| StatusCode::Success);
    Response::builder()
        .extension(code) // for the metrics
        .header(CONTENT_TYPE, content_type)
        .header(CACHE_CONTROL, "no-store")
        .body(Body::from(body))
        .expect("these headers are valid")
}

fn xml(result: &Result<Content, Refusal>) -> String {
    fn element(text: &mut String, name: &str, value: &str) {
        text.extend(["<", name, ">", &escape(value), "</", name, ">"]);
    }
    let mut text = String::with_capacity(CAPACITY);
    text.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><Response>");
    match result {
        Err(refusal) => {
            element(&mut text, "statusCode", refusal.code.code());
            element(&mut text, "statusMsg", &refusal.message);
        }
        Ok(Content::Group(group, values)) => {
            element(&mut text, "statusCode", StatusCode::Success.code());
            text.extend(["<", group, ">"]);
            for (name, value) in values {
                element(&mut text, name, value);
            }
            text.extend(["</", group, ">"]);
        }
        Ok(Content::XmlValue(name, value)) => {
            element(&mut text, "statusCode", StatusCode::Success.code());
            element(&mut text, name, value);
        }
        Ok(Content::Download { url, token, .. }) => {
            element(&mut text, "statusCode", StatusCode::Success.code());
            element(&mut text, "downUrl", url);
            element(&mut text, "token", token);
        }
    }
    text.push_str("</Response>");
    text
}

fn json(result: &Result<Content, Refusal>) -> String {
    fn member(text: &mut String, name: &str, value: &str) {
        let value = serde_json::to_string(value).expect("a text is JSON");
        text.extend(["\"", name, "\":", &value]);
    }
    let mut text = String::with_capacity(CAPACITY);
    text.push('{');
    match result {
        Err(refusal) => {
            member(&mut text, "statusCode", refusal.code.code());
            text.push(',');
            member(&mut text, "statusMsg", &refusal.message);
        }
        Ok(Content::Group(group, values)) => {
            member(&mut text, "statusCode", StatusCode::Success.code());
            text.extend([",\"", group, "\":{"]);
            for (place, (name, value)) in values.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                member(&mut text, name, value);
            }
            text.push('}');
        }
        Ok(Content::XmlValue(..)) => {
            member(&mut text, "statusCode", StatusCode::Success.code());
        }
        Ok(Content::Download {
            url,
            json_name,
            token,
        }) => {
            member(&mut text, "statusCode", StatusCode::Success.code());
            for (name, value) in [(*json_name, url), ("token", token)] {
                text.push(',');
                member(&mut text, name, value);
            }
        }
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_documented_form_to_the_letter() {
        let good = Ok(Content::Group(
            "LandingCall",
            vec![
                ("callSid", "x".into()),
                ("dateCreated", "2026-11-15 02:35:09".into()),
            ],
        ));
        insta::assert_snapshot!(xml(&good), @r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?><Response><statusCode>000000</statusCode><LandingCall><callSid>x</callSid><dateCreated>2026-11-15 02:35:09</dateCreated></LandingCall></Response>"#);
        insta::assert_snapshot!(json(&good), @r#"{"statusCode":"000000","LandingCall":{"callSid":"x","dateCreated":"2026-11-15 02:35:09"}}"#);
        let bad = Err(Refusal::field("a <field> & a \"rule\""));
        insta::assert_snapshot!(xml(&bad), @r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?><Response><statusCode>108023</statusCode><statusMsg>a &lt;field&gt; &amp; a &quot;rule&quot;</statusMsg></Response>"#);
        insta::assert_snapshot!(json(&bad), @r#"{"statusCode":"108023","statusMsg":"a <field> & a \"rule\""}"#);
    }
}
