//! `[dispatch]`: how many calls are under way, and how patiently one is dialled.

use std::time::Duration;

use super::section::{Mistake, Section};

const DAY: u32 = 86_400;
const LONGEST_PAUSE: u32 = 30 * DAY;
/// A minute of silence is more than any callee bears.
const LONGEST_SILENCE_MS: u32 = 60_000;

#[derive(Debug, Clone)]
pub struct DispatchConfig {
    /// 0: as many as the trunks carry.
    pub max_calls: u32,
    pub calls_at_once: u32,
    pub calls_per_second: u32,
    /// 0: as often as asked; so are the next two.
    pub callee_per_minute: u32,
    pub callee_per_hour: u32,
    pub callee_per_day: u32,
    pub ring_time: Duration,
    pub lead_in: Duration,
    pub extension_wait: Duration,
    /// From one try of all trunks to the next: the first time, and at most.
    pub retry_pause: Duration,
    pub longest_retry_pause: Duration,
    pub redial_after_crash: bool,
    pub stop_time: Duration,
    pub lease: Duration,
}

impl DispatchConfig {
    pub(super) fn read(section: &mut Section) -> Result<Self, Mistake> {
        Ok(Self {
            max_calls: section.number("max_calls", 0..=u32::MAX)?,
            calls_at_once: section.number("calls_at_once", 0..=u32::MAX)?,
            calls_per_second: section.number("calls_per_second", 0..=u32::MAX)?,
            callee_per_minute: section.number("callee_per_minute", 0..=u32::MAX)?,
            callee_per_hour: section.number("callee_per_hour", 0..=u32::MAX)?,
            callee_per_day: section.number("callee_per_day", 0..=u32::MAX)?,
            ring_time: section.seconds("ring_seconds", 1..=600)?,
            lead_in: section.milliseconds("lead_in_ms", LONGEST_SILENCE_MS)?,
            extension_wait: section.milliseconds("extension_wait_ms", LONGEST_SILENCE_MS)?,
            retry_pause: section.seconds("retry_seconds", 0..=LONGEST_PAUSE)?,
            longest_retry_pause: section.seconds("longest_retry_seconds", 0..=LONGEST_PAUSE)?,
            redial_after_crash: section.flag("redial_after_crash")?,
            stop_time: section.seconds("stop_seconds", 0..=DAY)?,
            // A lease is renewed five times in its life, and an INVITE wants half a second of it left.
            lease: section.seconds("lease_seconds", 2..=3600)?,
        })
    }
}
