//! Which messages are wanted: those of a call, of a number or of a trunk.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::KeptMessage;
use crate::domain::call::CallSid;

/// A number that is a part of another one has at least so many digits.
const FEWEST_DIGITS: usize = 7;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TraceFilter {
    CallSid(String),
    /// In any form: trunks want numbers with and without a country code.
    Number(String),
    Trunk(String),
}

impl TraceFilter {
    /// The messages that are wanted, in order. `addresses` are those of the trunk, where one is asked for.
    pub fn select(
        &self,
        messages: Vec<Arc<KeptMessage>>,
        addresses: &[SocketAddr],
    ) -> Vec<Arc<KeptMessage>> {
        let mut messages = messages;
        match self {
            Self::CallSid(sid) => messages.retain(|message| is_of_call(&message.call_id, sid)),
            Self::Number(number) => {
                let digits = digits(number);
                messages.retain(|message| names(message, &digits));
            }
            Self::Trunk(_) => {
                let is_there = |message: &KeptMessage| {
                    let peer = message.peer;
                    peer.is_some_and(|peer| addresses.contains(&peer))
                };
                // What the trunk redirects to, and what comes from another port of its, belongs to a try that began there.
                let begun: HashSet<String> = messages
                    .iter()
                    .filter(|message| is_there(message))
                    .map(|message| of_try(&message.call_id).to_owned())
                    .collect();
                messages.retain(|message| begun.contains(of_try(&message.call_id)));
            }
        }
        messages
    }
}

/// Our Call-IDs are `callSid-try@clarion`, and `1-callSid-try@clarion` where the first INVITE of a try was refused (`phone`'s `next_invite`).
fn is_of_call(call_id: &str, sid: &str) -> bool {
    call_id.split(['-', '@']).any(|part| part == sid)
}

/// What the Call-IDs of a try have in common: `callSid-try@clarion`. Other Call-IDs stand for themselves.
fn of_try(call_id: &str) -> &str {
    match call_id.split_once('-') {
        Some((count, rest))
            if count.bytes().all(|byte| byte.is_ascii_digit())
                && rest
                    .split('-')
                    .next()
                    .is_some_and(|sid| sid.parse::<CallSid>().is_ok()) =>
        {
            rest
        }
        _ => call_id,
    }
}

/// Whether the message is about this number: in its first line, From or To.
fn names(message: &KeptMessage, digits: &str) -> bool {
    let from = message.header("From").or_else(|| message.header("f"));
    let to = message.header("To").or_else(|| message.header("t"));
    let first = Some(message.first_line());
    let numbers = [first, from, to]
        .into_iter()
        .flatten()
        .filter_map(number_in);
    numbers
        .into_iter()
        .any(|number| is_the_same(&number, digits))
}

/// The digits between `sip:`, `sips:` or `tel:` and the host.
fn number_in(text: &str) -> Option<String> {
    let mut schemes = ["sip:", "sips:", "tel:"].into_iter();
    let (_, after) = schemes.find_map(|scheme| text.split_once(scheme))?;
    let number = after.split(['@', ';', '>', ' ']).next()?;
    Some(digits(number)).filter(|digits| !digits.is_empty())
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

/// One is the other, or its end.
fn is_the_same(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() {
        (one, other)
    } else {
        (other, one)
    };
    one == other || (short.len() >= FEWEST_DIGITS && long.ends_with(short))
}

#[cfg(test)]
mod tests {
    use super::super::message;
    use super::*;

    const SID: &str = "26111502351000001000000000000000";

    fn selected(filter: &TraceFilter, messages: &[KeptMessage], trunk: &str) -> Vec<usize> {
        let all: Vec<_> = messages.iter().cloned().map(Arc::new).collect();
        let addresses = [trunk.parse().unwrap()];
        let chosen = filter.select(all.clone(), &addresses);
        let place = |one: &Arc<KeptMessage>| all.iter().position(|other| Arc::ptr_eq(one, other));
        chosen.iter().map(|one| place(one).unwrap()).collect()
    }

    #[test]
    fn a_call_has_all_its_tries_and_redirects() {
        let other = SID.replace("26111", "26112");
        let ids = [
            format!("{SID}-1@clarion"),
            format!("1-{SID}-1@clarion"),
            format!("{SID}-2@clarion"),
            format!("{other}-1@clarion"),
            "x@y".to_owned(),
        ];
        let messages = ids.map(|id| message(&id, "192.0.2.7:5060", ""));
        let filter = TraceFilter::CallSid(SID.to_owned());
        assert_eq!(selected(&filter, &messages, "192.0.2.9:1"), [0, 1, 2]);
    }

    #[test]
    fn a_trunk_has_what_passes_its_addresses_and_what_follows_from_it() {
        let ours = "192.0.2.7:5060";
        let messages = [
            message("options", ours, ""),
            message(&format!("{SID}-1@clarion"), ours, ""),
            message(&format!("1-{SID}-1@clarion"), "192.0.2.8:5060", ""),
            message(&format!("{SID}-2@clarion"), "192.0.2.9:5060", ""),
            message("else", "192.0.2.9:5060", ""),
        ];
        let filter = TraceFilter::Trunk("a".to_owned());
        assert_eq!(selected(&filter, &messages, ours), [0, 1, 2]);
    }

    #[test]
    fn a_number_is_found_in_any_form() {
        let about = |uri: &str, to: &str| {
            let text = format!(
                "INVITE {uri} SIP/2.0\r\nTo: {to}\r\nFrom: <sip:4001@us>\r\n\r\nTo: <sip:13812345678@body>"
            );
            message("x", "192.0.2.7:5060", &text)
        };
        let messages = [
            about("sip:013800000001@t", "<sip:1@t>"),
            about("sip:1@t", "\"A\" <sip:+8613800000001@t;user=phone>;tag=1"),
            about("tel:+86-138-0000-0001", "<tel:1>"),
            about("sip:13900000001@t", "<sip:13900000001@t>"),
        ];
        let find = |number: &str| {
            let filter = TraceFilter::Number(number.to_owned());
            selected(&filter, &messages, "192.0.2.9:1")
        };
        assert_eq!(find("13800000001"), [0, 1, 2]);
        assert_eq!(find("+86 138 0000 0001"), [1, 2]);
        assert_eq!(find("13900000001"), [3]);
        assert_eq!(find("4001"), [0, 1, 2, 3], "the caller");
        assert_eq!(find("0001"), [] as [usize; 0]);
        assert_eq!(find("13812345678"), [] as [usize; 0], "not in the body");
    }
}
