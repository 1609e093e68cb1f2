//! A whole text: its phrases as phonemes, chunk by chunk through the model, each as loud as the others, with pauses of our own.

use sound::level;
use sound::text::{Language, Pause, phrases};

use crate::mandarin::MandarinReader;
use crate::model::Model;
use crate::tokens::{chunks, tokens};
use crate::{Installation, MODEL_RATE, PHRASES, english};

/// What every chunk is brought to; whoever plays it sets the loudness of the whole.
const LOUDNESS: f32 = 0.1;
/// Below this there is nothing to be heard.
const QUIET: f32 = 0.004;
/// Seconds of silence that the model's own are replaced by: around a chunk, and between two.
const MARGIN: f32 = 0.03;
const BETWEEN: f32 = 0.3;

pub struct NaturalVoice {
    installation: Installation,
    /// The program that knows how English words sound.
    espeak: String,
    model: Model,
    mandarin: MandarinReader,
}

impl std::fmt::Debug for NaturalVoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NaturalVoice").finish_non_exhaustive()
    }
}

impl NaturalVoice {
    pub fn open(installation: &Installation, espeak: &str) -> anyhow::Result<Self> {
        Ok(Self {
            espeak: espeak.to_owned(),
            model: Model::open(installation)?,
            mandarin: MandarinReader::open(&installation.folder().join(PHRASES))?,
            installation: installation.clone(),
        })
    }

    /// Samples at the model's rate. A text without words is silence.
    pub fn speak(&mut self, text: &str, speaker: &str, tempo: f32) -> anyhow::Result<Vec<f32>> {
        let mut samples = Vec::new();
        for sentence in self.sentences(text)? {
            for chunk in chunks(&sentence) {
                let tokens = tokens(chunk);
                if tokens.is_empty() {
                    continue;
                }
                let spoken = self
                    .model
                    .speak(&self.installation, &tokens, speaker, tempo)?;
                if !samples.is_empty() {
                    samples.extend(silence(BETWEEN / tempo));
                }
                samples.extend(levelled(&spoken));
            }
        }
        if samples.is_empty() {
            samples.extend(silence(BETWEEN));
        }
        Ok(samples)
    }

    /// The phonemes of each sentence. Languages change inside it as the text does.
    pub fn sentences(&self, text: &str) -> anyhow::Result<Vec<String>> {
        let mut sentences = vec![String::new()];
        for phrase in phrases(text) {
            let said = match phrase.language {
                Language::Chinese => self.mandarin.phonemes(&phrase.text),
                Language::English => english::phonemes(&self.espeak, &phrase.text)?,
            };
            if let Some(sentence) = sentences.last_mut() {
                if !sentence.is_empty() {
                    sentence.push(' ');
                }
                sentence.push_str(&said);
            }
            if phrase.pause == Pause::Long {
                sentences.push(String::new());
            }
        }
        sentences.retain(|sentence| !sentence.is_empty());
        Ok(sentences)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction of a second"
)]
fn length(seconds: f32) -> usize {
    (seconds * MODEL_RATE as f32) as usize
}

fn silence(seconds: f32) -> impl Iterator<Item = f32> {
    std::iter::repeat_n(0.0, length(seconds))
}

/// Without the silence around it, and as loud as every other chunk.
fn levelled(samples: &[f32]) -> Vec<f32> {
    let is_heard = |sample: &f32| sample.abs() > QUIET;
    let Some(first) = samples.iter().position(is_heard) else {
        return Vec::new();
    };
    let last = samples.iter().rposition(is_heard).unwrap_or(first);
    let margin = length(MARGIN);
    let end = (last + margin).min(samples.len());
    let mut heard = samples[first.saturating_sub(margin)..end].to_vec();
    let loudness = level::active_rms(&heard);
    level::scale(&mut heard, LOUDNESS / loudness.max(QUIET));
    level::fit(&mut heard);
    heard
}
