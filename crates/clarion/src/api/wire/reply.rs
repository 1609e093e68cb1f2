//! Answers: one line, no attributes, every value a string; `statusMsg` only on failure.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use quick_xml::escape::escape;

use super::Format;
use crate::domain::status_code::{Refusal, StatusCode};

/// What a successful answer carries beside its statusCode. Nothing but these shapes is ever sent: an unknown scalar at the top level of
/// a JSON answer crashes the vendor's Java client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// One group of values under a name.
    Group(&'static str, Vec<(&'static str, String)>),
}

/// HTTP 200 whatever the statusCode: client libraries throw the body of anything else away.
pub fn answer(format: Format, result: &Result<Content, Refusal>) -> Response {
    let (body, content_type) = match format {
        Format::Xml => (xml(result), "application/xml;charset=utf-8"),
        Format::Json => (json(result), "application/json;charset=utf-8"),
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
    let element = |name: &str, text: &str| format!("<{name}>{}</{name}>", escape(text));
    let inside = match result {
        Err(refusal) => {
            element("statusCode", refusal.code.code()) + &element("statusMsg", &refusal.message)
        }
        Ok(Content::Group(name, values)) => {
            let values: String = values
                .iter()
                .map(|(name, text)| element(name, text))
                .collect();
            format!(
                "{}<{name}>{values}</{name}>",
                element("statusCode", StatusCode::Success.code())
            )
        }
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><Response>{inside}</Response>"
    )
}

fn json(result: &Result<Content, Refusal>) -> String {
    let member = |name: &str, text: &str| {
        format!(
            "{}:{}",
            serde_json::Value::from(name),
            serde_json::Value::from(text)
        )
    };
    match result {
        Err(refusal) => {
            format!(
                "{{{},{}}}",
                member("statusCode", refusal.code.code()),
                member("statusMsg", &refusal.message)
            )
        }
        Ok(Content::Group(name, values)) => {
            let values: Vec<_> = values
                .iter()
                .map(|(name, text)| member(name, text))
                .collect();
            let group = format!(
                "{}:{{{}}}",
                serde_json::Value::from(*name),
                values.join(",")
            );
            format!(
                "{{{},{group}}}",
                member("statusCode", StatusCode::Success.code())
            )
        }
    }
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
