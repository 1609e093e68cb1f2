//! `GET {downUrl}?token={token}`: a bill file. The token alone grants access. Without a valid token the answer reveals nothing, not even
//! whether the file exists.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE, RANGE, VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode as HttpStatus, response};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use subtle::ConstantTimeEq;

use super::wire::{self, BodyFormat};
use super::{Api, KnownClient, PeerAddress, downloads};
use crate::billing::ByteChunks;
use crate::domain::bill::BillFile;
use crate::domain::status_code::{Refusal, StatusCode};
use crate::fair_places::FairPlace;

pub const ROUTE: &str = "/bills/{file}";
/// Number of compressed bytes that are collected before they are sent.
const PACKED: usize = 64 << 10;

pub fn path(file: &BillFile) -> String {
    format!("/bills/{}", file.id)
}

pub async fn download(State(api): State<Arc<Api>>, parts: Parts) -> Response {
    let found = find(&api, &parts).await;
    if let (Ok(Some(_)), Some(client)) = (&found, parts.extensions.get::<KnownClient>()) {
        client.record();
    }
    match found {
        Ok(Some(file)) => send(&api, &parts, &file).await,
        Ok(None) => refuse_token(&api, &parts).await,
        Err(error) => {
            tracing::error!(%error, "a bill token cannot be checked");
            let status = HttpStatus::SERVICE_UNAVAILABLE;
            refuse(&parts, status, StatusCode::UnknownError.into())
        }
    }
}

async fn send(api: &Api, parts: &Parts, file: &BillFile) -> Response {
    let place = match api.admission.downloads.place(&file.of.account).await {
        Ok(place) => place,
        Err(refusal) => return refuse(parts, HttpStatus::TOO_MANY_REQUESTS, refusal),
    };
    match answer(api, &parts.headers, file, place).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::error!(%error, file = file.object, "a bill file cannot be read");
            let status = HttpStatus::INTERNAL_SERVER_ERROR;
            refuse(parts, status, StatusCode::UnknownError.into())
        }
    }
}

/// Like a wrong signature: a line of the log, and a flood is answered slowly.
async fn refuse_token(api: &Api, parts: &Parts) -> Response {
    let refusal = Refusal::from(StatusCode::BillTokenInvalid);
    let from = parts.extensions.get::<PeerAddress>();
    let from = from.expect("the listener always adds it").0;
    let pause = api.admission.failures.record(&refusal, from);
    tokio::time::sleep(pause).await;
    refuse(parts, HttpStatus::FORBIDDEN, refusal)
}

/// Finds the file by the token. The path must name the same file.
async fn find(api: &Api, parts: &Parts) -> anyhow::Result<Option<BillFile>> {
    let token = super::query::value(parts, "token").unwrap_or_default();
    let is_token = token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_token {
        return Ok(None);
    }
    let found = api
        .billing
        .file_of_token(&token.to_ascii_lowercase())
        .await?;
    let asked = parts.uri.path().trim_end_matches('/');
    Ok(found.filter(|file| bool::from(path(file).as_bytes().ct_eq(asked.as_bytes()))))
}

fn refuse(parts: &Parts, status: HttpStatus, refusal: Refusal) -> Response {
    let format = BodyFormat::of_answer(&parts.headers, &[]);
    let mut answer = wire::answer(format, &Err(refusal));
    *answer.status_mut() = status;
    answer
}

async fn answer(
    api: &Api,
    headers: &HeaderMap,
    file: &BillFile,
    place: FairPlace,
) -> anyhow::Result<Response> {
    let tag = format!("\"{}\"", file.sha256);
    let range = wanted_range(headers, &tag, file.bytes);
    let packed = matches!(range, Wanted::Whole) && accepts_gzip(headers);
    let packed_tag = format!("\"{}-gzip\"", file.sha256);
    let head = head(file, if packed { &packed_tag } else { &tag });
    let known = text(headers, &IF_NONE_MATCH);
    if known.is_some_and(|known| known.contains(&tag) || known.contains(&packed_tag)) {
        return Ok(head.status(HttpStatus::NOT_MODIFIED).body(Body::empty())?);
    }
    let (status, range) = match range {
        Wanted::Whole => (HttpStatus::OK, 0..file.bytes),
        Wanted::Part(range) => (HttpStatus::PARTIAL_CONTENT, range),
        Wanted::Nowhere => {
            let head = head.status(HttpStatus::RANGE_NOT_SATISFIABLE);
            let head = head.header(CONTENT_RANGE, format!("bytes */{}", file.bytes));
            return Ok(head.body(Body::empty())?);
        }
    };
    let bytes = api.billing.read(file, range.clone()).await?;
    if packed {
        let head = head.header(CONTENT_ENCODING, "gzip");
        return Ok(head.body(downloads::body(place, pack(bytes)))?);
    }
    let mut head = head
        .status(status)
        .header(CONTENT_LENGTH, range.end - range.start);
    if status == HttpStatus::PARTIAL_CONTENT {
        let part = format!("bytes {}-{}/{}", range.start, range.end - 1, file.bytes);
        head = head.header(CONTENT_RANGE, part);
    }
    Ok(head.body(downloads::body(place, bytes))?)
}

