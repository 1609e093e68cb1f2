//! Reading headers that the library has no type for, or has one only in some versions.

use std::time::Duration;

use rsipstack::sip::{HasHeaders, Header, HeadersExt, Response};

use super::head;
use crate::ending::Q850;

/// The methods that we understand in a call.
pub(super) const ALLOWED: &str = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK";

/// The extensions that a peer may require of us.
pub(super) const EXTENSIONS: [&str; 2] = ["100rel", "timer"];

/// The only kind of description that we read.
pub(super) const DESCRIPTION: &str = "application/sdp";

/// What we can do, for whoever asks (RFC 3261 section 11.2).
pub(super) fn capabilities() -> Vec<Header> {
    vec![
        Header::Allow(ALLOWED.into()),
        Header::Supported(EXTENSIONS.join(", ").into()),
        Header::Accept(DESCRIPTION.into()),
    ]
}

/// The first header of this name. By name it is found whether the library has a type for it or not.
pub(super) fn header_value(message: &impl HasHeaders, name: &str) -> Option<String> {
    message
        .headers()
        .iter()
        .find(|header| header.name().eq_ignore_ascii_case(name))
        .map(|header| header.value().to_owned())
}

/// Who of those that an INVITE of ours has called sends a response; nobody whose response opens no dialog.
pub(super) fn peer_tag(response: &Response) -> Option<&str> {
    tag(response.to_header().ok()?.value())
}

/// Our own tag in a response to a request of ours.
pub(super) fn our_tag(response: &Response) -> Option<&str> {
    tag(response.from_header().ok()?.value())
}

/// The tag of a To or From. The library would make an address of all that stands before it, to find it.
pub(super) fn tag(value: &str) -> Option<&str> {
    std::str::from_utf8(head::tag(value.as_bytes())?).ok()
}

/// The Q.850 cause of a response, where it has one.
pub(super) fn q850(response: &Response) -> Option<Q850> {
    let reasons = response.headers().iter().filter_map(|header| match header {
        Header::Reason(reason) => Some(reason.value()),
        _ => None,
    });
    reasons.into_iter().find_map(Q850::from_reason)
}

/// How long a peer asks to be left alone (RFC 3261 section 20.33): seconds, and perhaps a comment or parameters behind them.
pub(super) fn retry_after(response: &Response) -> Option<Duration> {
    let value = header_value(response, "Retry-After")?;
    let seconds = value.split(['(', ';']).next()?.trim().parse::<u32>().ok()?;
    Some(Duration::from_secs(seconds.into()))
}
