//! The meaning of a receiver's answer. Real receivers answer with ill-formed XML, JSON, a page of HTML or nothing at all.

use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};

use super::DeliveryResult;

const WORD: &str = "statuscode";
/// Longer than any known code.
const LONGEST_CODE: usize = 32;

/// Judges an answer. Success is 2xx, unless the body holds a readable `statuscode` that says otherwise. Also returns the reason of a
/// failure.
pub fn judge(status: u16, body: &str) -> (DeliveryResult, Option<String>) {
    if !(200..300).contains(&status) {
        return (
            DeliveryResult::BadStatus,
            Some(format!("HTTP status {status}")),
        );
    }
    match status_code(body) {
        Some(code) if !code.bytes().all(|digit| digit == b'0') => {
            (DeliveryResult::Refused, Some(format!("statuscode {code}")))
        }
        _ => (DeliveryResult::Delivered, None),
    }
}

/// Finds the code by text search instead of a parser, because it must find the code in a body that no parser reads, and must not find it in
/// prose. In JSON only the documented spelling counts, because web frameworks write `statusCode` there for the HTTP status.
fn status_code(body: &str) -> Option<&str> {
    let lower = body.to_ascii_lowercase();
    lower.match_indices(WORD).find_map(|(at, _)| {
        let (before, rest) = body.split_at(at);
        let (word, after) = rest.split_at(WORD.len());
        let value = if before.ends_with('<') || (before.ends_with(':') && before.contains('<')) {
            after.split_once('>')?.1.trim_start()
        } else {
            let rest = after.trim_start_matches(['"', '\'']).trim_start();
            rest.strip_prefix(':')
                .filter(|_| word == WORD)?
                .trim_start()
        };
        let value = value.strip_prefix("<![CDATA[").unwrap_or(value);
        let value = value.trim_start_matches(['"', '\'']).trim_start();
        let end = value
            .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'))
            .unwrap_or(value.len());
        Some(&value[..end.min(LONGEST_CODE)]).filter(|code| !matches!(*code, "" | "null"))
    })
}

/// Reads `Retry-After` of a 429 or 503: seconds, or an HTTP date (RFC 9110, 10.2.3).
pub fn requested_wait(status: u16, header: Option<&str>, now: Timestamp) -> Option<SignedDuration> {
    let text = header.filter(|_| matches!(status, 429 | 503))?.trim();
    if !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit()) {
        // A number that does not fit still means "very long".
        let seconds = text.parse::<u32>().unwrap_or(u32::MAX);
        return Some(SignedDuration::from_secs(seconds.into()));
    }
    let date = rfc2822::parse(text).ok()?;
    Some(date.timestamp().duration_since(now))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn anything_2xx_without_a_readable_code_is_a_success() {
        for body in [
            "",
            "ok",
            "<Response><statuscode>000000</statuscode></Response>",
            "<?xml version='1.0'?><Response><statusCode> 000000 </statusCode>",
            "<statuscode>000000<statuscode>",
            "<Response><statuscode/></Response>",
            "<Response><statuscode></statuscode></Response>",
            "{\"statuscode\":\"000000\"}",
            "{'statuscode' : 000000}",
            "{\"statusCode\":200,\"message\":\"ok\"}",
            "{\"statuscode\":0}",
            "{\"statuscode\":null}",
            "the statuscode is 111",
            "statuscode",
            "<statuscode",
            "<html>\u{fffd}\u{fffd}<a:b>",
        ] {
            assert_eq!(judge(200, body).0, DeliveryResult::Delivered, "{body}");
            assert_eq!(judge(204, body).0, DeliveryResult::Delivered, "{body}");
            for status in [100, 199, 300, 301, 404, 410, 429, 500, 503] {
                assert_eq!(judge(status, body).0, DeliveryResult::BadStatus, "{status}");
            }
        }
    }

    #[test]
    fn a_readable_code_other_than_success_is_a_refusal() {
        for body in [
            "<Response><statuscode>111</statuscode></Response>",
            "<Response><statuscode>111",
            "<r:statusCode type=\"x\">\n111\n</r:statusCode>",
            "<statuscode><![CDATA[111]]></statuscode>",
            "{\"statuscode\": \"111\"}",
            "{'statuscode':111}",
            "{\"statuscode\":\"\",\"data\":{\"statuscode\":111}}",
        ] {
            let wanted = (DeliveryResult::Refused, Some("statuscode 111".to_owned()));
            assert_eq!(judge(200, body), wanted, "{body}");
        }
    }

    proptest! {
        #[test]
        fn any_answer_has_a_verdict(status in 0_u16..1000, before in "\\PC{0,20}", spelling in "<?/?[sS]tatus[cC]ode", after in "\\PC{0,40}") {
            let (verdict, error) = judge(status, &format!("{before}{spelling}{after}"));
            prop_assert_eq!(verdict == DeliveryResult::Delivered, error.is_none());
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = "1994-11-06T08:49:07Z".parse().unwrap();
        let seconds =
            |status, text| requested_wait(status, Some(text), now).map(|wait| wait.as_secs());
        assert_eq!(seconds(429, " 120 "), Some(120));
        assert_eq!(seconds(503, "Sun, 06 Nov 1994 08:49:37 GMT"), Some(30));
        assert_eq!(seconds(503, "Sun, 06 Nov 1994 08:48:37 GMT"), Some(-30));
        assert_eq!(seconds(429, "99999999999999"), Some(u32::MAX.into()));
        for text in ["", "soon", "-5", "1.5", "１２"] {
            assert_eq!(seconds(429, text), None, "{text}");
        }
        assert_eq!(seconds(500, "120"), None);
        assert_eq!(requested_wait(429, None, now), None);
    }
}
