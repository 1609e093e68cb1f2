//! `clarion audio import`: brings a folder of audio files along, for instance those of another platform.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};

use super::audio_file::{Owner, read};
use super::print;
use crate::audio_files::names;
use crate::management::{ImportedAudio, Management, OfferedFile};

/// Stands for what could not be read.
const UNREADABLE: char = char::REPLACEMENT_CHARACTER;

#[derive(Debug, Args)]
pub struct ImportOptions {
    #[command(flatten)]
    owner: Owner,
    /// Folder with WAV files; folders in it are searched too
    folder: PathBuf,
    /// Only tell what would be imported
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(options: ImportOptions, management: &Management) -> anyhow::Result<()> {
    let files = named_files(&options.folder)?;
    if files.is_empty() {
        bail!("there is no file in {}", options.folder.display());
    }
    let limit = management.config().audio_files.limits.bytes;
    let files = files.iter().map(|(name, paths)| OfferedFile {
        name: name.clone(),
        bytes: bytes_of(name, paths, limit).map(Into::into),
    });
    let (app, folder) = (options.owner.app, options.folder.display().to_string());
    let import = management.import_audio(app, &folder, options.dry_run, files);
    let import = import.await?;
    for (name, fate) in &import.files {
        if let ImportedAudio::Refused(reason) = fate {
            eprintln!("{name}: {reason}");
        }
    }
    let told = import.files.iter();
    print(
        options.json,
        &told.map(|(name, fate)| describe(name, fate)).collect(),
    );
    match import.failure() {
        Some(failure) => bail!(failure),
        None => Ok(()),
    }
}

/// The bytes of the one file of this name, or why there are none.
fn bytes_of(name: &str, paths: &[PathBuf], limit: usize) -> Result<Vec<u8>, String> {
    let [path] = paths else {
        let paths = paths.iter().map(|path| path.display().to_string());
        let paths: Vec<_> = paths.collect();
        return Err(format!(
            "several files have this name: {}",
            paths.join(", ")
        ));
    };
    if name.contains(UNREADABLE) {
        return Err("its name is neither UTF-8 nor GBK: rename it".to_owned());
    }
    if !name.to_lowercase().ends_with(".wav") {
        let rule = "only .wav files are played; convert it, for instance with `sox IN OUT.wav`";
        return Err(rule.to_owned());
    }
    read(path, limit).map_err(|error| format!("{error:#}"))
}

fn describe(name: &str, fate: &ImportedAudio) -> Value {
    let word = match fate {
        ImportedAudio::Added => "added",
        ImportedAudio::Replaced => "replaced",
        ImportedAudio::Unchanged => "unchanged",
        ImportedAudio::Refused(reason) => {
            return json!({ "name": name, "result": "refused", "reason": reason });
        }
    };
    json!({ "name": name, "result": word })
}

/// Every file below the folder, by its name. Hidden ones are left out, and so are links to folders, which may lead in a circle.
fn named_files(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder);
        let entries = entries.with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let (path, name) = (entry.path(), file_name(&entry.file_name()));
            if name.starts_with('.') {
                continue;
            }
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                files.entry(name).or_default().push(path);
            }
        }
    }
    Ok(files)
}

/// Names on a disk of China may be written in GBK. One that cannot be read at all is refused later (`UNREADABLE`).
fn file_name(name: &OsStr) -> String {
    names::decode(name.as_bytes()).unwrap_or_else(|| name.to_string_lossy().into_owned())
}
