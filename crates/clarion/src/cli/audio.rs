//! `clarion audio …`: audio files of an application or of the platform, and how a text sounds.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::audio_file::{Owner, read};
use super::audio_import::{self, ImportOptions};
use super::print;
use super::voice::SpeechOptions;
use crate::domain::prompt::{AddedFile, Prompt};
use crate::management::{Management, OfferedFile};

#[derive(Debug, Subcommand)]
pub enum AudioCommand {
    /// Add audio files; a file of the same name is replaced
    Add {
        #[command(flatten)]
        owner: Owner,
        /// WAV files, or zip files that hold WAV files
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add all audio files of a folder, and tell what became of each
    Import(ImportOptions),
    /// List audio files
    List {
        #[command(flatten)]
        owner: Owner,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Play an audio file or a text as a callee hears it
    Play(PlayOptions),
    /// Remove an audio file; calls that were accepted before still play it
    Remove {
        #[command(flatten)]
        owner: Owner,
        /// Name of the audio file
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct PlayOptions {
    #[command(flatten)]
    owner: Owner,
    /// Name of an audio file
    #[arg(required_unless_present = "text")]
    name: Option<String>,
    /// Text to speak, before the file if both are given
    #[arg(long)]
    text: Option<String>,
    #[command(flatten)]
    options: SpeechOptions,
    /// Write a WAV file instead of playing it with aplay
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub async fn run(command: AudioCommand, management: &Management) -> anyhow::Result<()> {
    match command {
        AudioCommand::Add { owner, files, json } => {
            let limit = management.config().audio_files.limits.bytes;
            let names = files.iter().map(|file| file.display().to_string());
            let names: Vec<_> = names.collect();
            let files = files.iter().map(|file| brought(file, limit));
            let added = management.add_audio(owner.app, &names, files).await?;
            print(json, &added.iter().map(describe).collect());
        }
        AudioCommand::Import(options) => audio_import::run(options, management).await?,
        AudioCommand::List { owner, json } => {
            let files = management.audio_files_of(owner.app).await?;
            print(json, &files.iter().map(describe).collect());
        }
        AudioCommand::Play(play) => play.run(management).await?,
        AudioCommand::Remove { owner, name } => management.remove_audio(owner.app, &name).await?,
    }
    Ok(())
}

fn brought(file: &Path, limit: usize) -> OfferedFile {
    let name = file.file_name().and_then(|name| name.to_str());
    let bytes = match name {
        Some(_) => read(file, limit).map_err(|error| format!("{error:#}")),
        None => Err(format!("{} has no name", file.display())),
    };
    OfferedFile {
        name: name.unwrap_or_default().to_owned(),
        bytes: bytes.map(Into::into),
    }
}

impl PlayOptions {
    async fn run(self, management: &Management) -> anyhow::Result<()> {
        let speech = self.text.map(|text| self.options.speech(&text));
        let owner = management.audio_owner(self.owner.app).await?;
        let files = match self.name {
            Some(name) => vec![management.audio_file(&owner, &name).await?],
            None => vec![],
        };
        let prompt = Prompt {
            speech,
            files,
            code: None,
            plays: 1,
        };
        let heard = management.heard(&prompt).await?;
        let wav = sound::wav::mono_16_bit(&heard, sound::RATE);
        match self.out {
            Some(file) => std::fs::write(&file, wav)
                .with_context(|| format!("cannot write {}", file.display())),
            None => play(&wav).await,
        }
    }
}

async fn play(wav: &[u8]) -> anyhow::Result<()> {
    let player = tokio::process::Command::new("aplay")
        .arg("--quiet")
        .stdin(Stdio::piped())
        .spawn();
    let mut player = player.context("aplay is not here; write a WAV file with --out FILE")?;
    if let Some(mut input) = player.stdin.take() {
        input.write_all(wav).await?;
    }
    let status = player.wait().await?;
    if !status.success() {
        bail!("aplay failed; write a WAV file with --out FILE");
    }
    Ok(())
}

fn describe(file: &AddedFile) -> Value {
    json!({
        "name": file.name.as_str(),
        "milliseconds": file.duration,
        "bytes": file.bytes,
        "addedAt": file.added_at.to_string(),
        "content": file.content.as_str(),
    })
}
