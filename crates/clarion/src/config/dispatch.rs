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
            callee_caps: CalleeCaps {
                per_minute: section.number("callee_per_minute", 0..=u32::MAX)?,
                per_hour: section.number("callee_per_hour", 0..=u32::MAX)?,
                per_day: section.number("callee_per_day", 0..=u32::MAX)?,
            },
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