fn head(file: &BillFile, tag: &str) -> response::Builder {
    let name = format!("bill-{}-{}.csv", file.of.day, file.of.app);
    Response::builder()
        .extension(StatusCode::Success) // for the metrics
        .header(CONTENT_TYPE, "text/csv;charset=utf-8;header=present")
        .header(
            CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}\""),
        )
        .header(ACCEPT_RANGES, "bytes")
        .header(ETAG, tag)
        .header(VARY, "Accept-Encoding")
        .header(CACHE_CONTROL, "private, no-store")
}

pub(super) enum Wanted {
    Whole,
    Part(Range<u64>),
    Nowhere,
}

/// Reads one range of bytes (RFC 9110, 14.2). Several ranges, an unreadable range or a range of another file mean the whole file.
pub(super) fn wanted_range(headers: &HeaderMap, tag: &str, length: u64) -> Wanted {
    let other = text(headers, &IF_RANGE).is_some_and(|wanted| wanted != tag);
    let range = text(headers, &RANGE).and_then(|text| text.strip_prefix("bytes="));
    let Some((first, last)) = range
        .filter(|_| !other)
        .and_then(|text| text.split_once('-'))
    else {
        return Wanted::Whole;
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match (first.trim(), last.trim()) {
        ("", last) => match number(last) {
            Some(count) => length.saturating_sub(count)..length,
            None => return Wanted::Whole,
        },
        (first, "") => match number(first) {
            Some(first) => first..length,
            None => return Wanted::Whole,
        },
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
            _ => return Wanted::Whole,
        },
    };
    if range.is_empty() {
        Wanted::Nowhere
    } else {
        Wanted::Part(range)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = text(headers, &ACCEPT_ENCODING).unwrap_or_default();
    accepted.split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let refused = weight
            .trim()
            .strip_prefix("q=")
            .is_some_and(|weight| weight.trim().trim_matches(['0', '.']).is_empty());
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

/// Compresses the file while it is sent. Only the next chunk is kept in memory.
fn pack(bytes: ByteChunks) -> ByteChunks {
    let packer = GzEncoder::new(Vec::with_capacity(PACKED), Compression::fast());
    stream::try_unfold(Some((bytes, packer)), async |state| {
        let Some((mut bytes, mut packer)) = state else {
            return Ok(None);
        };
        while packer.get_ref().len() < PACKED {
            let Some(chunk) = bytes.try_next().await? else {
                let last = packer.finish().map_err(broken)?;
                return Ok(Some((Bytes::from(last), None)));
            };
            packer.write_all(&chunk).map_err(broken)?;
        }
        let full = std::mem::replace(packer.get_mut(), Vec::with_capacity(PACKED));
        Ok(Some((Bytes::from(full), Some((bytes, packer)))))
    })
    .boxed()
}

fn broken(error: std::io::Error) -> object_store::Error {
    object_store::Error::Generic {
        store: "gzip",
        source: Box::new(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn ranges_are_read_as_http_has_them() {
        let range = |text: &str| match wanted_range(&headers(RANGE, text), "\"x\"", 100) {
            Wanted::Whole => "whole".to_owned(),
            Wanted::Part(range) => format!("{range:?}"),
            Wanted::Nowhere => "nowhere".to_owned(),
        };
        for (text, wanted) in [
            ("bytes=0-9", "0..10"),
            ("bytes=90-", "90..100"),
            ("bytes=-5", "95..100"),
            ("bytes=-500", "0..100"),
            ("bytes=50-5000", "50..100"),
            ("bytes=0-18446744073709551615", "0..100"),
            ("bytes=100-", "nowhere"),
            ("bytes=-0", "nowhere"),
            ("bytes=9-1", "whole"),
            ("bytes=0-1,5-6", "whole"),
            ("lines=0-9", "whole"),
            ("bytes=x-", "whole"),
        ] {
            assert_eq!(range(text), wanted, "{text}");
        }
    }

    #[test]
    fn gzip_is_used_only_where_it_is_accepted() {
        for (text, wanted) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip;q=0.000", false),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(
                accepts_gzip(&headers(ACCEPT_ENCODING, text)),
                wanted,
                "{text}"
            );
        }
    }
}
