//! `[calls]`: what a call may hold, how long it may wait and talk, and how long it is kept.

use std::time::Duration;

use jiff::SignedDuration;

use super::section::{Mistake, Section};

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
            retention: (days > 0).then(|| SignedDuration::from_hours(24 * i64::from(days))),
        })
    }
}
