//! A voice with a name: an engine, what it speaks, and how far it is trusted.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::voice_health::VoiceHealth;
use super::{
    SpeakingTime, SpeechEngine, SpeechError, Utterance, VoiceLimits, VoiceObserver, VoiceOptions,
    VoiceOutcome,
};
use crate::text::{Language, in_words};
use crate::{level, stretch};

/// Quieter than this nobody speaks.
const QUIETEST: f32 = 0.001;

/// The languages that a voice speaks. Texts with Han characters are Chinese.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoiceLanguages {
    Chinese,
    English,
    Both,
}

impl VoiceLanguages {
    fn has(self, language: Language) -> bool {
        match self {
            Self::Both => true,
            Self::Chinese => language == Language::Chinese,
            Self::English => language == Language::English,
        }
    }
}

/// What of a text a voice is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// Figures, dates and signs in words.
    Words,
    AsWritten,
}

const ABSENT: &str = "absent";

/// Stands for an engine that is not installed.
#[derive(Debug)]
struct AbsentEngine;

impl SpeechEngine for AbsentEngine {
    fn identity(&self) -> String {
        ABSENT.to_owned()
    }

    fn speak(
        &self,
        _speech: &Utterance,
        _time: &mut SpeakingTime<'_>,
    ) -> Result<Vec<f32>, SpeechError> {
        Err(SpeechError::NotStarted {
            program: ABSENT.to_owned(),
            reason: "it is not installed".to_owned(),
        })
    }
}

#[derive(Debug)]
pub struct NamedVoice {
    pub name: Arc<str>,
    pub engine: Arc<dyn SpeechEngine>,
    pub languages: VoiceLanguages,
    /// What it is given leaves this machine.
    pub is_remote: bool,
    /// It is one of ours: nothing of what it is given goes anywhere else. What a program of others does, only the operator knows.
    pub is_own: bool,
    pub text_form: TextForm,
    pub limits: VoiceLimits,
    health: Mutex<VoiceHealth>,
}

impl NamedVoice {
    /// On this machine, in both languages, with texts in words. The fields tell of another one.
    pub fn new(name: &str, engine: Arc<dyn SpeechEngine>) -> Self {
        Self {
            name: name.into(),
            engine,
            languages: VoiceLanguages::Both,
            is_remote: false,
            is_own: false,
            text_form: TextForm::Words,
            limits: VoiceLimits::default(),
            health: Mutex::default(),
        }
    }

    /// One that is on this machine when it is installed, and is not now. Those behind it stand in for it as they would if it failed.
    pub fn absent(name: &str, languages: VoiceLanguages) -> Self {
        Self {
            languages,
            ..Self::new(name, Arc::new(AbsentEngine))
        }
    }

    pub(super) fn is_absent(&self) -> bool {
        self.engine.identity() == ABSENT
    }

    pub(super) fn speaks(&self, language: Language) -> bool {
        self.languages.has(language)
    }

    pub(super) fn identity(&self) -> String {
        format!("{} {:?}", self.engine.identity(), self.text_form)
    }

    /// Speaks a text, unless it is not to be asked. Whoever counts is told.
    pub(super) fn speak(
        &self,
        speech: &Utterance,
        time: &mut SpeakingTime<'_>,
        observer: Option<&dyn VoiceObserver>,
    ) -> Option<Vec<f32>> {
        let given = match self.text_form {
            TextForm::AsWritten => speech.clone(),
            TextForm::Words => Utterance {
                text: in_words(&speech.text),
                options: speech.options,
            },
        };
        let characters = given.text.chars().count() as u64;
        let record = |outcome, time| {
            if let Some(observer) = observer {
                observer.record(&self.name, outcome, characters, time);
            }
        };
        if !self.health().may_try(Instant::now()) {
            record(VoiceOutcome::Passed, Duration::ZERO);
            return None;
        }
        for attempt in 1..=self.limits.tries.max(1) {
            if !self
                .health()
                .spend(characters, &self.limits, Instant::now())
            {
                record(VoiceOutcome::Passed, Duration::ZERO);
                return None;
            }
            let begun = Instant::now();
            match self.try_to_speak(&given, time) {
                Ok(samples) => {
                    self.health().worked();
                    record(VoiceOutcome::Spoken, begun.elapsed());
                    return Some(samples);
                }
                // That is no fault of it.
                Err(SpeechError::Busy { .. }) => {
                    record(VoiceOutcome::Passed, begun.elapsed());
                    return None;
                }
                Err(error) => {
                    tracing::warn!(%error, attempt, voice = &*self.name, "a voice did not speak");
                    record(VoiceOutcome::Failed, begun.elapsed());
                }
            }
            if time.is_over() {
                break;
            }
        }
        self.health().failed(Instant::now());
        None
    }

    fn try_to_speak(
        &self,
        speech: &Utterance,
        time: &mut SpeakingTime<'_>,
    ) -> Result<Vec<f32>, SpeechError> {
        let samples = self.engine.speak(speech, time)?;
        if level::active_rms(&samples) < QUIETEST {
            return Err(SpeechError::Silent {
                who: self.name.to_string(),
            });
        }
        Ok(with_options(&*self.engine, samples, speech.options))
    }

    /// A panic elsewhere leaves nothing half done here.
    fn health(&self) -> std::sync::MutexGuard<'_, VoiceHealth> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the engine has not done by itself.
fn with_options(
    engine: &dyn SpeechEngine,
    mut samples: Vec<f32>,
    options: VoiceOptions,
) -> Vec<f32> {
    let native = engine.native();
    if !native.pitch {
        samples = stretch::at_pitch(&samples, options.pitch_factor());
    }
    if !native.speed {
        samples = stretch::at_tempo(&samples, options.tempo());
    }
    samples
}
