//! `[audio_files]`: where uploaded audio files are kept, and how large they may be.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sound::wav::WavLimits;

use super::section::{Mistake, Section};

const LONGEST: u32 = 1_000_000;

#[derive(Debug, Clone)]
pub struct AudioFilesConfig {
    pub folder: PathBuf,
    /// Limits of one file. Its limit of bytes also applies to a whole upload.
    pub limits: WavLimits,
    pub upload_time: Duration,
    pub uploads_at_once: usize,
    /// Maximum number of files of one application, or of the platform.
    pub max_files: usize,
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
            max_files: section.number("max_files", 0..=usize::MAX)?,
        })
    }
}
