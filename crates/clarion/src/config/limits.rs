//! `[limits]`: what one account may use.

use super::section::{Mistake, Section};

#[derive(Debug, Clone)]
pub struct LimitsConfig {
    pub requests_per_second: u32,
    pub requests_at_once: u32,
}

impl LimitsConfig {
    pub(super) fn read(section: &mut Section) -> Result<Self, Mistake> {
        Ok(Self {
            requests_per_second: section.number("requests_per_second", 0..=u32::MAX)?,
            requests_at_once: section.number("requests_at_once", 0..=u32::MAX)?,
        })
    }
}
