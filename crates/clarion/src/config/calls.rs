//! `[calls]`: what a call may hold, how long it may wait and talk, and how long it is kept.

use std::time::Duration;

use jiff::SignedDuration;

use super::section::{Mistake, Section};
use crate::domain::prompt::CodeLanguage;

/// Longest retention in days, which is longer than anybody keeps a call.
const LONGEST_RETENTION: u32 = 36_500;
const LONGEST_WAIT: u32 = 366 * 86_400;

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
