//! The form of our requests on the wire, where the library writes another one than the RFCs want.

use rsipstack::sip::{Header, HeadersExt, Method, Param, Request, ToTypedHeader, Uri};

use super::challenge;
use crate::quoted::split_outside_quotes;

/// Corrects a request just before it leaves. Every repetition passes here too.
pub fn correct(request: &mut Request) {
    challenge::write_properly(request);
    match request.method {
        Method::Register => correct_registration(request),
        Method::Ack => restore_via(request),
        _ => {}
    }
}

/// The address as it may stand in To and From: without port and transport (RFC 3261 section 19.1.1).
pub fn address_alone(mut uri: Uri) -> Uri {
    uri.host_with_port.port = None;
    uri.params
        .retain(|parameter| !matches!(parameter, Param::Transport(_)));
    uri
}

/// The library registers the address of the request, port and transport included, and offers `outbound` without an instance id, which
/// RFC 5626 section 4.2 wants with it.
fn correct_registration(request: &mut Request) {
    for header in request.headers.iter_mut() {
        match header {
            Header::To(to) => {
                if let Ok(mut typed) = to.typed() {
                    typed.uri = address_alone(typed.uri);
                    *to = typed.into();
                }
            }
            Header::From(from) => {
                if let Ok(mut typed) = from.typed() {
                    typed.uri = address_alone(typed.uri);
                    *from = typed.into();
                }
            }
            Header::Supported(supported) => *supported = "path".into(),
            _ => {}
        }
    }
}

/// The library writes the Via of the response, in which the peer has noted where our INVITE came from. The ACK of a refusal has the Via of
/// the INVITE, and that alone (RFC 3261 section 17.1.1.3).
fn restore_via(request: &mut Request) {
    let Ok(via) = request.via_header().map(|via| own_via(via.value())) else {
        return;
    };
    request
        .headers
        .retain(|header| !matches!(header, Header::Via(_)));
    request.headers.push_front(Header::Via(via.into()));
}

/// The first Via of a response as we have sent it.
fn own_via(received: &str) -> String {
    let first = split_outside_quotes(received, ',').next();
    let parameters = first.unwrap_or_default().split(';').map(str::trim);
    let parameters = parameters.filter(|parameter| !parameter.starts_with("received="));
    let parameters = parameters.map(|parameter| match parameter.split_once('=') {
        Some(("rport", _)) => "rport",
        _ => parameter,
    });
    parameters.collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_has_noted_in_our_via_is_taken_out_again() {
        let ours = "SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKx;rport";
        for received in [
            ours,
            "SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKx;rport=1024;received=198.51.100.7",
            "SIP/2.0/UDP 192.0.2.1:5060;received=198.51.100.7 ;branch=z9hG4bKx; rport=1024, SIP/2.0/UDP other",
        ] {
            assert_eq!(own_via(received), ours, "{received}");
        }
        assert_eq!(own_via(""), "");
    }
}
