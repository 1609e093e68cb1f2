//! From a text to what is spoken: words only, each in its language.
//!
//! Numbers, dates, times, amounts and telephone numbers become the words people say; emoji and symbols nobody says disappear. What
//! comes out holds letters, Han characters, blanks and five marks of punctuation, so nothing in it can be a command to an engine.

mod characters;
mod chinese;
mod english;
mod expression;
mod lexicon;
pub mod mandarin;
mod numerals;
mod phrases;
mod scan;
mod units;

pub use lexicon::with_readings;
pub use phrases::{Phrase, in_words, phrases};

use characters::{is_han, is_latin};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Chinese,
    English,
}

/// The language of a whole text: Chinese where it has a Han character. `None` where there is nothing to say.
pub fn language_of(text: &str) -> Option<Language> {
    if text.chars().any(is_han) {
        return Some(Language::Chinese);
    }
    let is_said = |c: char| is_latin(c) || characters::plain(c).is_ascii_alphanumeric();
    text.chars().any(is_said).then_some(Language::English)
}

/// How long the voice rests behind a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pause {
    None,
    /// A comma.
    Short,
    /// The end of a sentence.
    Long,
}
