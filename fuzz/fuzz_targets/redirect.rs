//! Any text as the Contact of a 3xx: what may be called after it is a number like any other, and fits into one line of a request.

#![no_main]

use std::sync::LazyLock;

use clarion::config::Config;
use clarion::domain::redirect::check_redirect;
use libfuzzer_sys::fuzz_target;
use phone::signalling::dissect;

const TRUNK: &str = "[[trunk]]\nname = \"a\"\nhost = \"192.0.2.1\"\nprefixes = [\"86\"]\n";
static CONFIG: LazyLock<Config> = LazyLock::new(|| Config::from_parts(TRUNK, &[]).unwrap());

fuzz_target!(|contact: &str| {
    let response = format!(
        "SIP/2.0 302 Moved\r\nVia: SIP/2.0/UDP h;branch=z9hG4bKx\r\nFrom: <sip:a@h>;tag=a\r\nTo: <sip:b@h>;tag=b\r\nCall-ID: x\r\nCSeq: 1 INVITE\r\nContact: {contact}\r\nContent-Length: 0\r\n\r\n"
    );
    let targets = dissect::redirect(response.as_bytes());
    assert!(targets.len() <= 5, "{targets:?}");
    let route = &CONFIG.trunks[0].route;
    for (target, number) in targets {
        let Some(number) = number else {
            continue;
        };
        if check_redirect(&number, route, &CONFIG.numbers, |_| false).is_ok() {
            assert!(
                number.bytes().any(|byte| byte.is_ascii_digit()),
                "{target:?}"
            );
            let breaks_a_line = |letter: char| letter.is_control() || letter.is_whitespace();
            assert!(!target.contains(breaks_a_line), "{target:?}");
            assert!(!target.contains('?'), "{target:?}");
        }
        assert!(check_redirect(&number, route, &CONFIG.numbers, |_| true).is_err());
    }
});
