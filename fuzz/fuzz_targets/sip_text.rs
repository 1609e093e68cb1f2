//! Any text as a host, a Reason and a Session-Expires.

#![no_main]

use libfuzzer_sys::fuzz_target;
use phone::ending::Q850;
use phone::signalling::{Host, SessionTimer};

fuzz_target!(|text: &str| {
    if let Ok(host) = text.parse::<Host>() {
        let written = host.to_string();
        assert_eq!(written.parse(), Ok(host), "{written}");
        assert!(
            !written.contains(|letter: char| letter.is_whitespace() || "<>;@".contains(letter))
        );
    }
    if let Some(Q850 { cause, .. }) = Q850::from_reason(text) {
        assert!(text.contains(&cause.to_string()));
    }
    if let Some(timer) = SessionTimer::from_answer(text) {
        assert!(timer.interval.as_secs() >= 90);
        assert!(timer.due() < timer.interval);
    }
});
