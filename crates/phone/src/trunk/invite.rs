//! The INVITE for a call over a trunk, and the addresses in it.

use std::net::SocketAddr;

use super::config::without_port;
use super::{NumberForm, Trunk};
use crate::signalling::{Invite, Transport};

impl Trunk {
    /// The INVITE for a call over this trunk.
    pub(crate) fn invite(
        &self,
        number: &str,
        caller: &str,
        call_id: &str,
        destination: SocketAddr,
        offer: String,
    ) -> Invite {
        let domain = self.config.domain_name();
        let identity = &self.config.identity;
        let from_user = identity.from_user.as_deref().unwrap_or(caller);
        let from_domain = identity.from_domain.clone().map(without_port);
        let mut headers = self.identity_headers(caller, &domain);
        if let Some(proxy) = &self.config.proxy {
            headers.push((
                "Route".to_owned(),
                format!("<sip:{proxy}{};lr>", self.transport_parameter()),
            ));
        }
        if let Some(interval) = self.config.session_interval {
            headers.push(("Supported".to_owned(), "timer".to_owned()));
            headers.push(("Session-Expires".to_owned(), interval.as_secs().to_string()));
        }
        Invite {
            target: self.target(number, destination),
            to: self.written(number, &domain),
            from: self.written(from_user, from_domain.as_ref().unwrap_or(&domain)),
            contact_user: user_part(self.contact_user(from_user)),
            display_name: identity.display_name.clone(),
            destination,
            call_id: call_id.to_owned(),
            credentials: self.config.credentials.clone(),
            headers,
            offer,
        }
    }

    /// The address of the request. Unlike To and From it may say a port and a transport.
    fn target(&self, number: &str, at: SocketAddr) -> String {
        let address = || self.request_address(&user_part(number), at);
        match self.config.identity.form {
            NumberForm::SipPhone if is_number(number) => format!("{};user=phone", address()),
            NumberForm::Tel { .. } if is_number(number) => self.written(number, ""),
            NumberForm::Sip | NumberForm::SipPhone | NumberForm::Tel { .. } => address(),
        }
    }

    /// The address of a number in the form that the trunk wants. What is no number has no `tel:`, and is none of a telephone.
    fn written(&self, number: &str, host: &str) -> String {
        match &self.config.identity.form {
            NumberForm::Tel { .. } if is_global(number) => format!("tel:{number}"),
            NumberForm::Tel { context } if is_number(number) => {
                let domain = || self.config.domain_name();
                let context = context.clone().unwrap_or_else(domain);
                format!("tel:{number};phone-context={context}")
            }
            NumberForm::SipPhone if is_number(number) => {
                format!("sip:{}@{host};user=phone", user_part(number))
            }
            NumberForm::Sip | NumberForm::SipPhone | NumberForm::Tel { .. } => {
                format!("sip:{}@{host}", user_part(number))
            }
        }
    }

    fn contact_user<'a>(&'a self, from_user: &'a str) -> &'a str {
        let account = self.config.credentials.as_ref();
        let account = account.map(|credentials| credentials.user.as_str());
        let configured = self.config.identity.contact_user.as_deref();
        configured.or(account).unwrap_or(from_user)
    }

    /// The calling number once more, and what else the trunk wants to know.
    fn identity_headers(&self, caller: &str, domain: &str) -> Vec<(String, String)> {
        let identity = &self.config.identity;
        let address = |number: &str| format!("<{}>", self.written(number, domain));
        let mut headers = Vec::new();
        let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
        // Where no number is shown, there is nothing to assert.
        let is_shown = is_number(caller);
        if identity.asserted && is_shown {
            add("P-Asserted-Identity", address(caller));
        }
        if identity.preferred && is_shown {
            add("P-Preferred-Identity", address(caller));
        }
        if let Some(privacy) = &identity.privacy {
            add("Privacy", privacy.clone());
        }
        if let Some(diverted) = &identity.diversion {
            add("Diversion", address(diverted));
        }
        headers.extend(self.config.headers.iter().cloned());
        headers
    }

    fn transport_parameter(&self) -> String {
        match self.signalling.transport() {
            Transport::Udp => String::new(),
            stream => format!(";transport={stream}"),
        }
    }

    /// The address of a request that is sent to `at`.
    pub(super) fn request_address(&self, user: &str, at: SocketAddr) -> String {
        let sign = if user.is_empty() { "" } else { "@" };
        let host = match &self.config.domain {
            Some(domain) => domain.clone(),
            None => self.host_at(at).to_string(),
        };
        format!("sip:{user}{sign}{host}{}", self.transport_parameter())
    }
}

/// A number of the whole world (RFC 3966 section 3).
fn is_global(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// A global number, or one that is dialled somewhere.
fn is_number(text: &str) -> bool {
    let dialled = |byte: u8| byte.is_ascii_digit() || byte == b'*' || byte == b'#';
    is_global(text) || (!text.is_empty() && text.bytes().all(dialled))
}

/// The user part of an address, in which characters with a meaning are escaped.
fn user_part(text: &str) -> String {
    let mut user = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'+' | b'*' | b'-' | b'_' | b'.' => {
                user.push(byte.into());
            }
            _ => user.push_str(&format!("%{byte:02X}")),
        }
    }
    user
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_have_a_tel_address() {
        assert!(is_global("+8613800138000"));
        for local in ["13800138000", "110", "*21#", "0"] {
            assert!(is_number(local) && !is_global(local), "{local}");
        }
        for other in ["", "+", "+86*1", "anonymous", "1;x=y", "1 2", "1>"] {
            assert!(!is_number(other), "{other}");
        }
    }

    #[test]
    fn a_number_cannot_break_out_of_its_address() {
        assert_eq!(user_part("+8613800138000"), "+8613800138000");
        assert_eq!(user_part("12#34"), "12%2334");
        assert_eq!(user_part("1@evil>\r\nX: y"), "1%40evil%3E%0D%0AX%3A%20y");
    }
}
