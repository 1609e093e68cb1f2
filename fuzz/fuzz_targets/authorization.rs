//! Any Authorization header is refused, or yields the timestamp that was in it.

#![no_main]

use std::sync::LazyLock;

use clarion::api::auth;
use clarion::clock::Clock;
use clarion::domain::account::AccountSid;
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;

static SID: LazyLock<AccountSid> =
    LazyLock::new(|| "0123456789abcdef0123456789abcdef".parse().unwrap());
/// A zone with a gap and an overlap every year.
static CLOCK: LazyLock<Clock> =
    LazyLock::new(|| Clock::new(TimeZone::get("America/Sao_Paulo").unwrap()));

fuzz_target!(|header: &[u8]| {
    if let Ok(stamp) = auth::stamp(header, &SID, &CLOCK) {
        assert!(stamp.len() == 14 && stamp.bytes().all(|byte| byte.is_ascii_digit()));
    }
});
