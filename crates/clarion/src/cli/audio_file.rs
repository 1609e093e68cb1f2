//! What the commands about audio files share: whose the files are, and how one is read.

use std::path::Path;

use anyhow::{Context, ensure};
use clap::Args;

use crate::domain::account::AppId;

#[derive(Debug, Args)]
pub struct Owner {
    /// The application that the files belong to [default: all applications]
    #[arg(long)]
    pub app: Option<AppId>,
}

/// Reads a file. Checks its size first, because a mistyped name may be a disk image.
pub fn read(file: &Path, limit: usize) -> anyhow::Result<Vec<u8>> {
    let context = || format!("cannot read {}", file.display());
    let size = file.metadata().with_context(context)?.len();
    ensure!(
        size <= limit as u64,
        "{} has {size} bytes; at most {limit} are taken",
        file.display()
    );
    std::fs::read(file).with_context(context)
}
