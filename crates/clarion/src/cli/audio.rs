//! `clarion audio …`: audio files of an application or of the platform, and how a text sounds.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sound::renderer::Requester;
use supervisor::Supervisor;
use tokio::io::AsyncWriteExt;

use super::audio_import::{self, ImportOptions};
use super::print;
use crate::audio_files::{AddedBy, AudioFiles, prompts};
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::account::AppId;
use crate::domain::prompt::{
    AddedFile, AudioFile, AudioOwner, ContentId, FileName, Prompt, Speech, TEST_FILE,
};
use crate::store::{Store, StoreError};

const COMMAND_LINE: Requester<'static> = Requester("the command line");

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
pub struct Owner {
    /// The application that the files belong to [default: all applications]
    #[arg(long)]
    app: Option<AppId>,
}

impl Owner {
    pub async fn check(self, store: &dyn Store) -> anyhow::Result<AudioOwner> {
        let Some(app) = self.app else {
            return Ok(AudioOwner::Platform);
        };
        if store.application(&app).await?.is_none() {
            return Err(StoreError::Missing(format!("application {app}")).into());
        }
        Ok(AudioOwner::Application(app))
    }
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
    /// Speed of the speech, from -500 to 500
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i16).range(-500..=500))]
    speed: i16,
    /// Volume of the speech, from -20 to 20
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-20..=20))]
    volume: i8,
    /// Pitch of the speech, from -500 to 500
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i16).range(-500..=500))]
    pitch: i16,
    /// Background sound, from 1 to 6; 0 is none
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=6))]
    background: u8,
    /// Write a WAV file instead of playing it with aplay
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub async fn run(
    command: AudioCommand,
    config: &Config,
    store: Arc<dyn Store>,
    clock: Clock,
) -> anyhow::Result<()> {
    let audio_files = AudioFiles::open(config)?;
    match command {
        AudioCommand::Add { owner, files, json } => {
            let owner = owner.check(&*store).await?;
            let mut added = Vec::new();
            for file in files {
                let bytes = read(&file, config.audio_files.limits.bytes)?;
                let name = file.file_name().and_then(|name| name.to_str());
                let name = name.with_context(|| format!("{} has no name", file.display()))?;
                let (owner, now) = (owner.clone(), clock.now());
                let by = AddedBy::Operator;
                let new = audio_files.add(&*store, by, owner, name, bytes.into(), now);
                added.extend(
                    new.await
                        .map_err(|refusal| anyhow::anyhow!(refusal.message))?,
                );
            }
            print(json, &added.iter().map(describe).collect());
        }
        AudioCommand::Import(options) => {
            audio_import::run(options, config, &audio_files, &*store, &clock).await?;
        }
        AudioCommand::List { owner, json } => {
            let files = store.audio_files_of(&owner.check(&*store).await?).await?;
            print(json, &files.iter().map(describe).collect());
        }
        AudioCommand::Play(play) => play.run(config, &audio_files, &*store).await?,
        AudioCommand::Remove { owner, name } => {
            let owner = owner.check(&*store).await?;
            store.remove_audio_file(&owner, &named(&name)?).await?;
        }
    }
    Ok(())
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

fn named(name: &str) -> anyhow::Result<FileName> {
    FileName::named_by("name", name).map_err(|refusal| anyhow::anyhow!(refusal.message))
}

impl PlayOptions {
    async fn run(
        self,
        config: &Config,
        audio_files: &AudioFiles,
        store: &dyn Store,
    ) -> anyhow::Result<()> {
        let speech = self.text.map(|text| Speech {
            text,
            speed: self.speed,
            volume: self.volume,
            pitch: self.pitch,
            background: self.background,
        });
        let owner = self.owner.check(store).await?;
        let files = match self.name {
            Some(name) => vec![find(store, &owner, named(&name)?).await?],
            None => vec![],
        };
        let prompt = Prompt {
            speech,
            files,
            code: None,
            plays: 1,
        };
        // The prompts on disk belong to the server, which may be running.
        let mut config = config.clone();
        config.prompts.disk_bytes = None;
        let renderer = prompts::open(&Supervisor::new(), &config)?;
        let list = prompts::make_ready(&renderer, audio_files, COMMAND_LINE, &prompt).await?;
        let heard = list.heard();
        let wav = sound::wav::mono_16_bit(&heard, sound::RATE);
        match self.out {
            Some(file) => std::fs::write(&file, wav)
                .with_context(|| format!("cannot write {}", file.display())),
            None => play(&wav).await,
        }
    }
}

async fn find(store: &dyn Store, owner: &AudioOwner, name: FileName) -> anyhow::Result<AudioFile> {
    let files = store.audio_files_of(owner).await?;
    let own = files.into_iter().find(|file| file.name == name);
    let builtin = (name.as_str() == TEST_FILE).then(ContentId::test_file);
    let content = own.map(|file| file.content).or(builtin);
    let content = content.with_context(|| format!("there is no audio file {name}"))?;
    Ok(AudioFile { name, content })
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
