//! Our code that reads the fields of bodies, and the headers, without a server: for the fuzzer.

use std::net::{Ipv4Addr, SocketAddr};

use axum::http::{HeaderMap, Request, Uri};

use super::arrival::Arrival;
use super::bill_file::{self, Wanted};
use super::placing::WantedCall;
use super::wire::{self, BodyFormat};
use super::{alerts, landing_calls, query, voice_verify};
use crate::config::Config;
use crate::domain::account::Account;
use crate::domain::bill::keywords::Keywords;
use crate::domain::status_code::Refusal;

/// Settings with which numbers have a way: without one, nothing behind the number is read.
pub const SETTINGS: &str = "[[trunk]]\nname = \"self\"\nloopback = true\nchannels = 1\ncalls_per_second = 1\nprefixes = [\"\"]\n";

/// Reads a body as the request for a call, of either kind, up to what asks the database. False if its fields are refused.
pub fn call_request(format: BodyFormat, body: &[u8], account: &Account, config: &Config) -> bool {
    let landing = wire::read_as(format, &landing_calls::FORM, body);
    let landing = landing.and_then(|fields| landing_calls::read(&fields, account, config));
    let verify = wire::read_as(format, &voice_verify::FORM, body);
    let verify = verify.and_then(|fields| voice_verify::read(&fields, account, config));
    [landing, verify]
        .into_iter()
        .filter(|wanted| is_good(wanted, config))
        .count()
        > 0
}

fn is_good(wanted: &Result<WantedCall, Refusal>, config: &Config) -> bool {
    match wanted {
        Ok(wanted) => {
            let speech = wanted.speech.iter();
            let longest = config.calls.max_text_characters.max(1000);
            let fits = speech
                .map(|speech| speech.text.chars().count())
                .all(|count| count <= longest);
            assert!(fits);
            let files = wanted.files.iter().map(|files| files.names.len());
            assert!(files.max().unwrap_or_default() <= config.calls.max_files);
            true
        }
        Err(refusal) => {
            let is_plain = |character: char| !character.is_control() || character.is_whitespace();
            assert!(refusal.message.chars().all(is_plain), "{refusal}");
            false
        }
    }
}

/// Reads what comes in headers, and the keywords of a bill, of which the file has so many bytes.
pub fn http_headers(headers: &HeaderMap, keywords: &str, length: u64) {
    match bill_file::wanted_range(headers, "\"x\"", length) {
        Wanted::Part(part) => assert!(part.start < part.end && part.end <= length),
        Wanted::Whole | Wanted::Nowhere => {}
    }
    let _ = bill_file::accepts_gzip(headers);
    let _ = BodyFormat::of_answer(headers, b"");
    let mut request = Request::new(());
    *request.headers_mut() = headers.clone();
    let (parts, ()) = request.into_parts();
    for by_proxy in [false, true] {
        let arrival = Arrival {
            local: SocketAddr::from((Ipv4Addr::LOCALHOST, 8883)),
            is_tls: true,
            by_proxy,
        };
        let url = arrival.server_url(&parts);
        let host = url.split_once("://").map(|(_, host)| host);
        let is_host = |letter: char| letter.is_ascii_alphanumeric() || "-_.:[]".contains(letter);
        assert!(host.is_some_and(|host| host.chars().all(is_host)), "{url}");
    }
    if let Ok(Some(keywords)) = Keywords::parse(keywords) {
        let again = Keywords::parse(keywords.as_str()).ok().flatten();
        assert!(again.is_some_and(|again| again.as_str() == keywords.as_str()));
    }
}

/// Reads a query as the API does, and the token of an intake, which is there or in the headers.
pub fn query(query: &str, headers: &HeaderMap) {
    let Ok(uri) = format!("/?{query}").parse::<Uri>() else {
        return;
    };
    let mut request = Request::new(());
    *request.uri_mut() = uri;
    *request.headers_mut() = headers.clone();
    let (parts, ()) = request.into_parts();
    for name in ["token", "keywords"] {
        let value = query::value(&parts, name);
        assert!(value.is_none_or(|value| !value.is_empty()));
    }
    let raw = query::raw_value(&parts, "fileName");
    assert!(raw.is_none_or(|raw| !raw.is_empty() && !raw.contains('&') && query.contains(raw)));
    let _ = raw.and_then(query::name);
    let _ = alerts::token_of(&parts);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::account::test_account;

    /// Otherwise the fuzzer would seldom get beyond the first field.
    #[test]
    fn the_seeds_of_the_fuzzer_are_requests_that_are_taken() {
        let account = test_account("0123456789abcdef0123456789abcdef".parse().unwrap());
        let config = Config::from_parts(SETTINGS, &[]).unwrap();
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/call_request");
        for seed in std::fs::read_dir(seeds).unwrap() {
            let path = seed.unwrap().path();
            let seed = std::fs::read(&path).unwrap();
            let format = match seed[0] {
                b'x' => BodyFormat::Xml,
                _ => BodyFormat::Json,
            };
            let body = &seed[1..];
            let landing = wire::read_as(format, &landing_calls::FORM, body);
            let landing =
                landing.and_then(|fields| landing_calls::read(&fields, &account, &config));
            let verify = wire::read_as(format, &voice_verify::FORM, body);
            let verify = verify.and_then(|fields| voice_verify::read(&fields, &account, &config));
            let is_taken = landing.is_ok() || verify.is_ok();
            assert!(is_taken, "{}: {landing:?} {verify:?}", path.display());
            assert!(call_request(format, body, &account, &config));
        }
    }
}
