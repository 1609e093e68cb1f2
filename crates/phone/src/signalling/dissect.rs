//! All our code that reads hostile bytes, without a socket: for the fuzzer.

use std::net::Ipv4Addr;

use rsipstack::sip::{HeadersExt, SipMessage};
use rsipstack::transaction::key::{TransactionKey, TransactionRole};

use super::head::MessageHead;
use super::{
    DialogSnapshot, SessionTimer, Transport, challenge, first_hop, headers, incoming, info,
    invite_outcome, masking, orphan, split_target,
};
use crate::ending::Cause;

/// Reads a message as if it came from the wire. False if the library refuses it.
pub fn message(bytes: &[u8]) -> bool {
    let Ok(message) = SipMessage::try_from(bytes) else {
        return false;
    };
    let text = masking::masked(&message.to_string());
    // What is masked has no secret left.
    assert_eq!(masking::masked(&text), text);
    match message {
        SipMessage::Request(request) => {
            let _ = TransactionKey::from_request(&request, TransactionRole::Server);
            let _ = request.to_header().map(|to| to.tag().is_ok());
            let _ = incoming::fault(&request);
            let _ = incoming::unknown_extensions(&request);
            let key = info::key(&request);
            assert!(key.is_none_or(|key| "0123456789*#ABCD".contains(key)));
            snapshot(DialogSnapshot::of_invite(&request, None).as_ref());
        }
        SipMessage::Response(mut response) => {
            let _ = TransactionKey::from_response(&response, TransactionRole::Client);
            for transport in Transport::ALL {
                let trunk = (Ipv4Addr::new(192, 0, 2, 1), 5060).into();
                first_hop::correct(&mut response, trunk, transport);
            }
            challenge::choose(&mut response);
            challenge::hide(&mut response);
            let q850 = headers::q850(&response).map(|q850| q850.cause);
            let _ = Cause::from_response(response.status_code.code(), q850);
            let _ = headers::retry_after(&response);
            let shortest = invite_outcome::shortest_session(&response);
            assert!(shortest.is_none() || response.status_code.code() == 422);
            let _ = invite_outcome::allows(&response, "UPDATE");
            let interval = headers::header_value(&response, "Session-Expires");
            let _ = interval.and_then(|value| SessionTimer::from_answer(&value));
            snapshot(DialogSnapshot::of_answer(&response, None).as_ref());
        }
    }
    true
}

/// The addresses to which a 3xx sends us, with the number of each that has one.
pub fn redirect(bytes: &[u8]) -> Vec<(String, Option<String>)> {
    let Ok(SipMessage::Response(response)) = SipMessage::try_from(bytes) else {
        return Vec::new();
    };
    let targets = invite_outcome::redirect_targets(&response).into_iter();
    targets
        .map(|target| {
            let number = split_target(&target).ok().map(|(number, _)| number);
            (target, number)
        })
        .collect()
}

/// Reads the head of a packet as the filter does, before the library has seen it. What is found stands in the packet.
pub fn head(bytes: &[u8]) {
    let Some(head) = MessageHead::read(bytes) else {
        return;
    };
    let found = [Some(head.call_id), head.receivers_tag(), head.senders_tag()];
    for found in found.into_iter().flatten() {
        assert!(!found.is_empty() && bytes.as_ptr_range().contains(&found.as_ptr()));
    }
}

/// Finds where a request about a leg would go.
pub fn snapshot(snapshot: Option<&DialogSnapshot>) {
    for transport in Transport::ALL {
        let _ = snapshot.and_then(|snapshot| snapshot.destination(transport));
    }
    if let Some(snapshot) = snapshot {
        let routes = snapshot
            .routes
            .iter()
            .flat_map(|route| orphan::split_routes(route));
        assert!(routes.into_iter().all(|route| !route.is_empty()));
    }
}
