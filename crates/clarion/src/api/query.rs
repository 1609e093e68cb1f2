//! Values of the query, as clients write them.

use std::borrow::Cow;

use axum::http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::form_urlencoded;

use crate::audio_files::names;

/// What RFC 3986 (2.3) calls unreserved stays itself.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Returns the first value of a query parameter, decoded, or `None` if it is absent or empty.
pub fn value(parts: &Parts, name: &str) -> Option<String> {
    form_urlencoded::parse(parts.uri.query()?.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
        .filter(|value| !value.is_empty())
}

/// The same, whatever the case of the parameter's name, as it was written.
pub fn raw_value<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    let pairs = parts.uri.query()?.split('&');
    pairs
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
        .filter(|value| !value.is_empty())
}

/// Decodes a name that clients write in different ways: percent-encoded as UTF-8 or as GBK, or not encoded at all. `None` if it is neither.
///
/// A `+` is a blank only where the client writes its forms so: such a client encodes everything else that is special, and a blank not as `%20`.
pub fn name(raw: &str) -> Option<String> {
    let is_form = raw.contains('%') && !raw.contains("%20");
    let text = if is_form {
        Cow::Owned(raw.replace('+', " "))
    } else {
        Cow::Borrowed(raw)
    };
    let bytes: Cow<'_, [u8]> = percent_decode_str(&text).into();
    names::decode(&bytes)
}

/// Encodes a name so that every reader of queries gets it back, and so does `name`: a blank is `%20`.
pub fn encoded(name: &str) -> String {
    utf8_percent_encode(name, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_encoded_is_read_as_it_was() {
        for meant in [
            "a.wav",
            "e f.wav",
            "a+b c.wav",
            "50%.wav",
            "a%20b.wav",
            "a&b=c#d.wav",
            "欢迎 1+1.wav",
        ] {
            assert_eq!(name(&encoded(meant)).as_deref(), Some(meant));
        }
    }

    #[test]
    fn a_name_is_what_its_client_meant() {
        for (raw, meant) in [
            ("a.wav", "a.wav"),
            ("a+b.wav", "a+b.wav"),
            ("a%2Bb.wav", "a+b.wav"),
            ("a%2Bb+c.wav", "a+b c.wav"),
            ("a+b%20c.wav", "a+b c.wav"),
            ("%E6%AC%A2%E8%BF%8E+1.wav", "欢迎 1.wav"),
            ("%E6%AC%A2%E8%BF%8E.wav", "欢迎.wav"),
            // GBK.
            ("%BB%B6%D3%AD.wav", "欢迎.wav"),
            ("%bb%b6%d3%ad%2b.wav", "欢迎+.wav"),
        ] {
            assert_eq!(name(raw).as_deref(), Some(meant), "{raw}");
        }
        for raw in ["%FF%FF.wav", "%BB.wav"] {
            assert_eq!(name(raw), None, "{raw}");
        }
    }
}
