//! Who speaks a text: the voice that was asked for or the first that can, then those behind it, at last the embedded engine.

use std::sync::Arc;
use std::time::Duration;

use super::{
    NamedVoice, SpeakingTime, SpeakingTurn, SpeechEngine, SpeechError, Utterance, VoiceLanguages,
    VoiceObserver, VoiceOptions, VoiceOutcome,
};
use crate::text::language_of;
use crate::{level, mix, telephone};

/// The name of the embedded voice.
pub const EMBEDDED: &str = "espeak";
/// The part of the time that is left to the embedded engine, whatever the others do: one of so many.
const RESERVED: u32 = 4;

/// Voices in the order in which they are tried, and the embedded engine behind them.
#[derive(Debug)]
pub struct Speaker {
    voices: Vec<NamedVoice>,
    embedded: Arc<dyn SpeechEngine>,
    /// For a whole text, whoever speaks it, with all tries.
    time: Duration,
    observer: Option<Arc<dyn VoiceObserver>>,
}

/// Who is to speak.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct VoiceChoice {
    /// The name of a voice. Nobody of that name: whoever is on this machine speaks.
    pub name: Option<String>,
    /// What is said does not leave this machine.
    pub is_private: bool,
}

/// What was spoken, and by whom.
#[derive(Debug)]
pub struct Spoken {
    pub samples: Vec<f32>,
    pub voice: Arc<str>,
    /// Another voice than the first spoke. It is not cached for long: the better one may be back soon.
    pub is_fallback: bool,
}

impl Speaker {
    pub fn new(voices: Vec<NamedVoice>, embedded: Arc<dyn SpeechEngine>, time: Duration) -> Self {
        Self {
            voices,
            embedded,
            time,
            observer: None,
        }
    }

    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn VoiceObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The voices by their names, the embedded one last.
    pub fn names(&self) -> Vec<Arc<str>> {
        let named = self.voices.iter().map(|voice| Arc::clone(&voice.name));
        named.chain([EMBEDDED.into()]).collect()
    }

    /// What tells the sound of the first voice for a text from that of another.
    pub fn identity(&self, text: &str, choice: &VoiceChoice) -> String {
        match self.candidates(text, choice).first() {
            Some(voice) => voice.identity(),
            None => self.embedded.identity(),
        }
    }

    pub fn embedded_identity(&self) -> String {
        self.embedded.identity()
    }

    /// The name of the first voice for a text.
    pub fn first_voice(&self, text: &str, choice: &VoiceChoice) -> Arc<str> {
        match self.candidates(text, choice).first() {
            Some(voice) => Arc::clone(&voice.name),
            None => EMBEDDED.into(),
        }
    }

    /// Whether the first voice for a text keeps nobody waiting.
    pub fn is_quick(&self, text: &str, choice: &VoiceChoice) -> bool {
        let candidates = self.candidates(text, choice);
        candidates
            .first()
            .is_none_or(|voice| voice.engine.is_quick())
    }

    /// Speaks an utterance at its level, with its background, ready for the line.
    pub fn speak(&self, speech: &Utterance, choice: &VoiceChoice) -> Result<Spoken, SpeechError> {
        self.speak_in_turn(speech, choice, &mut ())
    }

    pub fn speak_in_turn(
        &self,
        speech: &Utterance,
        choice: &VoiceChoice,
        turn: &mut dyn SpeakingTurn,
    ) -> Result<Spoken, SpeechError> {
        let mut time = SpeakingTime::in_turn(self.time, turn);
        let candidates = self.candidates(&speech.text, choice);
        let first = candidates.first().map(|voice| &voice.name);
        let mut named_time = time.within(self.time.saturating_sub(self.time / RESERVED));
        for voice in &candidates {
            let observer = self.observer.as_deref();
            if let Some(samples) = voice.speak(speech, &mut named_time, observer) {
                return Ok(Spoken {
                    samples: ready_for_the_line(samples, speech.options),
                    voice: Arc::clone(&voice.name),
                    is_fallback: first != Some(&voice.name),
                });
            }
            if named_time.is_over() {
                break;
            }
        }
        let samples = self.by_embedded(speech, &mut time)?;
        Ok(Spoken {
            samples: ready_for_the_line(samples, speech.options),
            voice: EMBEDDED.into(),
            is_fallback: first.is_some(),
        })
    }

    /// A character of a code, by the embedded engine, whatever is configured.
    pub fn speak_here(&self, speech: &Utterance) -> Result<Vec<f32>, SpeechError> {
        let samples = self.by_embedded(speech, &mut SpeakingTime::new(self.time))?;
        let loudness = level::to_db(speech.options.loudness());
        Ok(telephone::mastered_syllable(samples, loudness))
    }

    fn by_embedded(
        &self,
        speech: &Utterance,
        time: &mut SpeakingTime<'_>,
    ) -> Result<Vec<f32>, SpeechError> {
        let begun = std::time::Instant::now();
        let spoken = self.embedded.speak(speech, time);
        if let Some(observer) = &self.observer {
            let outcome = match &spoken {
                Ok(_) => VoiceOutcome::Spoken,
                Err(_) => VoiceOutcome::Failed,
            };
            let characters = speech.text.chars().count() as u64;
            observer.record(EMBEDDED, outcome, characters, begun.elapsed());
        }
        spoken
    }

    /// Those who may speak a text, in order. From a voice on this machine none goes to one elsewhere.
    fn candidates(&self, text: &str, choice: &VoiceChoice) -> Vec<&NamedVoice> {
        let wanted = choice.name.as_deref();
        if self.voices.is_empty() || wanted == Some(EMBEDDED) {
            return Vec::new();
        }
        // Nothing to say is said by the embedded engine.
        let Some(language) = language_of(text) else {
            return Vec::new();
        };
        // A Chinese voice speaks English words too, where it is asked to; an English voice speaks no Han.
        let can = |voice: &&NamedVoice| {
            voice.speaks(language)
                || Some(&*voice.name) == wanted && voice.languages == VoiceLanguages::Chinese
        };
        let is_wanted = |voice: &NamedVoice| Some(&*voice.name) == wanted;
        let named = self.voices.iter().position(is_wanted);
        let chosen = named.filter(|place| can(&&self.voices[*place]));
        // Whoever has asked for a voice that cannot speak it has not asked for one elsewhere.
        let is_elsewhere = named.is_some_and(|place| self.voices[place].is_remote);
        let is_unheard = wanted.is_some() && chosen.is_none() && !is_elsewhere;
        let mut is_here = choice.is_private || is_unheard;
        let in_order = self.voices[chosen.unwrap_or(0)..].iter().filter(can);
        in_order
            .filter(|voice| {
                let is_allowed = !(voice.is_remote && is_here);
                is_here |= !voice.is_remote;
                is_allowed && !voice.is_absent() && (voice.is_own || !choice.is_private)
            })
            .collect()
    }
}

/// At the level of the options, with their background.
fn ready_for_the_line(mut samples: Vec<f32>, options: VoiceOptions) -> Vec<f32> {
    let loudness = level::active_rms(&samples);
    if loudness > 0.0 {
        level::scale(&mut samples, options.loudness() / loudness);
    }
    let mut samples = mix::under(samples, options.background, options.loudness());
    level::limit(&mut samples);
    samples
}
