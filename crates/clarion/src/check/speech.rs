//! Checks that the voice speaks, with a Chinese and an English text, made as for a call.

use std::time::Duration;

use sound::{RATE, Utterance, Voice};

use super::finding::Finding;
use crate::audio_files::prompts;
use crate::config::Config;

const SUBJECT: &str = "speech";
const TEXTS: [(&str, &str); 2] = [
    ("Chinese", "您好，这是一次测试。"),
    ("English", "Hello, this is a test."),
];
/// No sentence is shorter than this.
const SHORTEST: Duration = Duration::from_millis(500);
const QUIETEST: f32 = 0.01;

pub async fn check(config: &Config) -> Vec<Finding> {
    let speaker = match prompts::speaker(&config.speech) {
        Ok(speaker) => speaker,
        Err(error) => {
            let remedy = "see the settings of [speech]";
            return vec![Finding::problem(SUBJECT, format!("{error:#}"), remedy)];
        }
    };
    let program = config.speech.program.clone();
    let spoken = tokio::task::spawn_blocking(move || {
        TEXTS.map(|(language, text)| {
            let speech = Utterance {
                text: text.to_owned(),
                voice: Voice::default(),
            };
            (language, speaker.speak(&speech))
        })
    });
    let Ok(spoken) = spoken.await else {
        let remedy = "this is a mistake of ours: report it";
        return vec![Finding::problem(
            SUBJECT,
            "speaking ended in a panic",
            remedy,
        )];
    };
    let install = format!(
        "install it (apt-get install espeak-ng), or correct [speech]; `{program}` is what is started"
    );
    spoken
        .into_iter()
        .map(|(language, spoken)| match spoken {
            Err(mute) => {
                Finding::problem(SUBJECT, format!("no {language}: {mute}"), install.clone())
            }
            Ok(spoken) => judge(language, &spoken),
        })
        .collect()
}

fn judge(language: &str, spoken: &sound::speech::Spoken) -> Finding {
    let seconds = spoken.samples.len() as f64 / f64::from(RATE);
    let loudness = sound::level::active_rms(&spoken.samples);
    if seconds < SHORTEST.as_secs_f64() || loudness < QUIETEST {
        return Finding::problem(
            SUBJECT,
            format!("the voice for {language} makes {seconds:.1} s of nearly nothing"),
            "see that its voice is installed: `clarion audio play --text …` lets you hear it",
        );
    }
    if spoken.is_fallback {
        return Finding::warning(
            SUBJECT,
            format!("the configured voice does not speak {language}; the embedded one stands in"),
            "try speech.command or speech.url by hand",
        );
    }
    Finding::ok(SUBJECT, format!("{language}: {seconds:.1} s of speech"))
}
