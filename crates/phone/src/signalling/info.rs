//! Keys in SIP INFO: `application/dtmf-relay` and `application/dtmf`, as gateways send them where telephone-event was not agreed on.

use rsipstack::sip::Request;

use super::headers::header_value;

/// More than any description of a key has.
const LONGEST: usize = 256;

/// The key that a request tells of, if it does.
pub(super) fn key(request: &Request) -> Option<char> {
    let kind = header_value(request, "Content-Type").or_else(|| header_value(request, "c"))?;
    let kind = kind.split(';').next()?.trim().to_ascii_lowercase();
    let body = request.body.get(..LONGEST).unwrap_or(&request.body);
    let body = std::str::from_utf8(body).ok()?;
    match kind.as_str() {
        "application/dtmf-relay" => signal(body).and_then(named),
        "application/dtmf" => signal(body).or(Some(body)).and_then(named),
        _ => None,
    }
}

/// The value of the line `Signal=5`.
fn signal(body: &str) -> Option<&str> {
    body.lines().find_map(|line| {
        let (name, value) = line.split_once(['=', ':'])?;
        name.trim().eq_ignore_ascii_case("signal").then_some(value)
    })
}

/// A key by itself, or by the number of its event.
fn named(text: &str) -> Option<char> {
    let text = text.trim().trim_matches('"');
    let mut letters = text.chars();
    match (letters.next()?.to_ascii_uppercase(), letters.next()) {
        (key @ ('0'..='9' | '*' | '#' | 'A'..='D'), None) => Some(key),
        ('1', Some(_)) => match text {
            "10" => Some('*'),
            "11" => Some('#'),
            "12" => Some('A'),
            "13" => Some('B'),
            "14" => Some('C'),
            "15" => Some('D'),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: &str, body: &str) -> Option<char> {
        let text = format!(
            "INFO sip:a@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK1\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        key(&Request::try_from(text.as_bytes()).unwrap())
    }

    #[test]
    fn keys_are_read_as_gateways_write_them() {
        let relay = "application/dtmf-relay";
        assert_eq!(told(relay, "Signal=5\r\nDuration=160\r\n"), Some('5'));
        assert_eq!(told(relay, "Signal= #\r\nDuration= 250"), Some('#'));
        assert_eq!(told(relay, "signal=10\n"), Some('*'));
        assert_eq!(
            told("Application/DTMF-Relay; x=y", "Signal=a\r\n"),
            Some('A')
        );
        assert_eq!(told("application/dtmf", "7"), Some('7'));
        assert_eq!(told("application/dtmf", "Signal=7\r\n"), Some('7'));
        for (kind, body) in [
            (relay, "Duration=160\r\n"),
            (relay, "Signal=55\r\n"),
            (relay, ""),
            ("application/dtmf", "1234"),
            ("text/plain", "5"),
            ("application/media_control+xml", "<x/>"),
        ] {
            assert_eq!(told(kind, body), None, "{kind} {body:?}");
        }
        let long = format!("{}Signal=5\r\n", "x".repeat(LONGEST));
        assert_eq!(told(relay, &long), None);
    }
}
