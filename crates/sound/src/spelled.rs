//! A code that is spoken character by character. Each character is a prompt of its own: what is rendered and kept says nothing about any code.

use std::time::Duration;

use crate::RATE;
use crate::speech::{Speaker, SpeechError, Utterance, VoiceOptions};
use crate::text::Language;

/// Slower than prose.
const SPEED: i16 = -150;
/// Behind each character: long enough to write it down.
const PAUSE: Duration = Duration::from_millis(600);

/// Digits as people say them on the telephone in China: 1 is yāo, which cannot be taken for 7.
const CHINESE_DIGITS: [&str; 10] = ["零", "幺", "二", "三", "四", "五", "六", "七", "八", "九"];
const ENGLISH_DIGITS: [&str; 10] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
];
/// The names of the letters, in words: a voice may take a letter that stands alone for an article or a unit.
const LETTERS: [&str; 26] = [
    "ay",
    "bee",
    "see",
    "dee",
    "ee",
    "eff",
    "gee",
    "aitch",
    "eye",
    "jay",
    "kay",
    "ell",
    "em",
    "en",
    "oh",
    "pee",
    "cue",
    "are",
    "ess",
    "tee",
    "you",
    "vee",
    "double you",
    "ex",
    "why",
    "zee",
];

/// A digit or a letter, whose case does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpelledCharacter {
    character: u8,
    language: Language,
}

impl SpelledCharacter {
    pub fn new(character: char, language: Language) -> Option<Self> {
        let character = u8::try_from(character).ok()?.to_ascii_uppercase();
        character.is_ascii_alphanumeric().then_some(Self {
            character,
            // A Chinese voice has no names for letters.
            language: if character.is_ascii_alphabetic() {
                Language::English
            } else {
                language
            },
        })
    }

    /// What is said for it.
    pub fn name(self) -> &'static str {
        let place = |first: u8| usize::from(self.character - first);
        match (self.character, self.language) {
            (b'0'..=b'9', Language::Chinese) => CHINESE_DIGITS[place(b'0')],
            (b'0'..=b'9', Language::English) => ENGLISH_DIGITS[place(b'0')],
            _ => LETTERS[place(b'A')],
        }
    }

    /// Spoken on this machine, with a pause behind it.
    pub(crate) fn speak(self, speaker: &Speaker) -> Result<Vec<f32>, SpeechError> {
        let speech = Utterance {
            text: self.name().to_owned(),
            options: VoiceOptions {
                speed: SPEED,
                ..VoiceOptions::default()
            },
        };
        let mut samples = speaker.speak_here(&speech)?;
        let pause = PAUSE.as_millis() as usize * RATE as usize / 1000;
        samples.resize(samples.len() + pause, 0.0);
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_letters_have_the_names_that_people_know() {
        let said = |characters: &str, language| {
            let spelled = characters
                .chars()
                .map(|one| SpelledCharacter::new(one, language));
            let names: Vec<_> = spelled.map(|spelled| spelled.unwrap().name()).collect();
            names.join(" ")
        };
        let letters = "ay bee see dee ee eff gee aitch eye jay kay ell em en oh pee cue are ess tee you vee double you ex why zee";
        for language in [Language::Chinese, Language::English] {
            assert_eq!(said("ABCDEFGHIJKLMNOPQRSTUVWXYZ", language), letters);
        }
        assert_eq!(
            said("0123456789", Language::English),
            "zero one two three four five six seven eight nine"
        );
        assert_eq!(
            said("0123456789", Language::Chinese),
            "零 幺 二 三 四 五 六 七 八 九"
        );
    }

    #[test]
    fn every_digit_and_letter_has_a_name_of_its_own() {
        for language in [Language::Chinese, Language::English] {
            let characters = ('0'..='9').chain('A'..='Z');
            let names = characters.map(|character| SpelledCharacter::new(character, language));
            let names: Vec<_> = names.map(|spelled| spelled.unwrap().name()).collect();
            let different: std::collections::HashSet<_> = names.iter().collect();
            assert_eq!((names.len(), different.len()), (36, 36), "{names:?}");
        }
        let spelled = |character| SpelledCharacter::new(character, Language::Chinese);
        assert_eq!(spelled('q'), spelled('Q'));
        for character in ['-', ' ', '好', '１', 'é'] {
            assert_eq!(spelled(character), None, "{character}");
        }
    }
}
