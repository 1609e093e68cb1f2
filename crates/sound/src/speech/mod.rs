//! Text to samples. One engine is embedded; others come by configuration as voices with names, and fall back to each other and to it.

mod command;
mod espeak;
mod http;
mod named_voice;
mod natural;
mod process;
mod speaker;
mod voice_health;
mod voice_options;

pub use command::CommandEngine;
pub use espeak::Espeak;
pub use http::{HttpEngine, RequestForm, SpeechTransport};
pub use named_voice::{NamedVoice, TextForm, VoiceLanguages};
pub use natural::{NaturalEngine, NaturalWorkers, SpeechRequest};
pub use speaker::{EMBEDDED, Speaker, Spoken, VoiceChoice};
pub use voice_health::VoiceLimits;
pub use voice_options::VoiceOptions;

use std::time::{Duration, Instant};

/// A text to be spoken, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Utterance {
    pub text: String,
    pub options: VoiceOptions,
}

/// Something that speaks. It may block: it is called on the threads of the prompt renderer.
pub trait SpeechEngine: Send + Sync + std::fmt::Debug {
    /// Distinguishes its sound from that of another engine or another setting of this one; part of the key under which a prompt is
    /// cached.
    fn identity(&self) -> String;

    /// What it does by itself of the options. The rest is done to its sound.
    fn native(&self) -> NativeOptions {
        NativeOptions::ALL
    }

    /// It speaks faster than anybody listens, and depends on nobody else. Others hold their thread for as long as they like, up to their time.
    fn is_quick(&self) -> bool {
        false
    }

    /// Speaks a whole text in its time, with the options that it has. Loudness and background are not its business.
    fn speak(
        &self,
        speech: &Utterance,
        time: &mut SpeakingTime<'_>,
    ) -> Result<Vec<f32>, SpeechError>;
}

/// The options that an engine follows by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeOptions {
    pub speed: bool,
    pub pitch: bool,
}

impl NativeOptions {
    pub const ALL: Self = Self {
        speed: true,
        pitch: true,
    };
}

/// What became of a text that a voice was to speak, for whoever counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoiceOutcome {
    Spoken,
    Failed,
    /// It was not asked: it rests after failures, or has spoken enough for a day.
    Passed,
}

impl VoiceOutcome {
    pub const ALL: [Self; 3] = [Self::Spoken, Self::Failed, Self::Passed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spoken => "spoken",
            Self::Failed => "failed",
            Self::Passed => "passed",
        }
    }
}

/// Counts what voices do.
pub trait VoiceObserver: Send + Sync + std::fmt::Debug {
    /// `characters` were given to the voice, and it took so long.
    fn record(&self, voice: &str, outcome: VoiceOutcome, characters: u64, time: Duration);
}

/// The turn of whoever has a text spoken.
pub trait SpeakingTurn {
    /// Between two parts of the text.
    fn let_others(&mut self) {}

    /// They have had texts spoken for a while without a rest: the programs that do it take what processor time others leave.
    fn is_long(&self) -> bool {
        false
    }
}

/// Nobody else waits.
impl SpeakingTurn for () {}

/// The time for a text. Between two parts of it the thread may do something else, which does not count.
pub struct SpeakingTime<'a> {
    deadline: Instant,
    turn: Option<&'a mut dyn SpeakingTurn>,
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
            turn: None,
        }
    }

    fn in_turn(time: Duration, turn: &'a mut dyn SpeakingTurn) -> Self {
        Self {
            turn: Some(turn),
            ..Self::new(time)
        }
    }

    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// The same, but for no longer than that.
    fn within(&mut self, time: Duration) -> SpeakingTime<'_> {
        SpeakingTime {
            deadline: self.deadline.min(Instant::now() + time),
            turn: match &mut self.turn {
                Some(turn) => Some(&mut **turn),
                None => None,
            },
        }
    }

    /// Between two parts of a text.
    pub fn let_others(&mut self) {
        if let Some(turn) = &mut self.turn {
            let begun = Instant::now();
            turn.let_others();
            self.deadline += begun.elapsed();
        }
    }

    /// Whether a program that speaks takes what processor time others leave.
    fn gives_way(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.is_long())
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
    #[error("what {who} sent is silent")]
    Silent { who: String },
    #[error("{who} has too much to do to speak in time")]
    Busy { who: String },
}
