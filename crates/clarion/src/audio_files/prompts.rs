//! Opens the prompt renderer by the settings, and translates a call's prompt for it.

use std::sync::Arc;

use anyhow::Context;
use sound::renderer::{Piece, Requester};
use sound::speech::{CommandEngine, Espeak, HttpEngine, Preferred, Speaker, SpeechEngine};
use sound::spelled::SpelledCharacter;
use sound::text::Language;
use sound::{Playlist, PromptError, PromptRenderer, RendererSettings, Voice};
use supervisor::Supervisor;
use tokio::runtime::Handle;

use super::AudioFiles;
use super::transport::SpeechClient;
use crate::config::{Config, SpeechConfig, SpeechService};
use crate::disk_room::FLOORS_FOR_FILES;
use crate::domain::prompt::{AudioFile, CodeLanguage, ContentId, Prompt, Speech, VerifyCode};
use crate::private_files;

/// Opens the prompt renderer. Must be called on an async runtime, which reads the audio files.
pub fn open(supervisor: &Supervisor, config: &Config) -> anyhow::Result<PromptRenderer> {
    let prompts = &config.prompts;
    let defaults = RendererSettings::default();
    let settings = RendererSettings {
        workers: prompts.workers.unwrap_or(defaults.workers),
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
    PromptRenderer::open(supervisor, &settings, speaker(&config.speech)?)
        .context("cannot open the folder of prompts")
}

/// Returns the voice of the settings, with the embedded voice as its fallback.
pub fn speaker(config: &SpeechConfig) -> anyhow::Result<Speaker> {
    let time = config.time;
    let limits = sound::wav::WavLimits::default();
    let version = config.version.clone();
    let engine: Option<Arc<dyn SpeechEngine>> = match &config.service {
        None => None,
        Some(SpeechService::Command { program, arguments }) => Some(Arc::new(CommandEngine {
            program: program.clone(),
            arguments: arguments.clone(),
            time,
            limits,
            version,
        })),
        Some(SpeechService::Http { url, ca_file }) => Some(Arc::new(HttpEngine {
            url: url.as_str().to_owned(),
            transport: Arc::new(SpeechClient::new(ca_file.as_deref(), Handle::current())?),
            time,
            limits,
            version,
        })),
    };
    Ok(Speaker {
        preferred: engine.map(|engine| Preferred {
            engine,
            tries: config.tries,
        }),
        embedded: Arc::new(Espeak {
            program: config.program.clone(),
            chinese_voice: config.chinese_voice.clone(),
            english_voice: config.english_voice.clone(),
            time,
            ..Espeak::default()
        }),
        time: config.text_time,
    })
}

/// Makes a call's prompt ready: the text first, then the files, then the code. Requesters take turns.
pub async fn make_ready(
    renderer: &PromptRenderer,
    files: &AudioFiles,
    requester: Requester<'_>,
    prompt: &Prompt,
) -> Result<Playlist, PromptError> {
    let speech = prompt.speech.iter().map(spoken);
    let files = prompt.files.iter().map(|file| recorded(files, file));
    let code = prompt.code.iter().flat_map(spelled);
    let pieces = speech.chain(files).chain(code).collect();
    renderer.prompt(requester, pieces, prompt.plays).await
}

pub fn spoken(speech: &Speech) -> Piece {
    Piece::Speech(sound::Utterance {
        text: speech.text.clone(),
        voice: Voice {
            speed: speech.speed,
            volume: speech.volume,
            pitch: speech.pitch,
            background: speech.background,
        },
    })
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
            let bytes = runtime.block_on(files.read(&content));
            bytes
                .map(|bytes| bytes.to_vec())
                .map_err(|error| error.to_string())
        }),
    }
}
