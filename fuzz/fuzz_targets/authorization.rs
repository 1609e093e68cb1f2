//! Any Authorization header is refused, or yields the timestamp that was in it.

#![no_main]

use std::sync::LazyLock;

use clarion::api::auth;
use clarion::clock::Clock;
use clarion::domain::account::AccountSid;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;

static SID: LazyLock<AccountSid> =
    LazyLock::new(|| "0123456789abcdef0123456789abcdef".parse().unwrap());
/// A zone that has had a gap and an overlap every year, at a moment for which the seeds stay valid.
static CLOCK: LazyLock<Clock> = LazyLock::new(|| {
    let clock = Clock::new(TimeZone::get("America/Sao_Paulo").unwrap());
    let moment: Timestamp = "2026-11-15T03:00:00Z".parse().unwrap();
    clock.shift(moment.duration_since(clock.now()));
    clock
});

fuzz_target!(|header: &[u8]| {
    if let Ok(stamp) = auth::stamp(header, &SID, &CLOCK) {
        assert!(stamp.len() == 14 && stamp.bytes().all(|byte| byte.is_ascii_digit()));
    }
});
