//! What a form sends: fields, and files where a route takes them. All of it is bounded before it is read.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use futures_util::FutureExt;
use http_body_util::Limited;
use url::form_urlencoded;

use super::Console;
use super::refusal::Refused;
use super::route_access::RouteAccess;
use crate::domain::operator::OperatorRole;

/// No form without files is longer.
const LONGEST_FORM: usize = 65_536;
/// Files of one form.
const MAX_FILES: usize = 100;

#[derive(Debug, Default)]
pub struct SentForm {
    fields: Vec<(String, String)>,
    pub files: Vec<SentFile>,
}

#[derive(Debug)]
pub struct SentFile {
    pub name: String,
    pub bytes: Bytes,
}

impl SentForm {
    /// `None` if the form has no such field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Reads a form. Only admins send files: they are as large, and may be as slow, as those that applications upload.
pub async fn read(
    console: &Console,
    access: RouteAccess,
    parts: &Parts,
    body: Body,
) -> Result<SentForm, Refused> {
    let media_type = parts.headers.get(CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok());
    let is = |kind: &str| media_type.is_some_and(|text| text.starts_with(kind));
    if is("application/x-www-form-urlencoded") {
        let read = tokio::time::timeout(console.body_time, fields(body)).await;
        return read.map_err(|_| Refused::BadForm)?;
    }
    if is("multipart/form-data") && access == RouteAccess::Role(OperatorRole::Admin) {
        // As long as the uploads of applications may take.
        let time = console.management.config().audio_files.upload_time;
        let read = tokio::time::timeout(time, with_files(console, parts, body)).await;
        return read.map_err(|_| Refused::TooLarge)?;
    }
    Err(Refused::BadForm)
}

async fn fields(body: Body) -> Result<SentForm, Refused> {
    let bytes = axum::body::to_bytes(body, LONGEST_FORM).await;
    let bytes = bytes.map_err(|_| Refused::BadForm)?;
    let pairs = form_urlencoded::parse(&bytes).into_owned();
    Ok(SentForm {
        fields: pairs.map(|(name, value)| (name, typed(&value))).collect(),
        files: Vec::new(),
    })
}

async fn with_files(console: &Console, parts: &Parts, body: Body) -> Result<SentForm, Refused> {
    // Each may fill much memory.
    let Ok(_place) = console.uploads.try_acquire() else {
        return Err(Refused::Busy);
    };
    let largest = console.management.config().audio_files.limits.bytes;
    fields_and_files(parts, body, largest.saturating_add(LONGEST_FORM)).await
}

async fn fields_and_files(parts: &Parts, body: Body, longest: usize) -> Result<SentForm, Refused> {
    let body = Limited::new(body, longest);
    let mut request = Request::new(Body::new(body));
    *request.headers_mut() = parts.headers.clone();
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|_| Refused::BadForm)?;
    let mut sent = SentForm::default();
    while let Some(part) = form.next_field().await.map_err(|_| Refused::TooLarge)? {
        let name = part.name().unwrap_or_default().to_owned();
        let file = part.file_name().map(str::to_owned);
        let bytes = part.bytes().await.map_err(|_| Refused::TooLarge)?;
        match file {
            // A field for files in which nobody has chosen one.
            Some(file) if file.is_empty() => {}
            Some(file) => sent.files.push(SentFile { name: file, bytes }),
            None => {
                let value = typed(&String::from_utf8_lossy(&bytes));
                sent.fields.push((name, value));
            }
        }
        if sent.files.len() > MAX_FILES || sent.fields.len() > MAX_FILES {
            return Err(Refused::TooLarge);
        }
    }
    Ok(sent)
}

/// A value as it was typed: browsers send each line break as two characters.
fn typed(value: &str) -> String {
    value.replace("\r\n", "\n")
}

/// Reads a body that is there wholly as a form of either kind, without a server: for the fuzzer. Returns how many fields and files it has, if it can be read.
pub fn dissect(media_type: &str, body: &[u8]) -> Option<(usize, usize)> {
    let request = Request::builder().header(CONTENT_TYPE, media_type);
    let (parts, ()) = request.body(()).ok()?.into_parts();
    let whole = || Body::from(body.to_vec());
    let plain = fields(whole()).now_or_never()?.ok();
    let with_files = fields_and_files(&parts, whole(), LONGEST_FORM)
        .now_or_never()?
        .ok();
    assert!(plain.is_none_or(|form| form.files.is_empty()));
    with_files.map(|form| (form.fields.len(), form.files.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_break_is_one_character_as_it_was_typed() {
        let form = fields(Body::from("text=a%0D%0Ab%0Ac%0D%E2%80%8D"))
            .await
            .unwrap();
        assert_eq!(form.field("text"), Some("a\nb\nc\r\u{200d}"));
        let part =
            "--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\na\r\nb\r\n--b--\r\n";
        let (mut parts, ()) = Request::new(()).into_parts();
        let kind = "multipart/form-data; boundary=b".parse().unwrap();
        parts.headers.insert(CONTENT_TYPE, kind);
        let form = fields_and_files(&parts, Body::from(part), LONGEST_FORM)
            .await
            .unwrap();
        assert_eq!(form.field("text"), Some("a\nb"));
    }

    /// Otherwise the fuzzer would seldom get beyond the first line.
    #[test]
    fn the_seeds_of_the_fuzzer_are_forms() {
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/sent_form");
        for (seed, wanted) in [
            ("file", Some((1, 1))),
            ("plain", None),
            ("six", Some((6, 0))),
        ] {
            let seed = std::fs::read_to_string(format!("{seeds}/{seed}")).unwrap();
            let (media_type, body) = seed.split_once('\n').unwrap();
            assert_eq!(dissect(media_type, body.as_bytes()), wanted, "{seed}");
        }
    }
}
