//! The embedded engine: espeak-ng, a program of its own. Its licence and its global state stay out of our process.
//!
//! One process a phrase: it starts in a few milliseconds, and its command line has no way to tell where one text's sound ends and the
//! next begins, so that a process kept warm could not be used safely. Texts arrive on its standard input as words and marks only (see
//! `text`): neither option, nor markup, nor phoneme code can be smuggled in. Mixed text is a process a run of one language and not one
//! text with markup: behind a `<voice>` element the engine comes back to Chinese with the voice that spells (below), and it makes a
//! pause of every change.

use std::ffi::OsString;
use std::time::Duration;

use super::process::Program;
use super::{SpeakingTime, SpeechEngine, SpeechError, Utterance, VoiceOptions};
use crate::text::mandarin::by_sound;
use crate::text::{Language, Pause, Phrase, phrases};
use crate::wav::{AudioError, Wav, WavLimits};
use crate::{RATE, level};

#[derive(Debug, Clone)]
pub struct Espeak {
    pub program: String,
    pub chinese_voice: String,
    pub english_voice: String,
    /// For the whole text.
    pub time: Duration,
    /// Seconds of sound, for the whole text.
    pub second_limit: u32,
}

impl Default for Espeak {
    fn default() -> Self {
        Self {
            program: "espeak-ng".into(),
            // In espeak-ng 1.51 the voice `cmn` spells its syllables in English ("ma one"); this one speaks them.
            chinese_voice: "cmn-latn-pinyin".into(),
            english_voice: "en-us".into(),
            time: Duration::from_secs(20),
            second_limit: 1800,
        }
    }
}

/// The natural pace on the engine's scale, words a minute: 170 English words, and some 4 Chinese syllables a second.
const ENGLISH_PACE: f32 = 160.0;
const CHINESE_PACE: f32 = 210.0;
/// On the engine's scale from 0 to 99. Its own natural pitch is 50, a deep voice of which a telephone loses the lowest part.
const NATURAL_PITCH: f32 = 60.0;
const PITCH_REACH: f32 = 39.0;
/// A text without a single word is this much silence: a call with it is short, not failed.
const NOTHING_SAID: usize = RATE as usize / 2;
/// espeak-ng writes 22,050 samples a second of two bytes.
const BYTES_A_SECOND: usize = 44_100;

impl SpeechEngine for Espeak {
    fn identity(&self) -> String {
        format!("espeak-ng {} {}", self.chinese_voice, self.english_voice)
    }

    fn is_quick(&self) -> bool {
        true
    }

    fn speak(
        &self,
        speech: &Utterance,
        time: &mut SpeakingTime<'_>,
    ) -> Result<Vec<f32>, SpeechError> {
        let mut time = time.within(self.time);
        let phrases = phrases(&speech.text);
        let limit = self.second_limit as usize * RATE as usize;
        let mut samples = Vec::new();
        for (index, phrase) in phrases.iter().enumerate() {
            let spoken = self.phrase(phrase, speech.options, &time)?;
            samples.extend(without_silence(&spoken));
            if index + 1 < phrases.len() {
                let pause = pause(phrase.pause, speech.options);
                samples.extend(std::iter::repeat_n(0.0, pause));
                time.let_others();
            }
            if samples.len() > limit {
                return Err(SpeechError::TooMuch {
                    who: self.program.clone(),
                    limit: self.second_limit as usize * BYTES_A_SECOND,
                });
            }
        }
        if samples.is_empty() {
            samples.resize(NOTHING_SAID, 0.0);
        }
        Ok(samples)
    }
}

impl Espeak {
    /// How the program is called for each phrase of a text: its arguments, and what it reads.
    pub fn calls(&self, speech: &Utterance) -> Vec<(Vec<OsString>, String)> {
        phrases(&speech.text)
            .iter()
            .map(|phrase| {
                (
                    self.arguments(phrase.language, speech.options),
                    written(phrase),
                )
            })
            .collect()
    }

    fn phrase(
        &self,
        phrase: &Phrase,
        options: VoiceOptions,
        time: &SpeakingTime<'_>,
    ) -> Result<Vec<f32>, SpeechError> {
        let program = Program {
            path: &self.program,
            arguments: self.arguments(phrase.language, options),
            environment: Vec::new(),
            time: self.time,
            deadline: time.deadline,
            byte_limit: self.second_limit as usize * BYTES_A_SECOND,
            gives_way: time.gives_way(),
        };
        let bytes = program.run(written(phrase).into_bytes())?;
        let limits = WavLimits {
            bytes: usize::MAX,
            seconds: self.second_limit,
        };
        let mut samples = match Wav::read(&bytes, &limits) {
            Ok(wav) => wav.for_the_line(),
            // Characters that the engine does not know are no reason to fail the rest.
            Err(AudioError::NoSamples) => return Ok(Vec::new()),
            Err(error) => {
                return Err(SpeechError::NotWav {
                    who: self.program.clone(),
                    reason: error.to_string(),
                });
            }
        };
        // Its voices are not equally loud, which would be heard where they meet in a sentence.
        let loudness = level::active_rms(&samples);
        level::scale(&mut samples, PHRASE_LOUDNESS / loudness.max(QUIET));
        Ok(samples)
    }

    fn arguments(&self, language: Language, options: VoiceOptions) -> Vec<OsString> {
        let (name, pace) = match language {
            Language::Chinese => (&self.chinese_voice, CHINESE_PACE),
            Language::English => (&self.english_voice, ENGLISH_PACE),
        };
        let speed = (pace * options.tempo()).round();
        let pitch = (NATURAL_PITCH + options.height() * PITCH_REACH).round();
        [
            "-v",
            name,
            "-s",
            &speed.to_string(),
            "-p",
            &pitch.to_string(),
        ]
        .into_iter()
        .chain(["-m", "-b", "1", "--stdin", "--stdout"])
        .map(Into::into)
        .collect()
    }
}

/// What the engine reads. Its tones are so flat that they are hard to tell apart; with its widest range they are as wide as people's.
/// The markup is ours alone: a phrase holds no character that could be any.
fn written(phrase: &Phrase) -> String {
    match phrase.language {
        Language::English => phrase.text.clone(),
        Language::Chinese => {
            format!(
                "<prosody range=\"200%\">{}</prosody>",
                by_sound(&phrase.text)
            )
        }
    }
}

/// Rests between phrases. The voice changes inside a sentence without one, but not without a breath.
fn pause(pause: Pause, options: VoiceOptions) -> usize {
    let seconds = match pause {
        Pause::None => 0.03,
        Pause::Short => 0.20,
        Pause::Long => 0.40,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a fraction of a second"
    )]
    let samples = (seconds / options.tempo() * RATE as f32) as usize;
    samples
}

/// What every phrase is brought to; the speaker then sets the loudness of the whole.
const PHRASE_LOUDNESS: f32 = 0.1;
/// Below this there is nothing to be heard.
const QUIET: f32 = 0.004;

/// What the engine puts before and behind a phrase would tear a sentence apart where the voice changes.
fn without_silence(samples: &[f32]) -> &[f32] {
    const MARGIN: usize = RATE as usize / 100;
    let is_heard = |sample: &f32| sample.abs() > QUIET;
    let Some(first) = samples.iter().position(is_heard) else {
        return &[];
    };
    let last = samples.iter().rposition(is_heard).unwrap_or(first);
    &samples[first.saturating_sub(MARGIN)..(last + MARGIN).min(samples.len())]
}
