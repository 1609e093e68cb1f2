//! From a text to what is spoken: words only, each in its language.
//!
//! Numbers, dates, times, amounts and telephone numbers become the words people say; emoji and symbols nobody says disappear. What
//! comes out holds letters, Han characters, blanks and five marks of punctuation, so nothing in it can be a command to an engine.

mod characters;
mod chinese;
mod english;
mod expression;
mod numerals;
mod phrases;
mod scan;
mod units;

pub use phrases::{Phrase, phrases};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Chinese,
    English,
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
