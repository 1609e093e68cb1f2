//! `[audio_files]`: where uploaded audio files are kept, and how large they may be.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sound::wav::WavLimits;

use super::section::{Mistake, Section};
use crate::domain::audio_quota::AudioQuota;

const LONGEST: u32 = 1_000_000;

#[derive(Debug, Clone)]
pub struct AudioFilesConfig {
    pub folder: PathBuf,
    /// Limits of one file. Its limit of bytes also applies to a whole upload.
    pub limits: WavLimits,
    pub upload_time: Duration,
    pub uploads_at_once: usize,
    pub uploads_per_account: usize,
    /// `None`: an upload may be as slow as its time allows.
    pub least_rate: Option<LeastRate>,
    /// Maximum number of files of one application, or of the platform.
    pub max_files: usize,
    pub quota: AudioQuota,
}

/// How fast an upload must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeastRate {
    /// Time in which nothing has to arrive.
    pub grace: Duration,
    /// On average, from then on.
    pub bytes_per_second: u32,
}

impl LeastRate {
    fn read(section: &mut Section) -> Result<Option<Self>, Mistake> {
        let grace = section.seconds("upload_grace_seconds", 0..=LONGEST)?;
        let bytes_per_second = section.number("min_upload_bytes_per_second", 0..=u32::MAX)?;
        let rate = Self {
            grace,
            bytes_per_second,
        };
        Ok(Some(rate).filter(|rate| rate.bytes_per_second > 0))
    }

    /// The time after which more than this must have arrived.
    pub fn time_for(self, bytes: usize) -> Duration {
        let seconds = bytes as f64 / f64::from(self.bytes_per_second.max(1));
        self.grace + Duration::from_secs_f64(seconds)
    }
}

impl AudioFilesConfig {
    pub(super) fn read(section: &mut Section, data_dir: &Path) -> Result<Self, Mistake> {
        let folder = section.path_or_none("folder")?;
        Ok(Self {
            folder: folder.unwrap_or_else(|| data_dir.join("voices")),
            limits: WavLimits {
                bytes: section.number("max_upload_bytes", 0..=usize::MAX)?,
                seconds: section.number("max_seconds", 0..=LONGEST)?,
            },
            upload_time: section.seconds("upload_seconds", 0..=LONGEST)?,
            uploads_at_once: section.number("uploads_at_once", 1..=LONGEST as usize)?,
            uploads_per_account: section.number("uploads_per_account", 1..=LONGEST as usize)?,
            least_rate: LeastRate::read(section)?,
            max_files: section.number("max_files", 0..=usize::MAX)?,
            quota: AudioQuota {
                app_bytes: section.megabytes("max_app_mb")?,
                account_bytes: section.megabytes("max_account_mb")?,
                uploads_per_hour: some_number(section.number("uploads_per_hour", 0..=LONGEST)?),
            },
        })
    }
}

/// Zero is no limit.
fn some_number(number: u32) -> Option<u32> {
    Some(number).filter(|number| *number > 0)
}
