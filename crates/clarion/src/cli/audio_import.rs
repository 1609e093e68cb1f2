//! `clarion audio import`: brings a folder of audio files along, for instance those of another platform.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};

use super::audio::{Owner, read};
use super::print;
use crate::audio_files::{AddedBy, AudioFiles, names};
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::prompt::{AudioOwner, ContentId};
use crate::store::Store;

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

/// What becomes of one file.
#[derive(Debug)]
enum Fate {
    Added,
    Replaced,
    /// It is there already, with the same content.
    Unchanged,
    Refused(String),
}

impl Fate {
    fn word(&self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Replaced => "replaced",
            Self::Unchanged => "unchanged",
            Self::Refused(_) => "refused",
        }
    }
}

pub async fn run(
    options: ImportOptions,
    config: &Config,
    audio_files: &AudioFiles,
    store: &dyn Store,
    clock: &Clock,
) -> anyhow::Result<()> {
    let owner = options.owner.check(store).await?;
    let files = named_files(&options.folder)?;
    if files.is_empty() {
        bail!("there is no file in {}", options.folder.display());
    }
    let there = store.audio_files_of(&owner).await?.into_iter();
    let import = Import {
        there: there
            .map(|file| (file.name.to_string(), file.content))
            .collect(),
        owner,
        limit: config.audio_files.limits.bytes,
        is_trial: options.dry_run,
        audio_files,
        store,
        clock,
    };
    let (mut told, mut refused) = (Vec::new(), 0);
    for (name, paths) in files {
        let fate = import.file(&name, &paths).await;
        if let Fate::Refused(reason) = &fate {
            refused += 1;
            eprintln!("{name}: {reason}");
        }
        told.push(describe(&name, &fate));
    }
    let count = told.len();
    print(options.json, &Value::Array(told));
    if refused > 0 {
        bail!("{refused} of {count} files were not imported");
    }
    Ok(())
}

struct Import<'a> {
    owner: AudioOwner,
    /// What the owner has already.
    there: BTreeMap<String, ContentId>,
    limit: usize,
    is_trial: bool,
    audio_files: &'a AudioFiles,
    store: &'a dyn Store,
    clock: &'a Clock,
}

impl Import<'_> {
    async fn file(&self, name: &str, paths: &[PathBuf]) -> Fate {
        let [path] = paths else {
            let paths: Vec<_> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            return Fate::Refused(format!(
                "several files have this name: {}",
                paths.join(", ")
            ));
        };
        if name.contains(UNREADABLE) {
            return Fate::Refused("its name is neither UTF-8 nor GBK: rename it".to_owned());
        }
        if !name.to_lowercase().ends_with(".wav") {
            let rule = "only .wav files are played; convert it, for instance with `sox IN OUT.wav`";
            return Fate::Refused(rule.to_owned());
        }
        let bytes = match read(path, self.limit) {
            Ok(bytes) => bytes,
            Err(error) => return Fate::Refused(format!("{error:#}")),
        };
        let fate = match self.there.get(name) {
            Some(content) if *content == ContentId::of(&bytes) => return Fate::Unchanged,
            Some(_) => Fate::Replaced,
            None => Fate::Added,
        };
        let done = if self.is_trial {
            self.audio_files.check(name, bytes.into()).await
        } else {
            let (owner, now) = (self.owner.clone(), self.clock.now());
            let by = AddedBy::Operator;
            let added = self
                .audio_files
                .add(self.store, by, owner, name, bytes.into(), now);
            added.await.map(|_| ())
        };
        done.map_or_else(|refusal| Fate::Refused(refusal.message), |()| fate)
    }
}

fn describe(name: &str, fate: &Fate) -> Value {
    match fate {
        Fate::Refused(reason) => json!({ "name": name, "result": fate.word(), "reason": reason }),
        _ => json!({ "name": name, "result": fate.word() }),
    }
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
