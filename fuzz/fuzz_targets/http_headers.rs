//! Any lines as headers of a request, to the API and to the console: nothing but a host comes into an address, no range goes beyond its file, and a stranger names no
//! address but his own. The first line is
//! taken for the keywords of a bill, and for a query.

#![no_main]

use std::net::IpAddr;

use clarion::api::dissect;
use clarion::console::{PageLanguage, cookie_value};
use clarion::http::client_address;
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
    dissect::query(keywords, &headers);
    comes_from(&headers);
    let _ = PageLanguage::of(&headers);
    let value = cookie_value(&headers, "__Host-clarion");
    assert!(value.is_none_or(|value| !value.contains(';')));
});

/// Only a proxy is believed, and what it says is never the address of a proxy.
fn comes_from(headers: &HeaderMap) {
    let proxies = "10.0.0.0/8".parse().unwrap();
    let [proxy, stranger] = [[10, 0, 0, 1], [192, 0, 2, 1]].map(IpAddr::from);
    let from = client_address(proxy, headers, &[proxies]);
    assert!(from == proxy || !proxies.contains(&from), "{from}");
    assert_eq!(from, from.to_canonical());
    assert_eq!(client_address(stranger, headers, &[proxies]), stranger);
}
