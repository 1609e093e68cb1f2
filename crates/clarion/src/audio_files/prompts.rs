//! Opens the prompt renderer by the settings, and translates a call's prompt for it.

use anyhow::Context;
use sound::renderer::{Piece, Requester};
use sound::spelled::SpelledCharacter;
use sound::text::{Language, with_readings};
use sound::{
    Playlist, PromptError, PromptRenderer, RendererSettings, Utterance, VoiceChoice, VoiceOptions,
};
use supervisor::Supervisor;
use tokio::runtime::Handle;

use super::{AudioFiles, voices};
use crate::config::Config;
use crate::disk_room::FLOORS_FOR_FILES;
use crate::domain::prompt::{AudioFile, CodeLanguage, ContentId, Prompt, Speech, VerifyCode};
use crate::private_files;

/// Opens the prompt renderer. Must be called on an async runtime, which reads the audio files.
pub fn open(supervisor: &Supervisor, config: &Config) -> anyhow::Result<PromptRenderer> {
    let prompts = &config.prompts;
    let settings = RendererSettings {
        workers: at_once(config),
        waiting: prompts.max_waiting,
        memory_bytes: prompts.memory_bytes,
        disk: prompts
            .disk_bytes
            .map(|bytes| (config.data_dir.join("prompts"), bytes)),
        disk_min_free: config.min_free_bytes.saturating_mul(FLOORS_FOR_FILES),
        failure_ttl: prompts.failure_time,
        limits: config.audio_files.limits,
        gap: prompts.gap,
    };
    if let Some((folder, _)) = &settings.disk {
        private_files::folder(folder)?;
    }
    PromptRenderer::open(supervisor, &settings, voices::speaker(config)?)
        .context("cannot open the folder of prompts")
}

/// How many prompts are rendered at once. A thread that waits for the natural voice does nothing else.
pub fn at_once(config: &Config) -> usize {
    let usual = || RendererSettings::default().workers + voices::natural_processes(config);
    config.prompts.workers.unwrap_or_else(usual)
}

/// Makes a call's prompt ready: the text first, then the files, then the code. Requesters take turns. Nothing that is said beside a code leaves this
/// machine.
pub async fn make_ready(
    renderer: &PromptRenderer,
    files: &AudioFiles,
    requester: Requester<'_>,
    prompt: &Prompt,
) -> Result<Playlist, PromptError> {
    let is_private = prompt.code.is_some();
    let speech = prompt
        .speech
        .iter()
        .map(|speech| spoken(speech, is_private));
    let files = prompt.files.iter().map(|file| recorded(files, file));
    let code = prompt.code.iter().flat_map(spelled);
    let pieces = speech.chain(files).chain(code).collect();
    renderer.prompt(requester, pieces, prompt.plays).await
}

fn spoken(speech: &Speech, is_private: bool) -> Piece {
    let readings = speech.readings.iter();
    let readings = readings.map(|reading| (reading.written.as_str(), reading.said.as_str()));
    let readings: Vec<_> = readings.collect();
    Piece::Speech {
        speech: Utterance {
            text: with_readings(&speech.text, &readings),
            options: VoiceOptions {
                speed: speech.speed,
                volume: speech.volume,
                pitch: speech.pitch,
                background: speech.background,
            },
        },
        choice: VoiceChoice {
            name: speech.voice.as_ref().map(ToString::to_string),
            is_private,
        },
    }
}

fn spelled(code: &VerifyCode) -> impl Iterator<Item = Piece> {
    let language = match code.language {
        CodeLanguage::Chinese => Language::Chinese,
        CodeLanguage::English => Language::English,
    };
    let characters = code.reveal().chars();
    characters
        .filter_map(move |character| SpelledCharacter::new(character, language))
        .map(Piece::Character)
}

fn recorded(files: &AudioFiles, file: &AudioFile) -> Piece {
    if file.content == ContentId::test_file() {
        return Piece::TestTune;
    }
    let (files, content, runtime) = (files.clone(), file.content.clone(), Handle::current());
    Piece::File {
        content: content.as_str().to_owned(),
        read: Box::new(move || {
            runtime.block_on(async {
                match files.read(&content).await {
                    Ok(bytes) => Ok(bytes.to_vec()),
                    Err(error) if files.has_any().await => {
                        Err(PromptError::Missing(error.to_string()))
                    }
                    Err(error) => Err(PromptError::NoFiles(error.to_string())),
                }
            })
        }),
    }
}
