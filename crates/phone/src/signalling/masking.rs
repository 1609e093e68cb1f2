//! Messages without their secrets: proofs of a password, and the keys of encrypted sound.

/// Who proves what, and how. Whatever else is among the parameters of a proof may help to find the password.
const SHOWN_OF_A_PROOF: [&str; 7] = [
    "username",
    "realm",
    "uri",
    "algorithm",
    "qop",
    "nc",
    "userhash",
];
const PROOFS: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "authentication-info",
    "proxy-authentication-info",
];
const MASK: &str = "***";

/// The text of a message with its secrets replaced by stars.
pub fn masked(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut within_proof = false;
    for line in text.split_inclusive('\n') {
        // The continuation of a header (RFC 3261 section 7.3.1).
        if within_proof && line.starts_with([' ', '\t']) {
            continue;
        }
        within_proof = false;
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        if is_one_of(name.trim(), &PROOFS) {
            within_proof = true;
            clean.push_str(name.trim());
            clean.push_str(": ");
            clean.push_str(&masked_proof(value.trim()));
            clean.push_str("\r\n");
        } else if let Some(shown) = before_the_key(line) {
            clean.push_str(shown);
            clean.push_str(MASK);
            clean.push_str("\r\n");
        } else {
            clean.push_str(line);
        }
    }
    clean
}

/// `Digest username="a", realm="b", nonce="***", response="***"`. What is not written like that is masked as a whole.
fn masked_proof(value: &str) -> String {
    digest_parameters(value).unwrap_or_else(|| MASK.to_owned())
}

fn digest_parameters(value: &str) -> Option<String> {
    let (scheme, parameters) = value.split_once(' ')?;
    let parameters = split_parameters(parameters)?;
    let written = parameters
        .iter()
        .filter(|parameter| !parameter.trim().is_empty());
    let shown: Vec<_> = written
        .map(|parameter| shown(parameter))
        .collect::<Option<_>>()?;
    let is_digest = scheme.eq_ignore_ascii_case("digest") && !shown.is_empty();
    is_digest.then(|| format!("Digest {}", shown.join(", ")))
}

/// A parameter as it is shown. `None` if it has no proper name.
fn shown(parameter: &str) -> Option<String> {
    let (name, value) = parameter.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || !is_word(name) {
        return None;
    }
    if is_one_of(name, &SHOWN_OF_A_PROOF) && is_one_value(value) {
        return Some(format!("{name}={value}"));
    }
    Some(format!("{name}=\"{MASK}\""))
}

/// At the commas outside of quotation marks. `None` if a quotation has no end.
fn split_parameters(text: &str) -> Option<Vec<&str>> {
    let (mut quoted, mut escaped) = (false, false);
    let parameters = text.split(|letter| {
        let is_mark = letter == '"' && !escaped;
        quoted ^= is_mark;
        escaped = letter == '\\' && quoted && !escaped;
        letter == ',' && !quoted
    });
    let parameters = parameters.collect();
    (!quoted).then_some(parameters)
}

/// A quotation or a word, and nothing behind it.
fn is_one_value(value: &str) -> bool {
    let quoted = value.strip_prefix('"');
    let quoted = quoted.and_then(|rest| rest.strip_suffix('"'));
    match quoted {
        Some(inside) => !inside.contains('"'),
        None => is_word(value),
    }
}

fn is_word(text: &str) -> bool {
    let of_a_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    text.bytes().all(of_a_word)
}

/// The part of a line of a session description that comes before a key, if it has one: `a=crypto` (RFC 4568), `a=key-mgmt` (RFC 4567)
/// and the old `k=` (RFC 4566 section 5.12).
fn before_the_key(line: &str) -> Option<&str> {
    let begins = |with: &str| {
        let start = line.get(..with.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    if begins("k=") {
        return line.get(..2);
    }
    if begins("a=key-mgmt") {
        return line.get(.."a=key-mgmt:".len());
    }
    if !begins("a=crypto") {
        return None;
    }
    // Lower-case letters have as many bytes as those of ASCII that they stand for.
    let key = line.to_ascii_lowercase().find("inline:");
    line.get(..key.map_or("a=crypto:".len(), |key| key + "inline:".len()))
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_proof_says_who_proves_and_not_how() {
        for (written, shown) in [
            (
                "Authorization: Digest username=\"u, v\", realm=\"r\", nonce=\"s3cret\", uri=\"sip:a\", response=\"s3cret\", cnonce=\"s3cret\", nc=00000001, qop=auth",
                "Authorization: Digest username=\"u, v\", realm=\"r\", nonce=\"***\", uri=\"sip:a\", response=\"***\", cnonce=\"***\", nc=00000001, qop=auth",
            ),
            (
                "proxy-authorization:Digest response=s3cret,username=\"u\"",
                "proxy-authorization: Digest response=\"***\", username=\"u\"",
            ),
            (
                "PROXY-AUTHORIZATION : Basic s3cret",
                "PROXY-AUTHORIZATION: ***",
            ),
            (
                "Authorization: Digest username=\"u, response=\"s3cret\"",
                "Authorization: ***",
            ),
            (
                "Authorization: Digest username=\"u\",\r\n response=\"s3cret\"",
                "Authorization: Digest username=\"u\"",
            ),
            (
                "Authorization: Digest username=\"u\";response=\"s3cret\"",
                "Authorization: Digest username=\"***\"",
            ),
            (
                "Authentication-Info: rspauth=\"s3cret\",cnonce=\"s3cret\",nc=1",
                "Authentication-Info: ***",
            ),
        ] {
            let text = format!("INVITE sip:a@b SIP/2.0\r\n{written}\r\nCSeq: 2 INVITE\r\n\r\n");
            let clean = masked(&text);
            let expected = format!("INVITE sip:a@b SIP/2.0\r\n{shown}\r\nCSeq: 2 INVITE\r\n\r\n");
            assert_eq!(clean, expected);
            assert!(!clean.contains("s3cret"));
        }
    }

    #[test]
    fn keys_of_encrypted_sound_are_not_shown() {
        for (written, shown) in [
            (
                "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:s3cret|2^20|1:4;inline:s3cret",
                "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:***",
            ),
            ("A=Crypto:1 X INLINE:s3cret", "A=Crypto:1 X INLINE:***"),
            ("a=crypto:s3cret", "a=crypto:***"),
            ("a=key-mgmt:mikey s3cret", "a=key-mgmt:***"),
            ("k=base64:s3cret", "k=***"),
            ("a=sendrecv", "a=sendrecv"),
        ] {
            let clean = masked(&format!("\r\nv=0\r\n{written}\r\na=ptime:20\r\n"));
            assert_eq!(clean, format!("\r\nv=0\r\n{shown}\r\na=ptime:20\r\n"));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_masked_without_harm(text in any::<String>(), before in any::<String>()) {
            let secrets = format!("{before}\nAuthorization: Digest {text}\r\na=crypto{text}\r\n");
            for text in [text, secrets] {
                let clean = masked(&text);
                prop_assert_eq!(masked(&clean), clean);
            }
        }

        #[test]
        fn the_response_is_never_shown(before in "[a-z\", =\\\\]{0,30}", space in "[ \t]{0,2}") {
            let text = format!("Authorization:{space}Digest {before},response=\"5e884898\"\r\n");
            prop_assert!(!masked(&text).contains("5e884898"), "{}", masked(&text));
        }
    }
}
