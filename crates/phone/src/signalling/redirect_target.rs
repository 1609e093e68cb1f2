//! The address to which a 3xx sends us, taken apart. Whether a call may go there, the trunk decides.

use super::{Host, unescaped_text};

/// The number and the host of `sip:number@host:port;parameters`. A `tel:` address has no host.
pub(crate) fn split_target(target: &str) -> Result<(String, Option<Host>), String> {
    // It is going to stand in the first line of a request.
    if target.contains(|letter: char| letter.is_control() || letter.is_whitespace()) {
        return Err("it has blanks or control characters".to_owned());
    }
    let (scheme, rest) = target.split_once(':').unwrap_or_default();
    let scheme = scheme.to_ascii_lowercase();
    let end = |text: &str, ends: &[char]| text.find(ends).unwrap_or(text.len());
    match scheme.as_str() {
        "tel" => Ok((rest[..end(rest, &[';'])].to_owned(), None)),
        "sip" | "sips" => {
            let (user, host) = rest.rsplit_once('@').ok_or("it names no number")?;
            let host = &host[..end(host, &[';', '?', '>'])];
            // Neither a password nor parameters belong to the number.
            let user = &user[..end(user, &[';', ':'])];
            Ok((unescaped_text(user), Some(host.parse()?)))
        }
        _ => Err("it is no address of a telephone".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_host_of_a_target_are_found() {
        for (target, number, host) in [
            (
                "sip:100@192.0.2.1:5070;transport=tcp",
                "100",
                Some("192.0.2.1:5070"),
            ),
            ("sips:+861@b.example?x=y", "+861", Some("b.example")),
            (
                "SIP:%2B861;x=y:pw@[2001:db8::1]:5060",
                "+861",
                Some("[2001:db8::1]:5060"),
            ),
            ("sip:*21%23@h", "*21#", Some("h")),
            ("tel:+123;phone-context=x", "+123", None),
        ] {
            let (found, at) = split_target(target).unwrap();
            let at = at.map(|host| host.to_string());
            assert_eq!((found.as_str(), at.as_deref()), (number, host), "{target}");
        }
        for target in [
            "",
            "sip:host.example",
            "mailto:a@b",
            "sip:1@a b",
            "tel:+861;p\r\0=x",
            "sip:1@h;x=\nVia: y",
        ] {
            assert!(split_target(target).is_err(), "{target}");
        }
    }
}
