//! The voices of the settings, as the prompt renderer has them speak.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use natural::Installation;
use sound::speech::{
    CommandEngine, Espeak, HttpEngine, NamedVoice, NaturalEngine, NaturalWorkers, RequestForm,
    Speaker, SpeechEngine, VoiceObserver, VoiceOutcome,
};
use sound::wav::WavLimits;
use tokio::runtime::Handle;

use super::transport::SpeechClient;
use crate::config::{Config, HttpUrl, SpeechConfig, SpeechServer, VoiceKind, VoiceSettings};

/// The command by which this program speaks with the natural voice.
pub const SPEAK_COMMAND: &str = "speak-naturally";
/// Where servers of the usual protocol expect texts.
const SPEECH_PATH: &str = "/v1/audio/speech";

/// All voices in their order, with the embedded voice behind them. Must be called on an async runtime if one of them is a server.
pub fn speaker(config: &Config) -> anyhow::Result<Speaker> {
    let natural = NaturalVoices::find(&config.speech)?;
    let mut voices = Vec::new();
    for settings in config.voices.iter() {
        let engine = engine(settings, config, &natural);
        let engine = engine.with_context(|| format!("[[voice]] {:?}", settings.name.as_str()))?;
        voices.push(match engine {
            Some(engine) => named(settings, engine),
            None => NamedVoice::absent(settings.name.as_str(), settings.languages),
        });
    }
    let embedded = embedded(config, config.speech.time);
    let speaker = Speaker::new(voices, Arc::new(embedded), config.speech.text_time);
    Ok(speaker.observed_by(Arc::new(VoiceMetrics)))
}

fn embedded(config: &Config, time: Duration) -> Espeak {
    let speech = &config.speech;
    Espeak {
        program: speech.program.clone(),
        chinese_voice: speech.chinese_voice.clone(),
        english_voice: speech.english_voice.clone(),
        time,
        ..Espeak::default()
    }
}

fn named(settings: &VoiceSettings, engine: Arc<dyn SpeechEngine>) -> NamedVoice {
    let mut voice = NamedVoice::new(settings.name.as_str(), engine);
    voice.languages = settings.languages;
    voice.is_remote = settings.kind.is_remote();
    voice.is_own = settings.kind.is_own();
    voice.text_form = settings.text_form;
    voice.limits = settings.limits;
    voice
}

/// Nothing where the voice is not installed.
fn engine(
    settings: &VoiceSettings,
    config: &Config,
    natural: &NaturalVoices,
) -> anyhow::Result<Option<Arc<dyn SpeechEngine>>> {
    let time = settings.time;
    Ok(Some(match &settings.kind {
        VoiceKind::Natural { speaker } => match natural.speaker(speaker, time) {
            Some(engine) => Arc::new(engine),
            None => return Ok(None),
        },
        VoiceKind::Espeak {
            chinese_voice,
            english_voice,
        } => {
            let or_usual = |voice: &str, usual: String| match voice {
                "" => usual,
                voice => voice.to_owned(),
            };
            let usual = embedded(config, time);
            Arc::new(Espeak {
                chinese_voice: or_usual(chinese_voice, usual.chinese_voice),
                english_voice: or_usual(english_voice, usual.english_voice),
                ..usual
            })
        }
        VoiceKind::Command { program, arguments } => Arc::new(CommandEngine {
            program: program.clone(),
            arguments: arguments.clone(),
            time,
            limits: WavLimits::default(),
            version: settings.version.clone(),
        }),
        VoiceKind::Json(server) => {
            let url = server.url.as_str().to_owned();
            Arc::new(served(settings, server, url, RequestForm::Json)?)
        }
        VoiceKind::OpenAi {
            server,
            model,
            speaker,
            native_speed,
        } => {
            let form = RequestForm::OpenAi {
                model: model.clone(),
                speaker: speaker.clone(),
                has_speed: *native_speed,
            };
            Arc::new(served(settings, server, speech_url(&server.url), form)?)
        }
    }))
}

fn served(
    settings: &VoiceSettings,
    server: &SpeechServer,
    url: String,
    form: RequestForm,
) -> anyhow::Result<HttpEngine> {
    Ok(HttpEngine {
        url,
        form,
        transport: Arc::new(SpeechClient::new(server, Handle::current())?),
        time: settings.time,
        limits: WavLimits::default(),
        version: settings.version.clone(),
    })
}

/// People write the address of a server with or without the path that all of them share.
fn speech_url(url: &HttpUrl) -> String {
    let written = url.as_str().trim_end_matches('/');
    if url.is_bare() {
        return format!("{written}{SPEECH_PATH}");
    }
    match written.strip_suffix("/v1") {
        Some(server) => format!("{server}{SPEECH_PATH}"),
        None => url.as_str().to_owned(),
    }
}

/// How many processes the natural voice may have: none where it is not installed.
pub fn natural_processes(config: &Config) -> usize {
    let speech = &config.speech;
    Installation::find(&speech.natural_folder).map_or(0, |_| speech.natural_workers)
}

/// The natural voice, if it is installed. All of its speakers share its processes.
struct NaturalVoices(Option<(Arc<NaturalWorkers>, Installation)>);

impl NaturalVoices {
    fn find(speech: &SpeechConfig) -> anyhow::Result<Self> {
        let Ok(installation) = Installation::find(&speech.natural_folder) else {
            return Ok(Self(None));
        };
        let program = std::env::current_exe().context("this program")?;
        let program = program.display().to_string();
        let arguments = [
            SPEAK_COMMAND.into(),
            "--folder".into(),
            installation.folder().into(),
            "--espeak".into(),
            speech.program.clone().into(),
        ];
        let workers = NaturalWorkers::new(program, arguments.into(), speech.natural_workers);
        Ok(Self(Some((Arc::new(workers), installation))))
    }

    fn speaker(&self, name: &str, time: Duration) -> Option<NaturalEngine> {
        let (workers, installation) = self.0.as_ref()?;
        Some(NaturalEngine {
            workers: Arc::clone(workers),
            speaker: name.to_owned(),
            time,
            version: installation.version().to_owned(),
        })
    }
}

/// Counts what voices do for `/metrics`.
#[derive(Debug)]
struct VoiceMetrics;

impl VoiceObserver for VoiceMetrics {
    fn record(&self, voice: &str, outcome: VoiceOutcome, characters: u64, time: Duration) {
        let voice = voice.to_owned();
        metrics::counter!("clarion_voice_texts_total", "voice" => voice.clone(), "result" => outcome.as_str())
            .increment(1);
        if outcome == VoiceOutcome::Passed {
            return;
        }
        metrics::counter!("clarion_voice_characters_total", "voice" => voice.clone())
            .increment(characters);
        metrics::histogram!("clarion_voice_seconds", "voice" => voice).record(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_protocol_is_added_where_it_is_missing() {
        for (written, asked) in [
            ("http://tts:8880", "http://tts:8880/v1/audio/speech"),
            ("http://tts:8880/", "http://tts:8880/v1/audio/speech"),
            ("https://tts/v1", "https://tts/v1/audio/speech"),
            ("https://tts/v1/", "https://tts/v1/audio/speech"),
            ("https://tts/speak?a=1", "https://tts/speak?a=1"),
            ("https://tts/v1/audio/speech", "https://tts/v1/audio/speech"),
        ] {
            assert_eq!(speech_url(&written.parse().unwrap()), asked);
        }
    }
}
