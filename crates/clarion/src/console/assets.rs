//! What pages need beside themselves: one style sheet, one script, one icon. They are part of the program, and their addresses change with what is in them, so
//! browsers may keep them for ever.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::refusal::Refused;
use super::visit::Visit;

const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

#[derive(Debug)]
struct Asset {
    /// As it is called in an address: with a hash of its bytes.
    path: String,
    etag: HeaderValue,
    media_type: &'static str,
    bytes: &'static [u8],
}

impl Asset {
    fn new(stem: &str, ending: &str, media_type: &'static str, bytes: &'static [u8]) -> Self {
        let hash = hex::encode(&Sha256::digest(bytes)[..8]);
        let etag = HeaderValue::from_str(&format!("\"{hash}\""));
        Self {
            path: format!("/assets/{stem}-{hash}.{ending}"),
            etag: etag.expect("a hash is plain"),
            media_type,
            bytes,
        }
    }
}

macro_rules! asset {
    ($stem:literal, $ending:literal, $media_type:literal) => {
        LazyLock::new(|| {
            let bytes = include_bytes!(concat!("../../assets/console/", $stem, ".", $ending));
            Asset::new($stem, $ending, $media_type, bytes)
        })
    };
}

static STYLE: LazyLock<Asset> = asset!("console", "css", "text/css; charset=utf-8");
static SCRIPT: LazyLock<Asset> = asset!("console", "js", "text/javascript; charset=utf-8");
static ICON: LazyLock<Asset> = asset!("icon", "svg", "image/svg+xml");

pub fn style() -> &'static str {
    &STYLE.path
}

pub fn script() -> &'static str {
    &SCRIPT.path
}

pub fn icon() -> &'static str {
    &ICON.path
}

pub fn download(visit: &Visit) -> Result<Response, Refused> {
    let wanted = visit.parts.uri.path();
    let mut assets = [&*STYLE, &*SCRIPT, &*ICON].into_iter();
    let asset = assets.find(|asset| asset.path == wanted);
    let asset = asset.ok_or(Refused::NotFound)?;
    let headers = [
        (CACHE_CONTROL, FOR_EVER),
        (CONTENT_TYPE, HeaderValue::from_static(asset.media_type)),
        (ETAG, asset.etag.clone()),
    ];
    if is_known(&visit.parts.headers, &asset.etag) {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    Ok((headers, Body::from(asset.bytes)).into_response())
}

fn is_known(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    headers.get(IF_NONE_MATCH) == Some(etag)
}
