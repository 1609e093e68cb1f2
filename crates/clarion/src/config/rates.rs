//! `[rates]`: what calls cost if an account has no rate of its own.

use std::time::Duration;

use super::section::{Mistake, Section};
use crate::domain::bill::rating::Rate;

const LONGEST_TALK: u32 = 86_400;

#[derive(Debug, Clone)]
pub struct RatesConfig {
    pub default: Vec<Rate>,
    /// Talk time that is reserved until the length of the message is known.
    pub reserve: Duration,
}

impl RatesConfig {
    pub(super) fn read(section: &mut Section) -> Result<Self, Mistake> {
        Ok(Self {
            default: section.elements("default", rate)?,
            reserve: section.seconds("reserve_seconds", 1..=LONGEST_TALK)?,
        })
    }
}

fn rate(section: &mut Section) -> Result<Rate, Mistake> {
    let rate = Rate {
        prefix: section.parsed("prefix")?,
        unit_seconds: section.number("unit_seconds", 1..=Rate::LONGEST_UNIT)?,
        price: section.parsed("price")?,
        unanswered: section.parsed("unanswered")?,
    };
    rate.check().map_err(|rule| section.mistake("price", rule))
}
