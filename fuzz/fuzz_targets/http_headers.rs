//! Any lines as headers of a request, to the API and to the console: nothing but a host comes into an address, and no range goes beyond its file. The first line is
//! taken for the keywords of a bill.

#![no_main]

use clarion::api::dissect;
use clarion::console::{PageLanguage, cookie_value};
use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (keywords, lines) = text.split_once('\n').unwrap_or((text, ""));
    let mut headers = HeaderMap::new();
    for line in lines.lines().take(100) {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        if let (Ok(name), Ok(value)) = (
            name.parse::<HeaderName>(),
            HeaderValue::from_str(value.trim()),
        ) {
            headers.append(name, value);
        }
    }
    dissect::http_headers(&headers, keywords, text.len() as u64);
    let _ = PageLanguage::of(&headers);
    let value = cookie_value(&headers, "__Host-clarion");
    assert!(value.is_none_or(|value| !value.contains(';')));
});
