//! A natural voice offline. A text becomes phonemes, phonemes become the model's tokens, and the model makes sound of them.
//!
//! It is the other end of `sound::speech::natural`: a process that speaks one text after the other (`serve`). It knows no network: what it needs
//! is a folder that `clarion voice install natural` has filled. The same text gives the same sound, so it can be cached.

mod english;
pub mod install;
mod installation;
mod ipa;
mod mandarin;
mod model;
mod tokens;
mod voice;

pub use installation::{Installation, MODEL, PHRASES, RUNTIME, SPEAKERS, VERSION_FILE};
pub use voice::NaturalVoice;

use std::io::{self, Write};

use sound::speech::SpeechRequest;
use sound::wav::mono_16_bit;

/// Samples a second that the model makes.
pub const MODEL_RATE: u32 = 24_000;

/// Speaks what is asked for on standard input until it ends. The model is loaded at once.
/// `espeak` is the program that knows how English words sound.
pub fn serve(installation: &Installation, espeak: &str) -> anyhow::Result<()> {
    let mut voice = NaturalVoice::open(installation, espeak)?;
    let (mut requests, mut answers) = (io::stdin().lock(), io::stdout().lock());
    while let Some(request) = SpeechRequest::read(&mut requests)? {
        let spoken = voice.speak(&request.text, &request.speaker, request.tempo);
        let answer = spoken
            .map(|samples| mono_16_bit(&sound::level::to_whole(&samples), MODEL_RATE))
            .map_err(|error| format!("{error:#}"));
        SpeechRequest::answer(&mut answers, &answer)?;
    }
    answers.flush()?;
    Ok(())
}
