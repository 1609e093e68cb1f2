//! What the voice needs, in one folder.

use std::path::{Path, PathBuf};

use anyhow::ensure;

/// The library that runs the model.
pub const RUNTIME: &str = "libonnxruntime.so";
pub const MODEL: &str = "model.onnx";
/// How Chinese words sound that have several readings, as JSON.
pub const PHRASES: &str = "phrases.json";
/// The folder of the speakers, one file each.
pub const SPEAKERS: &str = "speakers";
/// What was installed. It is written last: without it nothing else counts.
pub const VERSION_FILE: &str = "version";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    folder: PathBuf,
    version: String,
}

impl Installation {
    /// The installation in a folder, if there is one and it is whole.
    pub fn find(folder: &Path) -> anyhow::Result<Self> {
        let version = std::fs::read_to_string(folder.join(VERSION_FILE)).unwrap_or_default();
        let version = version.trim().to_owned();
        ensure!(
            !version.is_empty(),
            "it is not installed: run `clarion voice install natural`"
        );
        for name in [RUNTIME, MODEL, PHRASES, SPEAKERS] {
            let is_there = folder.join(name).exists();
            ensure!(
                is_there,
                "{name} is missing: run `clarion voice install natural`"
            );
        }
        Ok(Self {
            folder: folder.to_owned(),
            version,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What tells its sound from that of another one.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The names of the speakers, in order.
    pub fn speakers(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.join(SPEAKERS));
        let entries = entries.into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(name.strip_suffix(".bin")?.to_owned())
        });
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// The file of a speaker, whose name is no path.
    pub fn speaker(&self, name: &str) -> anyhow::Result<PathBuf> {
        let is_name = name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        let file = self.folder.join(SPEAKERS).join(format!("{name}.bin"));
        ensure!(
            is_name && file.is_file(),
            "there is no speaker {name:?}; there are: {}",
            self.speakers().join(", ")
        );
        Ok(file)
    }
}
