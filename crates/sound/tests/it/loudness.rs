//! Every prompt is as loud as the others at the other end of the line, whoever made it and however loud it was.

use std::sync::Arc;
use std::time::Duration;

use sound::renderer::{Piece, Requester};
use sound::speech::{
    EMBEDDED, Espeak, NamedVoice, Speaker, SpeakingTime, SpeechEngine, SpeechError,
};
use sound::wav::mono_16_bit;
use sound::{PromptRenderer, RendererSettings, Utterance, VoiceChoice, VoiceOptions, loudness};
use supervisor::Supervisor;

use super::measure::floats;
use super::support::{sine, speech};

const TARGET: f32 = -23.0;

fn file(name: &str, samples: &[f64]) -> Piece {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "no sample is louder than 1"
    )]
    let whole: Vec<i16> = samples
        .iter()
        .map(|sample| (sample * 32_767.0) as i16)
        .collect();
    let bytes = mono_16_bit(&whole, 8000);
    Piece::File {
        content: name.to_owned(),
        read: Box::new(move || Ok(bytes)),
    }
}

/// Bursts of a tone, as loud as said.
fn bursts(strength: f64) -> Vec<f64> {
    let tone = sine(800.0, 8000, 0.3, strength);
    let pause = vec![0.0; 800];
    [tone.clone(), pause.clone(), tone.clone(), pause, tone].concat()
}

/// A voice that is as loud as said.
#[derive(Debug)]
struct Whistler(f64);

impl SpeechEngine for Whistler {
    fn identity(&self) -> String {
        format!("whistler {}", self.0)
    }

    fn speak(&self, _: &Utterance, _: &mut SpeakingTime<'_>) -> Result<Vec<f32>, SpeechError> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a sample needs no more than 24 bits"
        )]
        let samples = bursts(self.0).iter().map(|sample| *sample as f32).collect();
        Ok(samples)
    }
}

fn spoken_by(voice: &str, text: &str) -> Piece {
    Piece::Speech {
        speech: speech(text, VoiceOptions::default()),
        choice: VoiceChoice {
            name: Some(voice.to_owned()),
            is_private: false,
        },
    }
}

fn spoken(text: &str) -> Piece {
    spoken_by(EMBEDDED, text)
}

#[tokio::test]
async fn every_prompt_is_as_loud_as_the_others() {
    let whistlers = [("loud", 0.95), ("soft", 0.01)];
    let whistlers =
        whistlers.map(|(name, strength)| NamedVoice::new(name, Arc::new(Whistler(strength))));
    let speaker = Speaker::new(
        whistlers.into(),
        Arc::new(Espeak::default()),
        Duration::from_secs(60),
    );
    let renderer =
        PromptRenderer::open(&Supervisor::new(), &RendererSettings::default(), speaker).unwrap();
    let pieces = [
        (
            "English",
            spoken("Your order has been shipped and will arrive tomorrow."),
        ),
        ("Chinese", spoken("您的快递已经到达，请及时领取。")),
        ("a word", spoken("Yes.")),
        ("a loud voice", spoken_by("loud", "Yes.")),
        ("a soft voice", spoken_by("soft", "Yes.")),
        ("a loud file", file("loud", &bursts(0.95))),
        ("a soft file", file("soft", &bursts(0.01))),
        ("the tune", Piece::TestTune),
    ];
    for (name, piece) in pieces {
        let piece = renderer
            .piece(Requester("anyone"), piece)
            .ready()
            .await
            .unwrap();
        let samples = floats(&piece.sound.decode());
        let loudness = loudness::integrated(&samples).unwrap();
        assert!((loudness - TARGET).abs() < 1.0, "{name}: {loudness} LUFS");
        assert!(samples.iter().all(|sample| sample.abs() < 0.98), "{name}");
    }
}
