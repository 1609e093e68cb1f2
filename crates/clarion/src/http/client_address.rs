//! Who a request comes from, where proxies stand before the server.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// Returns the client's own address. Only proxies that the operator has named are trusted: then it is the last address in X-Forwarded-For
/// that is not itself such a proxy.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    let peer = peer.to_canonical();
    if !is_trusted(&peer) {
        return peer;
    }
    headers
        .get_all("x-forwarded-for")
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .rev()
        // Entries to the left of an unreadable one were not written by a trusted proxy.
        .map_while(address)
        .find(|address| !is_trusted(address))
        .unwrap_or(peer)
}

/// Reads one entry of X-Forwarded-For. Some proxies add the port.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let entry = std::str::from_utf8(entry).ok()?.trim();
    let with_port = || entry.parse::<SocketAddr>().map(|socket| socket.ip());
    let address = entry.parse::<IpAddr>().or_else(|_| with_port()).ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forwarded_address_is_believed_only_from_named_proxies() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut headers = HeaderMap::new();
        headers.append(
            "x-forwarded-for",
            "203.0.113.9, 198.51.100.7".parse().unwrap(),
        );
        headers.append("x-forwarded-for", "10.0.0.2".parse().unwrap());
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let from = |peer, headers: &HeaderMap| client_address(address(peer), headers, &trusted);
        assert_eq!(
            from("192.0.2.1", &headers),
            address("192.0.2.1"),
            "a stranger's word is not taken"
        );
        assert_eq!(
            from("10.0.0.1", &headers),
            address("198.51.100.7"),
            "the last hop that is no proxy of ours"
        );
        assert_eq!(from("::ffff:10.0.0.1", &headers), address("198.51.100.7"));
        assert_eq!(from("10.0.0.1", &HeaderMap::new()), address("10.0.0.1"));
    }

    #[test]
    fn rubbish_in_front_of_the_forwarded_address_hides_nothing() {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        for forwarded in [
            &b"rubbish, 198.51.100.7"[..],
            b"\xff\xfe, 198.51.100.7, 10.0.0.2",
            b",,198.51.100.7:4711",
        ] {
            let mut headers = HeaderMap::new();
            headers.append("x-forwarded-for", forwarded.try_into().unwrap());
            let from = client_address("10.0.0.1".parse().unwrap(), &headers, &trusted);
            assert_eq!(from, "198.51.100.7".parse::<IpAddr>().unwrap());
        }
    }
}
