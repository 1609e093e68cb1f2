//! What every answer of the console tells the browser: to run and load nothing but our own files, to show itself in no other page, to guess no type, to tell
//! nobody where it comes from, and to keep nothing.

use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::response::Response;

pub const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";

pub fn protect(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Only what has a hash in its name may be kept.
    let kept = headers.entry(CACHE_CONTROL);
    kept.or_insert(HeaderValue::from_static("no-store"));
    answer
}
