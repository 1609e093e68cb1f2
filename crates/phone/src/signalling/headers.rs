//! Reading headers that the library has no type for, or has one only in some versions.

use rsipstack::sip::{HasHeaders, Header, Response};

use crate::ending::Q850;

/// The first header of this name. By name it is found whether the library has a type for it or not.
pub(super) fn header_value(message: &impl HasHeaders, name: &str) -> Option<String> {
    message
        .headers()
        .iter()
        .find(|header| header.name().eq_ignore_ascii_case(name))
        .map(|header| header.value().to_owned())
}

/// The Q.850 cause of a response, where it has one.
pub(super) fn q850(response: &Response) -> Option<Q850> {
    let reasons = response.headers().iter().filter_map(|header| match header {
        Header::Reason(reason) => Some(reason.value()),
        _ => None,
    });
    reasons.into_iter().find_map(Q850::from_reason)
}
