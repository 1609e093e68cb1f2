//! Translates challenges (RFC 7616, RFC 8760) into what the library understands, and its proofs into what the RFC wants. The library
//! writes SHA-256 as `SHA256` and `qop` in quotes, gives up on a choice like `qop="auth,auth-int"` and on blanks around `=`, and takes the
//! first of several challenges even where it cannot answer that one.

use rsipstack::sip::{Header, Request, Response};

use crate::quoted::split_outside_quotes;

/// What the library calls SHA-256.
const SHA_256: &str = "SHA256";

/// Keeps the one challenge that we can answer best, and none where we can answer none.
pub fn choose(response: &mut Response) {
    if !matches!(response.status_code.code(), 401 | 407) {
        return;
    }
    keep_best(
        response,
        |header| matches!(header, Header::WwwAuthenticate(_)),
        |value| Header::WwwAuthenticate(value.into()),
    );
    keep_best(
        response,
        |header| matches!(header, Header::ProxyAuthenticate(_)),
        |value| Header::ProxyAuthenticate(value.into()),
    );
}

fn keep_best(
    response: &mut Response,
    is_challenge: fn(&Header) -> bool,
    challenge: fn(String) -> Header,
) {
    let challenges = response
        .headers
        .iter()
        .filter(|header| is_challenge(header));
    let best = challenges
        .filter_map(|header| understood(header.value()))
        .max_by_key(|value| value.contains(SHA_256));
    response.headers.retain(|header| !is_challenge(header));
    response
        .headers
        .extend(best.map(challenge).into_iter().collect());
}

/// The challenge as the library understands it; `None` if we cannot answer it.
fn understood(challenge: &str) -> Option<String> {
    let (scheme, rest) = challenge.trim().split_once(char::is_whitespace)?;
    if !scheme.eq_ignore_ascii_case("digest") {
        return None;
    }
    let (mut realm, mut nonce) = (false, false);
    let mut fields = Vec::new();
    for field in split_outside_quotes(rest, ',') {
        let (name, value) = field.split_once('=')?;
        let bare = unquoted(value.trim());
        let name = name.trim().to_ascii_lowercase();
        realm |= name == "realm";
        nonce |= name == "nonce";
        fields.push(match name.as_str() {
            "algorithm" if bare.eq_ignore_ascii_case("md5") => "algorithm=MD5".to_owned(),
            "algorithm" if bare.eq_ignore_ascii_case("sha-256") => format!("algorithm={SHA_256}"),
            "algorithm" => return None,
            // The library cannot prove a whole body.
            "qop"
                if !bare
                    .split(',')
                    .any(|choice| choice.trim().eq_ignore_ascii_case("auth")) =>
            {
                return None;
            }
            "qop" => "qop=\"auth\"".to_owned(),
            _ => format!("{name}=\"{bare}\""),
        });
    }
    (realm && nonce).then(|| format!("Digest {}", fields.join(", ")))
}

/// The text within quotes, or all of it where there are none. Escapes stay: the library knows none.
fn unquoted(value: &str) -> &str {
    value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(value)
}

/// Keeps the challenge from the library, which would answer it at once and under a branch that nobody has recorded. It finds challenges by
/// the type of their headers, so they lose it.
pub fn hide(response: &mut Response) {
    for header in response.headers.iter_mut() {
        if let Header::WwwAuthenticate(_) | Header::ProxyAuthenticate(_) = header {
            *header = Header::Other(header.name().to_owned(), header.value().to_owned());
        }
    }
}

/// The response with the challenge that was hidden in it, if there was one.
pub fn reveal(mut response: Response) -> Option<Response> {
    let mut found = false;
    for header in response.headers.iter_mut() {
        let Header::Other(name, value) = header else {
            continue;
        };
        let value = value.clone();
        *header = if name.eq_ignore_ascii_case("WWW-Authenticate") {
            Header::WwwAuthenticate(value.into())
        } else if name.eq_ignore_ascii_case("Proxy-Authenticate") {
            Header::ProxyAuthenticate(value.into())
        } else {
            continue;
        };
        found = true;
    }
    found.then_some(response)
}

/// A proof names its algorithm as the RFC does, and has no quotes around `qop` (RFC 7616 section 3.4).
pub fn write_properly(request: &mut Request) {
    let right = |value: &str| -> String {
        let fields = split_outside_quotes(value, ',').map(|field| match field {
            "algorithm=SHA256" => "algorithm=SHA-256",
            "qop=\"auth\"" => "qop=auth",
            _ => field,
        });
        fields.collect::<Vec<_>>().join(", ")
    };
    for header in request.headers.iter_mut() {
        match header {
            Header::Authorization(value) => *value = right(value.value()).into(),
            Header::ProxyAuthorization(value) => *value = right(value.value()).into(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_translated_for_the_library() {
        for (challenge, translated) in [
            (
                "Digest realm=\"a, b\", nonce=\"x\\\",\", qop=\"auth-int, auth\", algorithm=\"SHA-256\"",
                Some("Digest realm=\"a, b\", nonce=\"x\\\",\", qop=\"auth\", algorithm=SHA256"),
            ),
            (
                "digest  realm=\"a\",nonce=\"n\",algorithm=md5",
                Some("Digest realm=\"a\", nonce=\"n\", algorithm=MD5"),
            ),
            (
                "DIGEST realm = \"a\" ,nonce=n, Algorithm = \"md5\",QOP=auth,opaque=",
                Some("Digest realm=\"a\", nonce=\"n\", algorithm=MD5, qop=\"auth\", opaque=\"\""),
            ),
            ("Digest realm=\"a\", nonce=\"n\", qop=\"auth-int\"", None),
            (
                "Digest realm=\"a\", nonce=\"n\", algorithm=SHA-512-256",
                None,
            ),
            ("Basic realm=\"a\"", None),
            ("Digest nonsense", None),
            ("Digest realm=\"no nonce\"", None),
            ("", None),
        ] {
            assert_eq!(understood(challenge).as_deref(), translated, "{challenge}");
        }
    }

    #[test]
    fn a_proof_is_written_as_the_rfc_wants_it() {
        let proof = "Digest username=\"a, qop=\", response=\"0\", algorithm=SHA256, qop=\"auth\", nc=00000001";
        let mut request = Request {
            method: rsipstack::sip::Method::Invite,
            uri: rsipstack::sip::Uri::default(),
            version: rsipstack::sip::Version::V2,
            headers: vec![Header::ProxyAuthorization(proof.into())].into(),
            body: Vec::new(),
        };
        write_properly(&mut request);
        let written = request.headers.iter().next().unwrap().value().to_owned();
        assert_eq!(
            written,
            "Digest username=\"a, qop=\", response=\"0\", algorithm=SHA-256, qop=auth, nc=00000001"
        );
    }
}
