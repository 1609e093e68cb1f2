//! Any text is a canonical number that stays what it is when it is read again, or a refusal.

#![no_main]

use std::sync::LazyLock;

use clarion::config::Config;
use clarion::domain::phone_number::PhoneNumber;
use libfuzzer_sys::fuzz_target;

static CONFIG: LazyLock<Config> = LazyLock::new(|| Config::from_parts("", &[]).unwrap());

fuzz_target!(|text: &str| {
    let plan = &CONFIG.numbers;
    let Ok(number) = PhoneNumber::parse(text, plan) else {
        return;
    };
    let written = format!("+{}", number.digits());
    let again = PhoneNumber::parse(&written, plan).expect("a canonical number is a number");
    assert_eq!(again.digits(), number.digits());
    assert_eq!(
        again.check_allowed(plan).is_ok(),
        number.check_allowed(plan).is_ok()
    );
    let masked = number.to_string();
    assert!(masked.len() < 24 && !masked.contains(number.digits()));
});
