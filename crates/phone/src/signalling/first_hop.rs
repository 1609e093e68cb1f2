//! The first hop of the requests that follow an INVITE, as the peer names it by Record-Route. The library goes there by whatever transport it
//! names, and to whatever host. So a hop that would leave the trunk's transport, or lead to where the trunk is not, is corrected before the
//! library sees it. A hop that is only a name is judged when it has been resolved (`udp_filter`, `resolve`).

use std::net::{IpAddr, SocketAddr};

use rsipstack::sip::uri::ParamsExt;
use rsipstack::sip::{Header, HeadersExt, Param, Response, Scheme, Uri};

use super::address_kind::may_lead_to;
use super::orphan::split_routes;
use super::{Transport, uri};

/// Corrects the first hop of whoever sends a response to an INVITE of ours to this trunk.
pub(super) fn correct(response: &mut Response, trunk: SocketAddr, transport: Transport) {
    let is_route = |header: &Header| matches!(header, Header::RecordRoute(_));
    if !response.headers.iter().any(is_route) {
        return;
    }
    let contacts = response.typed_contact_headers().unwrap_or_default();
    let is_secure =
        |contact: &rsipstack::sip::typed::Contact| contact.uri.scheme == Some(Scheme::Sips);
    let secure_target = contacts.first().is_some_and(is_secure);
    let routes = response
        .headers
        .iter_mut()
        .filter_map(|header| match header {
            Header::RecordRoute(route) => Some(route),
            _ => None,
        });
    let Some(header) = routes.last() else {
        return;
    };
    let mut routes = split_routes(header.value());
    let corrected = routes
        .last()
        .and_then(|route| corrected(route, trunk, transport, secure_target));
    if let (Some(corrected), Some(first_hop)) = (corrected, routes.last_mut()) {
        *first_hop = corrected;
        *header = routes.join(", ").into();
    }
}

/// `None` where it can stay as it is.
fn corrected(route: &str, trunk: SocketAddr, transport: Transport, secure: bool) -> Option<String> {
    let inner = route
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'));
    let (address, parameters) = inner.unwrap_or((route, ""));
    let Ok(mut hop) = uri(address) else {
        return Some(format!("<sip:{trunk};transport={transport};lr>"));
    };
    let ours = transport.in_library();
    let is_elsewhere = IpAddr::try_from(hop.host_with_port.host.clone())
        .is_ok_and(|host| !may_lead_to(host, trunk.ip()));
    let implied = secure || hop.scheme == Some(Scheme::Sips);
    let is_other = match hop.transport() {
        Some(named) => *named != ours,
        None => implied && transport != Transport::Tls,
    };
    if !is_elsewhere && !is_other {
        return None;
    }
    if is_elsewhere {
        hop.host_with_port = trunk.into();
    }
    set_transport(&mut hop, ours);
    Some(format!("<{hop}>{parameters}"))
}

fn set_transport(hop: &mut Uri, transport: rsipstack::sip::Transport) {
    hop.params
        .retain(|parameter| !matches!(parameter, Param::Transport(_)));
    hop.params.insert(0, Param::Transport(transport));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rsipstack::sip::SipMessage;

    fn first_hop(routes: &str, contact: &str, transport: Transport) -> String {
        let text = format!(
            "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP h;branch=z9hG4bKx\r\nFrom: <sip:a>;tag=a\r\nTo: <sip:b>;tag=b\r\nCall-ID: x\r\nCSeq: 1 INVITE\r\n{routes}Contact: <{contact}>\r\nContent-Length: 0\r\n\r\n"
        );
        let Ok(SipMessage::Response(mut response)) = SipMessage::try_from(text.as_str()) else {
            panic!("not a response: {text}");
        };
        correct(
            &mut response,
            "203.0.113.5:5080".parse().unwrap(),
            transport,
        );
        let routes = response.record_route_headers();
        routes
            .last()
            .map(|route| route.value().to_owned())
            .unwrap_or_default()
    }

    #[test]
    fn a_first_hop_keeps_the_transport_of_the_trunk_and_leads_to_no_service_of_ours() {
        for (route, contact, transport, expected) in [
            (
                "<sip:198.51.100.1;lr>",
                "sip:b@h",
                Transport::Udp,
                "<sip:198.51.100.1;lr>",
            ),
            (
                "<sip:edge.example;transport=tls;lr>",
                "sip:b@h",
                Transport::Tls,
                "<sip:edge.example;transport=tls;lr>",
            ),
            // Only the first hop is ours to take: the others are the business of those on the way.
            (
                "<sip:127.0.0.1;transport=tcp;lr>, <sip:edge.example;lr>",
                "sip:b@h",
                Transport::Udp,
                "<sip:127.0.0.1;transport=tcp;lr>, <sip:edge.example;lr>",
            ),
            (
                "<sip:edge.example;transport=tcp;lr>",
                "sip:b@h",
                Transport::Udp,
                "<sip:edge.example;transport=UDP;lr>",
            ),
            (
                "<sip:edge.example;transport=udp;lr>;x=y",
                "sip:b@h",
                Transport::Tls,
                "<sip:edge.example;transport=TLS;lr>;x=y",
            ),
            (
                "<sip:edge.example;lr>",
                "sips:b@h",
                Transport::Udp,
                "<sip:edge.example;transport=UDP;lr>",
            ),
            (
                "<sip:a;lr>, <sip:127.0.0.1:6379;lr>",
                "sip:b@h",
                Transport::Tcp,
                "<sip:a;lr>, <sip:203.0.113.5:5080;transport=TCP;lr>",
            ),
            (
                "<sip:169.254.169.254;lr>",
                "sip:b@h",
                Transport::Udp,
                "<sip:203.0.113.5:5080;transport=UDP;lr>",
            ),
            (
                "<sip:h:99999>",
                "sip:b@h",
                Transport::Udp,
                "<sip:203.0.113.5:5080;transport=udp;lr>",
            ),
        ] {
            let routes = format!("Record-Route: {route}\r\n");
            assert_eq!(first_hop(&routes, contact, transport), expected, "{route}");
        }
        assert_eq!(first_hop("", "sip:b@h", Transport::Udp), "");
    }
}
