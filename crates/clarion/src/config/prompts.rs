//! `[prompts]`: how many prompts are made at once, and how many are kept.

use std::time::Duration;

use super::section::{LARGEST_MIB, Mistake, Section};

const LONGEST_GAP: u32 = 3_600_000;
const LONGEST_MEMORY: u32 = 86_400;

#[derive(Debug, Clone)]
pub struct PromptsConfig {
    /// `None` means one per core.
    pub workers: Option<usize>,
    pub max_waiting: usize,
    pub memory_bytes: u64,
    /// `None` keeps nothing on disk.
    pub disk_bytes: Option<u64>,
    /// Pause between two plays.
    pub gap: Duration,
    /// How long a failure is remembered.
    pub failure_time: Duration,
}

impl PromptsConfig {
    pub(super) fn read(section: &mut Section) -> Result<Self, Mistake> {
        let workers = section.number("workers", 0..=1024)?;
        let disk = section.number("disk_mb", 0..=LARGEST_MIB)?;
        Ok(Self {
            workers: Some(workers).filter(|workers| *workers > 0),
            max_waiting: section.number("max_waiting", 0..=usize::MAX)?,
            memory_bytes: section.number("memory_mb", 0..=LARGEST_MIB)? << 20,
            disk_bytes: Some(disk << 20).filter(|bytes| *bytes > 0),
            gap: section.milliseconds("gap_ms", LONGEST_GAP)?,
            failure_time: section.seconds("failure_seconds", 0..=LONGEST_MEMORY)?,
        })
    }
}
