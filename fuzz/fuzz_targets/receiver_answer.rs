//! Any answer of a receiver: what it means is decided, and what is kept of a code is short. The first line is the status and `Retry-After`.

#![no_main]

use clarion::domain::callback::{DeliveryResult, judge, requested_wait};
use jiff::{SignedDuration, Timestamp};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
    let (status, asked) = head.split_once(' ').unwrap_or((head, ""));
    let status = status.parse().unwrap_or(200);
    let (result, reason) = judge(status, body);
    let is_success = (200..300).contains(&status);
    assert!(is_success || matches!(result, DeliveryResult::BadStatus));
    assert!(reason.is_none_or(|reason| reason.len() <= 50));
    for moment in [Timestamp::UNIX_EPOCH, Timestamp::MAX, Timestamp::MIN] {
        let wait = requested_wait(status, Some(asked), moment);
        assert!(wait.is_none() || matches!(status, 429 | 503));
        assert!(wait.is_none_or(|wait| wait < SignedDuration::MAX));
    }
});
