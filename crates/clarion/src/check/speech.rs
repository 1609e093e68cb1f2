//! Checks that the voice speaks, with a Chinese and an English text, made as for a call.

use std::sync::Arc;
use std::time::Duration;

use natural::Installation;
use sound::speech::{Speaker, SpeechError, Spoken};
use sound::{RATE, Utterance, VoiceChoice, VoiceOptions};

use super::finding::Finding;
use crate::audio_files::voices;
use crate::config::Config;

const SUBJECT: &str = "speech";
const TEXTS: [(&str, &str); 2] = [
    ("Chinese", "您好，这是一次测试。"),
    ("English", "Hello, this is a test."),
];
/// No sentence is shorter than this.
const SHORTEST: Duration = Duration::from_millis(500);
const QUIETEST: f32 = 0.01;

/// Every voice by itself, and the embedded one: a fallback must not hide that a voice is mute.
pub async fn check(config: &Config) -> Vec<Finding> {
    let speaker = match voices::speaker(config) {
        Ok(speaker) => speaker,
        Err(error) => {
            let remedy = "see the settings of [speech] and of each [[voice]]";
            return vec![Finding::problem(SUBJECT, format!("{error:#}"), remedy)];
        }
    };
    let tried = tokio::task::spawn_blocking(move || {
        let mut tried = Vec::new();
        for name in speaker.names() {
            for (language, text) in TEXTS {
                tried.extend(try_voice(&speaker, &name, language, text));
            }
        }
        tried
    });
    let Ok(tried) = tried.await else {
        let remedy = "this is a mistake of ours: report it";
        return vec![Finding::problem(
            SUBJECT,
            "speaking ended in a panic",
            remedy,
        )];
    };
    let program = &config.speech.program;
    let tried = tried.iter().map(|tried| tried.judge(program));
    natural(config).into_iter().chain(tried).collect()
}

/// Whether the natural voice is there, if somebody wants it or has installed it.
fn natural(config: &Config) -> Option<Finding> {
    let folder = &config.speech.natural_folder;
    match Installation::find(folder) {
        Ok(installation) => Some(Finding::ok(
            SUBJECT,
            format!("the natural voice is installed: {}", installation.version()),
        )),
        Err(error) if config.voices.names_natural() => Some(Finding::warning(
            SUBJECT,
            format!("the natural voice: {error}"),
            "other voices stand in until then",
        )),
        Err(_) => None,
    }
}

/// A voice that has spoken a language, or has not.
struct TriedVoice {
    name: Arc<str>,
    language: &'static str,
    spoken: Result<Spoken, SpeechError>,
}

/// Nothing where the voice does not speak the language.
fn try_voice(
    speaker: &Speaker,
    name: &Arc<str>,
    language: &'static str,
    text: &str,
) -> Option<TriedVoice> {
    let choice = VoiceChoice {
        name: Some(name.to_string()),
        is_private: false,
    };
    let speech = Utterance {
        text: text.to_owned(),
        options: VoiceOptions::default(),
    };
    (speaker.first_voice(text, &choice) == *name).then(|| TriedVoice {
        name: Arc::clone(name),
        language,
        spoken: speaker.speak(&speech, &choice),
    })
}

impl TriedVoice {
    fn judge(&self, program: &str) -> Finding {
        let (name, language) = (&self.name, self.language);
        let spoken = match &self.spoken {
            Ok(spoken) => spoken,
            Err(mute) => {
                return Finding::problem(
                    SUBJECT,
                    format!("no {language}: {mute}"),
                    format!(
                        "install it (apt-get install espeak-ng), or correct [speech]; `{program}` is what is started"
                    ),
                );
            }
        };
        if spoken.is_fallback {
            let instead = &spoken.voice;
            return Finding::warning(
                SUBJECT,
                format!("the voice {name} does not speak {language}; {instead} stands in"),
                "the log says why; see the settings of that [[voice]]",
            );
        }
        let seconds = spoken.samples.len() as f64 / f64::from(RATE);
        let loudness = sound::level::active_rms(&spoken.samples);
        if seconds < SHORTEST.as_secs_f64() || loudness < QUIETEST {
            return Finding::problem(
                SUBJECT,
                format!("the voice for {language} makes {seconds:.1} s of nearly nothing"),
                "see that its voice is installed: `clarion voice preview …` lets you hear it",
            );
        }
        Finding::ok(
            SUBJECT,
            format!("{language} by {name}: {seconds:.1} s of speech"),
        )
    }
}
