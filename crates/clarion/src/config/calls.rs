//! `[calls]`: what a call may hold, how long it may wait and talk, and how long it is kept.

use std::time::Duration;

use jiff::SignedDuration;

use super::section::{Mistake, Section};
use crate::domain::prompt::CodeLanguage;

/// Longest retention in days, which is longer than anybody keeps a call.
const LONGEST_RETENTION: u32 = 36_500;
const LONGEST_WAIT: u32 = 366 * 86_400;

/// What the platform says in its own words around the message of a call.
#[derive(Debug, Clone)]
pub struct PlatformSentences {
    /// Where a request has no text to go by.
    pub language: CodeLanguage,
    chinese: KeySentences,
    english: KeySentences,
}

/// What asks for a key, `{key}` in its place, and what a callee hears who has confirmed. Empty ones are left out; where nothing is left there is a tone.
#[derive(Debug, Clone)]
pub struct KeySentences {
    pub confirm: String,
    pub replay: String,
    pub stop: String,
    /// Also `{minutes}` in its place. It is never empty: nobody silences an alert who was not told so.
    pub silence: String,
    pub thanks: String,
}

impl PlatformSentences {
    fn read(section: &mut Section) -> Result<Self, Mistake> {
        let language = |text: &str| match text {
            "zh" => Ok(CodeLanguage::Chinese),
            "en" => Ok(CodeLanguage::English),
            _ => Err("must be zh or en"),
        };
        Ok(Self {
            language: section.parsed_by("language", language)?,
            chinese: KeySentences::read(section, CodeLanguage::Chinese)?,
            english: KeySentences::read(section, CodeLanguage::English)?,
        })
    }

    pub fn of_keys(&self, language: CodeLanguage) -> &KeySentences {
        match language {
            CodeLanguage::Chinese => &self.chinese,
            CodeLanguage::English => &self.english,
        }
    }
}

impl KeySentences {
    fn read(section: &mut Section, language: CodeLanguage) -> Result<Self, Mistake> {
        let language = language.as_str();
        let mut question = |name: &str| {
            let name = format!("key_{name}_{language}");
            let text = section.text(&name)?;
            if text.trim().is_empty() || text.contains("{key}") {
                Ok(text)
            } else {
                Err(section.mistake(&name, "name the key as {key}, or leave it empty"))
            }
        };
        let (confirm, replay, stop) =
            (question("confirm")?, question("replay")?, question("stop")?);
        let name = format!("key_silence_{language}");
        let silence = section.text(&name)?;
        if !(silence.contains("{key}") && silence.contains("{minutes}")) {
            return Err(section.mistake(&name, "name the key as {key} and the time as {minutes}"));
        }
        Ok(Self {
            confirm,
            replay,
            stop,
            silence,
            thanks: section.text(&format!("key_thanks_{language}"))?,
        })
    }
}

#[derive(Debug, Clone)]
pub struct CallsConfig {
    pub max_files: usize,
    pub max_text_characters: usize,
    pub max_user_data_bytes: usize,
    pub max_talk: Duration,
    /// A call that has waited this long is given up.
    pub expiry: Duration,
    /// The same for a call that says a code, which is worth nothing later.
    pub code_expiry: Duration,
    chinese_introduction: String,
    english_introduction: String,
    pub sentences: PlatformSentences,
    /// `None` keeps calls for ever.
    pub retention: Option<SignedDuration>,
}

impl CallsConfig {
    pub(super) fn read(section: &mut Section) -> Result<Self, Mistake> {
        let days: u32 = section.number("retention_days", 0..=LONGEST_RETENTION)?;
        Ok(Self {
            max_files: section.number("max_files", 0..=usize::MAX)?,
            max_text_characters: section.number("max_text_characters", 0..=usize::MAX)?,
            max_user_data_bytes: section.number("max_user_data_bytes", 0..=usize::MAX)?,
            max_talk: section.seconds("max_talk_seconds", 0..=LONGEST_WAIT)?,
            expiry: section.seconds("expire_seconds", 0..=LONGEST_WAIT)?,
            code_expiry: section.seconds("code_expire_seconds", 0..=LONGEST_WAIT)?,
            chinese_introduction: section.text("code_introduction_zh")?,
            english_introduction: section.text("code_introduction_en")?,
            sentences: PlatformSentences::read(section)?,
            retention: (days > 0).then(|| SignedDuration::from_hours(24 * i64::from(days))),
        })
    }

    /// What is said before a code, if anything.
    pub fn introduction(&self, language: CodeLanguage) -> Option<&str> {
        let text = match language {
            CodeLanguage::Chinese => &self.chinese_introduction,
            CodeLanguage::English => &self.english_introduction,
        };
        (!text.trim().is_empty()).then_some(text)
    }
}
