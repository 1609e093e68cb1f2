//! `[dispatch]`: how many calls are under way, and how long a call is dialled and retried.

use std::time::Duration;

use jiff::SignedDuration;

use super::section::{Mistake, Section};
use crate::domain::claim::CalleeCaps;

const DAY: u32 = 86_400;
const LONGEST_PAUSE: u32 = 30 * DAY;
/// No callee listens to a minute of silence.
const LONGEST_SILENCE_MS: u32 = 60_000;

#[derive(Debug, Clone)]
pub struct DispatchConfig {
    /// `None` allows as many calls as the trunks carry.
    pub max_calls: Option<u32>,
    /// While more of a hundred packets leave late, nothing is claimed. `None`: any number may be late.
    pub late_percent: Option<u8>,
    pub calls_at_once: u32,
    pub calls_per_second: u32,
    pub callee_caps: CalleeCaps,
    pub ring_time: Duration,
    pub lead_in: Duration,
    pub extension_wait: Duration,
    /// Wait from one try of all trunks to the next: the first wait, and the longest.
    pub first_retry: SignedDuration,
    pub longest_retry: SignedDuration,
    pub redial_after_crash: bool,
    pub stop_time: Duration,
    pub lease: SignedDuration,
}

impl DispatchConfig {
    pub(super) fn read(section: &mut Section) -> Result<Self, Mistake> {
        let max_calls = section.number("max_calls", 0..=u32::MAX)?;
        let late_percent = section.number("late_percent", 0..=100)?;
        Ok(Self {
            late_percent: Some(late_percent).filter(|percent| *percent > 0),
            max_calls: Some(max_calls).filter(|limit| *limit > 0),
            calls_at_once: section.number("calls_at_once", 0..=u32::MAX)?,
            calls_per_second: section.number("calls_per_second", 0..=u32::MAX)?,
            callee_caps: callee_caps(section)?,
            ring_time: section.seconds("ring_seconds", 1..=600)?,
            lead_in: section.milliseconds("lead_in_ms", LONGEST_SILENCE_MS)?,
            extension_wait: section.milliseconds("extension_wait_ms", LONGEST_SILENCE_MS)?,
            first_retry: section.signed_seconds("retry_seconds", 0..=LONGEST_PAUSE)?,
            longest_retry: section.signed_seconds("longest_retry_seconds", 0..=LONGEST_PAUSE)?,
            redial_after_crash: section.flag("redial_after_crash")?,
            stop_time: section.seconds("stop_seconds", 0..=DAY)?,
            // A lease is renewed five times in its life, and an INVITE needs half a second of it to be left.
            lease: section.signed_seconds("lease_seconds", 2..=3600)?,
        })
    }
}

/// The preset, with the operator's own numbers in its place.
fn callee_caps(section: &mut Section) -> Result<CalleeCaps, Mistake> {
    let preset = section.parsed_by("callee_caps", |text| match text {
        "none" => Ok(CalleeCaps::default()),
        "considerate" => Ok(CalleeCaps::CONSIDERATE),
        _ => Err(format!("`{text}` must be none or considerate")),
    })?;
    let mut own = |key, preset| {
        let number = section.number(key, 0..=u32::MAX)?;
        Ok(if number > 0 { number } else { preset })
    };
    Ok(CalleeCaps {
        per_minute: own("callee_per_minute", preset.per_minute)?,
        per_hour: own("callee_per_hour", preset.per_hour)?,
        per_day: own("callee_per_day", preset.per_day)?,
    })
}
