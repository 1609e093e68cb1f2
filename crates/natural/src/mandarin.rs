//! Chinese text to phonemes: words, then the sound of each character in its word.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context;
use jieba_rs::Jieba;
use sound::text::mandarin::{Syllable, syllables};

use crate::ipa;

/// Words, and how they sound.
pub struct MandarinReader {
    words: Jieba,
    /// Words with several readings, each character with its pinyin.
    phrases: HashMap<String, Vec<String>>,
}

impl MandarinReader {
    /// `phrases` is a JSON object of words, each with a list of readings for each character.
    pub fn open(phrases: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read(phrases).context("the table of phrases")?;
        let table: HashMap<String, Vec<Vec<String>>> =
            serde_json::from_slice(&text).context("the table of phrases")?;
        let first = |readings: Vec<Vec<String>>| -> Option<Vec<String>> {
            let firsts = readings.into_iter().map(|all| all.into_iter().next());
            firsts
                .map(|first| first.map(|sound| numbered(&sound)))
                .collect()
        };
        let phrases = table.into_iter().filter_map(|(word, readings)| {
            let readings = first(readings)?;
            (readings.len() == word.chars().count()).then_some((word, readings))
        });
        Ok(Self {
            words: Jieba::new(),
            phrases: phrases.collect(),
        })
    }

    /// The phonemes of Han characters and marks; words have blanks between them.
    pub fn phonemes(&self, text: &str) -> String {
        let known = syllables(text);
        let mut at = 0;
        let mut said = String::new();
        for token in self.words.cut(text, false) {
            let length = token.word.chars().count();
            let word = &known[at..at + length];
            at += length;
            if let Some(mark) = mark(token.word) {
                said.truncate(said.trim_end().len());
                said.push_str(mark);
                continue;
            }
            let phrase = self.phrases.get(token.word);
            for (place, syllable) in word.iter().enumerate() {
                let of_phrase = phrase.map(|sounds| sounds[place].as_str());
                said.push_str(&sound(syllable, of_phrase));
            }
            said.push(' ');
        }
        said.trim_end().to_owned()
    }
}

/// What was decided for the word counts before what a table of many words says.
fn sound(syllable: &Syllable, of_phrase: Option<&str>) -> String {
    let pinyin = syllable.sound.or(of_phrase).or(syllable.usual_sound());
    pinyin.and_then(ipa::phonemes).unwrap_or_default()
}

fn mark(word: &str) -> Option<&'static str> {
    Some(match word {
        "，" => ", ",
        "。" => ". ",
        "？" => "? ",
        "！" => "! ",
        _ => return None,
    })
}

/// `zhōng` as `zhong1`.
fn numbered(sound: &str) -> String {
    const MARKED: [(&str, char); 7] = [
        ("āáǎà", 'a'),
        ("ēéěè", 'e'),
        ("īíǐì", 'i'),
        ("ōóǒò", 'o'),
        ("ūúǔù", 'u'),
        ("ǖǘǚǜ", 'v'),
        ("ḿńňǹ", 'n'),
    ];
    let mut tone = 5;
    let mut letters = String::new();
    for letter in sound.chars() {
        let marked = MARKED.iter().find_map(|(marked, plain)| {
            let place = marked.chars().position(|c| c == letter)?;
            Some((place + 1, *plain))
        });
        match marked {
            Some((number, plain)) => {
                tone = number;
                letters.push(plain);
            }
            None if letter == 'ü' => letters.push('v'),
            None => letters.push(letter),
        }
    }
    format!("{letters}{tone}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> MandarinReader {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("phrases.json");
        let phrases = r#"{"朝代": [["cháo"], ["dài"]], "坏": [["huài"], ["x"]]}"#;
        std::fs::write(&file, phrases).unwrap();
        MandarinReader::open(&file).unwrap()
    }

    #[test]
    fn words_are_read_by_our_table_then_by_that_of_phrases_then_by_character() {
        let reader = reader();
        assert_eq!(reader.phonemes("您好，银行。"), "ni↗nxau↓, i↗nxa↗ŋ.");
        assert_eq!(reader.phonemes("朝代"), "ꭧʰau↗tai↘");
        assert_eq!(reader.phonemes("一个"), "i↗kɤ↘");
        assert_eq!(reader.phonemes(""), "");
    }

    #[test]
    fn marks_become_numbers() {
        for (marked, number) in [
            ("zhōng", "zhong1"),
            ("lǜ", "lv4"),
            ("de", "de5"),
            ("nǚ", "nv3"),
        ] {
            assert_eq!(numbered(marked), number);
        }
    }
}
