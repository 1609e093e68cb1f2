//! How a request came, and under which address its client knows this server.

use std::net::SocketAddr;

use axum::http::HeaderMap;
use axum::http::header::{FORWARDED, HOST};
use axum::http::request::Parts;
use axum::http::uri::Authority;

/// The listener adds it to every request.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Our end of the connection.
    pub local: SocketAddr,
    pub is_tls: bool,
    /// It was passed on by a proxy that the operator trusts.
    pub by_proxy: bool,
}

impl Arrival {
    /// The URL of this server, without a path, as the client of this request has written it. What proxies say about it is believed from those
    /// that the operator trusts.
    pub fn server_url(self, parts: &Parts) -> String {
        let told = if self.by_proxy {
            Told::by(&parts.headers)
        } else {
            Told::default()
        };
        let is_plain = match told.scheme {
            Some(scheme) => scheme.eq_ignore_ascii_case("http"),
            // The clients of this API speak TLS, and with a proxy in front of us they speak it to the proxy.
            None => !self.is_tls && !self.by_proxy,
        };
        let (scheme, usual_port) = if is_plain {
            ("http", 80)
        } else {
            ("https", 443)
        };
        let named = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let named = parts.uri.authority().map(Authority::as_str).or(named);
        let host = told.host.and_then(host).or_else(|| named.and_then(host));
        let Some(mut host) = host else {
            return format!("{scheme}://{}", self.local);
        };
        let told_port = told.port.and_then(|port| port.parse::<u16>().ok());
        if let Some(port) = told_port.filter(|port| *port != usual_port)
            && !has_port(&host)
        {
            host = format!("{host}:{port}");
        }
        format!("{scheme}://{host}")
    }
}

/// What a proxy says about the request that came to it.
#[derive(Debug, Default)]
struct Told<'a> {
    scheme: Option<&'a str>,
    host: Option<&'a str>,
    port: Option<&'a str>,
}

impl<'a> Told<'a> {
    /// Of several proxies the last one speaks: it is the one that is trusted.
    fn by(headers: &'a HeaderMap) -> Self {
        let last = |name: &str| {
            let values = headers.get_all(name);
            let value = values.iter().next_back()?.to_str().ok()?;
            let value = value.rsplit(',').next()?.trim();
            (!value.is_empty()).then_some(value)
        };
        let forwarded = last(FORWARDED.as_str());
        let pair = |name: &str| {
            forwarded?.split(';').find_map(|pair| {
                let (key, value) = pair.split_once('=')?;
                let value = value.trim().trim_matches('"');
                key.trim().eq_ignore_ascii_case(name).then_some(value)
            })
        };
        Self {
            scheme: pair("proto").or_else(|| last("x-forwarded-proto")),
            host: pair("host").or_else(|| last("x-forwarded-host")),
            port: last("x-forwarded-port"),
        }
    }
}

/// A name or an address, perhaps with a port; nothing else is copied into an answer.
fn host(text: &str) -> Option<String> {
    let authority: Authority = text.parse().ok()?;
    let is_host = |letter: char| letter.is_ascii_alphanumeric() || "-_.:[]".contains(letter);
    let name = authority.host();
    let is_good = !name.is_empty() && text.chars().all(is_host);
    is_good.then(|| text.to_owned())
}

fn has_port(host: &str) -> bool {
    let behind_address = host.rsplit_once(']').map_or(host, |(_, rest)| rest);
    behind_address.contains(':')
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    const DIRECT: Arrival = Arrival {
        local: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8883),
        is_tls: true,
        by_proxy: false,
    };

    fn url(arrival: Arrival, target: &str, headers: &[(&str, &str)]) -> String {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        arrival.server_url(&parts)
    }

    #[test]
    fn without_a_proxy_the_address_is_the_one_that_was_asked() {
        let plain = Arrival {
            is_tls: false,
            ..DIRECT
        };
        for (arrival, target, headers, wanted) in [
            (
                DIRECT,
                "/a",
                &[("host", "api.example:8883")][..],
                "https://api.example:8883",
            ),
            (
                DIRECT,
                "https://api.example/a",
                &[("host", "other")],
                "https://api.example",
            ),
            (
                DIRECT,
                "/a",
                &[("host", "[::1]:8883")],
                "https://[::1]:8883",
            ),
            (
                plain,
                "/a",
                &[("host", "api.example:8080")],
                "http://api.example:8080",
            ),
            // HTTP/1.0, and what is no host.
            (DIRECT, "/a", &[], "https://127.0.0.1:8883"),
            (DIRECT, "/a", &[("host", "a<b>")], "https://127.0.0.1:8883"),
            (
                DIRECT,
                "/a",
                &[("host", "u@evil.example")],
                "https://127.0.0.1:8883",
            ),
            (
                DIRECT,
                "/a",
                &[("host", "evil.example/x")],
                "https://127.0.0.1:8883",
            ),
            // Nobody else is believed.
            (
                DIRECT,
                "/a",
                &[
                    ("host", "api.example"),
                    ("x-forwarded-host", "evil.example"),
                    ("x-forwarded-proto", "http"),
                    ("forwarded", "host=evil.example;proto=http"),
                ],
                "https://api.example",
            ),
        ] {
            assert_eq!(
                url(arrival, target, headers),
                wanted,
                "{target} {headers:?}"
            );
        }
    }

    #[test]
    fn a_trusted_proxy_is_believed() {
        let arrival = Arrival {
            is_tls: false,
            by_proxy: true,
            ..DIRECT
        };
        for (headers, wanted) in [
            (&[("host", "api.example")][..], "https://api.example"),
            (&[("host", "api.example:8883")], "https://api.example:8883"),
            (
                &[("host", "api.example"), ("x-forwarded-port", "8883")],
                "https://api.example:8883",
            ),
            (
                &[("host", "api.example"), ("x-forwarded-port", "443")],
                "https://api.example",
            ),
            (
                &[("host", "api.example:8883"), ("x-forwarded-port", "9")],
                "https://api.example:8883",
            ),
            (
                &[
                    ("host", "127.0.0.1:8080"),
                    ("x-forwarded-host", "api.example:8443"),
                    ("x-forwarded-proto", "https"),
                ],
                "https://api.example:8443",
            ),
            (
                &[
                    ("host", "127.0.0.1:8080"),
                    ("x-forwarded-host", "spoofed.example, api.example"),
                    ("x-forwarded-proto", "http"),
                ],
                "http://api.example",
            ),
            (
                &[
                    ("host", "127.0.0.1:8080"),
                    (
                        "forwarded",
                        "host=spoofed.example, for=192.0.2.1; Proto=https;host=\"[2001:db8::1]:8883\"",
                    ),
                ],
                "https://[2001:db8::1]:8883",
            ),
            (
                &[("host", "api.example"), ("x-forwarded-host", "a b")],
                "https://api.example",
            ),
        ] {
            assert_eq!(url(arrival, "/a", headers), wanted, "{headers:?}");
        }
    }
}
