//! `[bills]`: when a day is closed, and how long its bill is offered and kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Span};

use super::section::{Mistake, Section};
use crate::domain::account::BillJsonKey;

#[derive(Debug, Clone)]
pub struct BillsConfig {
    pub folder: PathBuf,
    /// Time from midnight to the close of the day before.
    pub grace: SignedDuration,
    /// Calendar days for which bills are kept.
    pub retention: Span,
    pub token_life: Duration,
    pub bill_json_key: BillJsonKey,
    pub max_filtered_files: usize,
    /// How much disk the filtered files of one account for one day may take. `None`: as much as they want.
    pub filtered_bytes: Option<u64>,
}

impl BillsConfig {
    pub(super) fn read(section: &mut Section, data_dir: &Path) -> Result<Self, Mistake> {
        let folder = section.path_or_none("folder")?;
        let hours: u32 = section.number("token_hours", 1..=8760)?;
        Ok(Self {
            folder: folder.unwrap_or_else(|| data_dir.join("bills")),
            grace: section.signed_seconds("grace_seconds", 0..=43_200)?,
            retention: Span::new().days(section.number("retention_days", 3..=36_500_i64)?),
            token_life: Duration::from_secs(u64::from(hours) * 3600),
            bill_json_key: section.parsed_by("bill_json_key", |text| {
                let key = text.parse();
                key.map_err(|_: String| format!("`{text}` is neither downurl nor downUrl"))
            })?,
            max_filtered_files: section.number("max_filtered_files", 0..=usize::MAX)?,
            filtered_bytes: section.megabytes("max_filtered_mb")?,
        })
    }
}
