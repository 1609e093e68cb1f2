//! Text to samples. One engine is embedded; others come by configuration and fall back to it.

mod command;
mod espeak;
mod http;
mod process;
mod readings;
mod voice;

pub use command::CommandEngine;
pub use espeak::Espeak;
pub use http::{HttpEngine, SpeechTransport};
pub use voice::Voice;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::level;
use crate::mix;

/// A text to be spoken, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Utterance {
    pub text: String,
    pub voice: Voice,
}

/// Something that speaks. It may block: it is called on the threads of the prompt renderer.
pub trait SpeechEngine: Send + Sync + std::fmt::Debug {
    /// Distinguishes its sound from that of another engine or another setting of this one; part of the key under which a prompt is
    /// cached.
    fn identity(&self) -> String;

    /// Speaks a whole text in its time, at the pitch and speed of the voice. Loudness and background are not its business.
    fn speak(
        &self,
        speech: &Utterance,
        time: &mut SpeakingTime<'_>,
    ) -> Result<Vec<f32>, SpeechError>;
}

/// The time for a text. Between two parts of it the thread may do something else, which does not count.
pub struct SpeakingTime<'a> {
    deadline: Instant,
    interlude: Option<&'a mut dyn FnMut()>,
}

impl std::fmt::Debug for SpeakingTime<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpeakingTime")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl<'a> SpeakingTime<'a> {
    pub fn new(time: Duration) -> Self {
        Self {
            deadline: Instant::now() + time,
            interlude: None,
        }
    }

    fn with_interlude(time: Duration, interlude: &'a mut dyn FnMut()) -> Self {
        Self {
            interlude: Some(interlude),
            ..Self::new(time)
        }
    }

    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The same, but for no longer than that.
    fn within(&mut self, time: Duration) -> SpeakingTime<'_> {
        SpeakingTime {
            deadline: self.deadline.min(Instant::now() + time),
            interlude: match &mut self.interlude {
                Some(interlude) => Some(&mut **interlude),
                None => None,
            },
        }
    }

    /// Between two parts of a text.
    pub fn let_others(&mut self) {
        if let Some(interlude) = &mut self.interlude {
            let begun = Instant::now();
            interlude();
            self.deadline += begun.elapsed();
        }
    }
}

/// Why an engine did not speak.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpeechError {
    #[error("{program} cannot be started: {reason}")]
    NotStarted { program: String, reason: String },
    #[error("{who} took longer than {time:?}")]
    TooSlow { who: String, time: Duration },
    #[error("{who} sent more than {limit} bytes")]
    TooMuch { who: String, limit: usize },
    #[error("{who} failed: {reason}")]
    Failed { who: String, reason: String },
    #[error("what {who} sent cannot be played: {reason}")]
    NotWav { who: String, reason: String },
}

/// The configured engine, if there is one, and the embedded one behind it.
#[derive(Debug)]
pub struct Speaker {
    pub preferred: Option<Preferred>,
    pub embedded: Arc<dyn SpeechEngine>,
    /// For a whole text, whoever speaks it, with all tries.
    pub time: Duration,
}

/// The part of the time that is left to the embedded engine, whatever the configured one does: one of so many.
const RESERVED: u32 = 4;

#[derive(Debug)]
pub struct Preferred {
    pub engine: Arc<dyn SpeechEngine>,
    /// How often it is asked before the embedded engine speaks instead.
    pub tries: u32,
}

/// What was spoken, and by which engine.
#[derive(Debug)]
pub struct Spoken {
    pub samples: Vec<f32>,
    /// The embedded engine spoke as the fallback. It is not cached for long: the better voice may be back soon.
    pub is_fallback: bool,
}

impl Speaker {
    pub fn identity(&self) -> String {
        let engine = self.preferred.as_ref().map(|preferred| &preferred.engine);
        engine.unwrap_or(&self.embedded).identity()
    }

    /// Speaks an utterance at its level, with its background, ready for the line.
    pub fn speak(&self, speech: &Utterance) -> Result<Spoken, SpeechError> {
        self.speak_with(speech, &mut || {})
    }

    /// The same; `interlude` is called between two parts of the text.
    pub fn speak_with(
        &self,
        speech: &Utterance,
        interlude: &mut dyn FnMut(),
    ) -> Result<Spoken, SpeechError> {
        let time = SpeakingTime::with_interlude(self.time, interlude);
        let (samples, is_fallback) = self.raw(speech, time)?;
        Ok(Spoken {
            samples: ready_for_the_line(samples, speech.voice),
            is_fallback,
        })
    }

    /// By the embedded engine, whatever is configured: for what must not leave this machine.
    pub fn speak_here(&self, speech: &Utterance) -> Result<Vec<f32>, SpeechError> {
        let samples = self
            .embedded
            .speak(speech, &mut SpeakingTime::new(self.time))?;
        Ok(ready_for_the_line(samples, speech.voice))
    }

    fn raw(
        &self,
        speech: &Utterance,
        mut time: SpeakingTime<'_>,
    ) -> Result<(Vec<f32>, bool), SpeechError> {
        let Some(preferred) = &self.preferred else {
            return Ok((self.embedded.speak(speech, &mut time)?, false));
        };
        let mut preferred_time = time.within(self.time.saturating_sub(self.time / RESERVED));
        for attempt in 1..=preferred.tries.max(1) {
            match preferred.engine.speak(speech, &mut preferred_time) {
                Ok(samples) => return Ok((samples, false)),
                Err(error) => tracing::warn!(%error, attempt, "the configured voice did not speak"),
            }
            if Instant::now() >= preferred_time.deadline {
                break;
            }
        }
        Ok((self.embedded.speak(speech, &mut time)?, true))
    }
}

/// At the level of the voice, with its background.
fn ready_for_the_line(mut samples: Vec<f32>, voice: Voice) -> Vec<f32> {
    let loudness = level::active_rms(&samples);
    if loudness > 0.0 {
        level::scale(&mut samples, voice.loudness() / loudness);
    }
    let mut samples = mix::under(samples, voice.background, voice.loudness());
    level::limit(&mut samples);
    samples
}
