//! Addresses of this console, and no others, that somebody is led to.

use url::form_urlencoded;

/// Addresses that lead somewhere after the sign-in are no longer than this.
const LONGEST_ADDRESS: usize = 2000;

/// Where to sign in, and where to go on from there.
pub fn sign_in_address(next: &str) -> String {
    if next == "/" || !is_local(next) {
        return "/sign-in".to_owned();
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    format!("/sign-in?{}", query.append_pair("next", next).finish())
}

/// Whether an address stays on this server: a browser takes `//host` and `/\host` for another one.
pub fn is_local(address: &str) -> bool {
    let mut letters = address.chars();
    letters.next() == Some('/')
        && !matches!(letters.next(), Some('/' | '\\'))
        && address.len() <= LONGEST_ADDRESS
        && !address.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_to_another_server() {
        for good in ["/", "/calls", "/calls?account=a&before=b"] {
            assert!(is_local(good), "{good}");
        }
        for bad in [
            "",
            "calls",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\r\nSet-Cookie: x",
            "/\t/evil.example",
        ] {
            assert!(!is_local(bad), "{bad:?}");
        }
        assert!(!is_local(&format!("/{}", "x".repeat(LONGEST_ADDRESS))));
    }
}
