//! Words that an application wants to be said otherwise than they are written: names, products, abbreviations.

use serde::{Deserialize, Serialize};

/// Of a word as it is written, and as it is said.
const LONGEST_WRITTEN: usize = 64;
const LONGEST_SAID: usize = 200;
/// It is read with its application at every request.
const MAX_READINGS: usize = 500;

/// A word, and what is said for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    pub written: String,
    pub said: String,
}

impl Reading {
    pub fn parse(written: &str, said: &str) -> Result<Self, String> {
        let (written, said) = (written.trim(), said.trim());
        let is_text = |text: &str, longest: usize| {
            let length = text.chars().count();
            (1..=longest).contains(&length) && !text.chars().any(char::is_control)
        };
        if !is_text(written, LONGEST_WRITTEN) || !is_text(said, LONGEST_SAID) {
            return Err(format!(
                "a word has 1 to {LONGEST_WRITTEN} characters, and what is said for it 1 to {LONGEST_SAID}"
            ));
        }
        Ok(Self {
            written: written.to_owned(),
            said: said.to_owned(),
        })
    }
}

/// The words of one application, each once, in the order of their letters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lexicon(Vec<Reading>);

/// What becomes of a lexicon.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LexiconChange {
    #[default]
    None,
    /// A word that is there gets its new reading.
    Add(Reading),
    Remove(String),
}

impl Lexicon {
    pub fn readings(&self) -> &[Reading] {
        &self.0
    }

    pub fn find(&self, written: &str) -> Option<&Reading> {
        self.0.iter().find(|reading| reading.written == written)
    }

    pub fn check_room(&self, new: &Reading) -> Result<(), String> {
        if self.0.len() < MAX_READINGS || self.find(&new.written).is_some() {
            return Ok(());
        }
        Err(format!("a lexicon has at most {MAX_READINGS} words"))
    }

    /// A full lexicon takes no new word.
    pub fn apply(&mut self, change: LexiconChange) {
        match change {
            LexiconChange::Remove(written) => self.0.retain(|reading| reading.written != written),
            LexiconChange::Add(new) if self.check_room(&new).is_ok() => {
                self.0.retain(|reading| reading.written != new.written);
                self.0.push(new);
                self.0.sort_by(|a, b| a.written.cmp(&b.written));
            }
            LexiconChange::Add(_) | LexiconChange::None => {}
        }
    }

    /// Those whose word may be in a text.
    pub fn readings_in(&self, text: &str) -> Vec<Reading> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let text = text.to_ascii_lowercase();
        let is_there = |reading: &&Reading| text.contains(&reading.written.to_ascii_lowercase());
        self.0.iter().filter(is_there).cloned().collect()
    }

    /// As it is stored: nothing where it is empty.
    pub fn to_stored(&self) -> Option<String> {
        let stored = || serde_json::to_string(&self.0).expect("they have only text keys");
        (!self.0.is_empty()).then(stored)
    }

    pub fn from_stored(text: Option<&str>) -> Result<Self, serde_json::Error> {
        match text {
            Some(text) => serde_json::from_str(text).map(Self),
            None => Ok(Self::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lexicon_keeps_each_word_once_and_tells_those_of_a_text() {
        let mut lexicon = Lexicon::default();
        let reading = |written: &str, said: &str| Reading::parse(written, said).unwrap();
        for (written, said) in [("k8s", "kubernetes"), ("重楼", "崇楼"), ("k8s", "K 八 S")] {
            lexicon.apply(LexiconChange::Add(reading(written, said)));
        }
        assert_eq!(
            lexicon.readings(),
            [reading("k8s", "K 八 S"), reading("重楼", "崇楼")]
        );
        assert_eq!(lexicon.readings_in("K8S集群"), [reading("k8s", "K 八 S")]);
        let stored = lexicon.to_stored();
        assert_eq!(Lexicon::from_stored(stored.as_deref()).unwrap(), lexicon);
        lexicon.apply(LexiconChange::Remove("k8s".to_owned()));
        lexicon.apply(LexiconChange::Remove("重楼".to_owned()));
        assert_eq!(lexicon.to_stored(), None);
        assert_eq!(Lexicon::from_stored(None).unwrap(), lexicon);
        assert!(lexicon.readings_in("K8S").is_empty());
    }

    #[test]
    fn a_lexicon_has_a_limit_and_words_have_lengths() {
        let mut lexicon = Lexicon::default();
        for number in 0..MAX_READINGS {
            let new = Reading::parse(&format!("w{number}"), "x").unwrap();
            assert!(lexicon.check_room(&new).is_ok());
            lexicon.apply(LexiconChange::Add(new));
        }
        let one_more = Reading::parse("one more", "x").unwrap();
        assert!(lexicon.check_room(&one_more).is_err());
        lexicon.apply(LexiconChange::Add(one_more));
        assert_eq!(lexicon.readings().len(), MAX_READINGS);
        let known = Reading::parse("w7", "y").unwrap();
        assert!(lexicon.check_room(&known).is_ok());
        let long = "x".repeat(LONGEST_SAID + 1);
        for (written, said) in [("", "x"), ("x", " "), ("a\nb", "x"), ("x", &long)] {
            assert!(Reading::parse(written, said).is_err(), "{written} {said}");
        }
    }
}
