//! Any text becomes words and marks in which no speech engine can find a command, and few phrases, however often its language changes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sound::text::phrases;

fuzz_target!(|text: &str| {
    let phrases = phrases(text);
    let characters: usize = phrases
        .iter()
        .map(|phrase| phrase.text.chars().count())
        .sum();
    assert!(phrases.len() <= 64 + characters / 200);
    for phrase in phrases {
        assert!(!phrase.text.is_empty() && phrase.text.len() < 8_000);
        assert!(
            !phrase
                .text
                .contains(['<', '>', '&', '[', ']', '\u{1}', '\n', '-', '"', '0', '9'])
        );
    }
});
