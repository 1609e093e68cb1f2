//! Any text becomes words and marks in which no speech engine can find a command.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sound::text::phrases;

fuzz_target!(|text: &str| {
    for phrase in phrases(text) {
        assert!(!phrase.text.is_empty() && phrase.text.len() < 8_000);
        assert!(!phrase.text.contains(['<', '>', '&', '[', ']', '\u{1}', '\n', '-', '"', '0', '9']));
    }
});
