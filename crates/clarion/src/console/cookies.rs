//! The cookies of the console: one that names a sign-in, one that remembers a language.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;

/// Browsers accept it over TLS alone, from this host alone, for the whole host.
const SIGN_IN: &str = "__Host-clarion";
/// Over plain HTTP on this machine, where no such name is accepted.
const PLAIN_SIGN_IN: &str = "clarion";

/// The name of the cookie that names a sign-in.
pub fn sign_in_name(is_secure: bool) -> &'static str {
    if is_secure { SIGN_IN } else { PLAIN_SIGN_IN }
}

/// What the browser is told to keep until it is closed.
pub fn sign_in(value: &str, is_secure: bool) -> String {
    let (name, secure) = (sign_in_name(is_secure), secure(is_secure));
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}")
}

/// What makes the browser forget it.
pub fn no_sign_in(is_secure: bool) -> String {
    format!("{}; Max-Age=0", sign_in("", is_secure))
}

/// What is kept for a year and is no secret.
pub fn remembered(name: &str, value: &str, is_secure: bool) -> String {
    let secure = secure(is_secure);
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000{secure}")
}

fn secure(is_secure: bool) -> &'static str {
    if is_secure { "; Secure" } else { "" }
}

/// The value of a cookie. If there are several of its name, there is none: one of them is not ours.
pub fn value(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(COOKIE);
    let lines = lines.iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';'));
    let mut values = pairs
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(known, _)| *known == name);
    let (_, value) = values.next()?;
    values.next().is_none().then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_read_unless_it_is_there_twice() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=1; clarion=x".parse().unwrap());
        headers.append(COOKIE, "b=2;a=3".parse().unwrap());
        assert_eq!(value(&headers, "clarion").as_deref(), Some("x"));
        assert_eq!(value(&headers, "b").as_deref(), Some("2"));
        assert_eq!(value(&headers, "a"), None);
        assert_eq!(value(&headers, "c"), None);
    }

    #[test]
    fn the_cookie_of_a_sign_in_is_for_this_host_alone() {
        let cookie = sign_in("x", true);
        let wanted = "__Host-clarion=x; Path=/; HttpOnly; SameSite=Strict; Secure";
        assert_eq!(cookie, wanted);
        assert!(!sign_in("x", false).contains("Secure"));
    }
}
