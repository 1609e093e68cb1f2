//! Any text becomes words and marks in which no speech engine can find a command, and few phrases, however often its language changes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sound::spelled::SpelledCharacter;
use sound::text::{Language, phrases, with_readings};

fuzz_target!(|text: &str| {
    check(text);
    // The first two words as a reading of a lexicon.
    let mut words = text.split_whitespace();
    if let (Some(written), Some(said)) = (words.next(), words.next()) {
        let changed = with_readings(text, &[(written, said), (said, written)]);
        // Small and capital letters are one word.
        let same = with_readings(text, &[(written, written)]);
        assert!(same.eq_ignore_ascii_case(text), "{same:?}");
        check(&changed);
    }
    for character in text.chars().take(8) {
        for language in [Language::Chinese, Language::English] {
            let spelled = SpelledCharacter::new(character, language);
            assert_eq!(spelled.is_some(), character.is_ascii_alphanumeric());
            assert!(spelled.is_none_or(|spelled| !spelled.name().is_empty()));
        }
    }
});

fn check(text: &str) {
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
}
