//! Who speaks first after the answer: a person says a word or two and waits, a machine goes on, and then beeps.
//!
//! All times are in frames of 20 ms.

use super::Answerer;
use super::spectrum::Tone;
use super::tone_runs::Burst;

/// A voice is so many decibels above the quietest that the line has been lately, but what is weaker than the first figure is none, and what is louder than the
/// second always is one.
const OVER_NOISE: f32 = 9.0;
const WEAKEST_VOICE: f32 = -46.0;
const SURE_VOICE: f32 = -32.0;
/// What was quiet is remembered for one to two of these: 0.8 s.
const MEMORY: u32 = 40;

/// A shorter sound is no word, and a shorter pause is within one.
const SHORTEST_WORD: u32 = 5;
const LONGEST_GAP: u32 = 6;

/// Whoever is silent for so long after a word waits for an answer: 0.8 s.
const WAITING: u32 = 40;
/// A machine speaks for so long without such a pause, or says so many words.
const LONG_GREETING: u32 = 80;
const MANY_WORDS: u32 = 6;
/// A machine that is silent for so long has no beep, or it was not heard: 5 s.
const NO_BEEP: u32 = 250;

/// How long a beep is, and what frequencies it has.
const BEEP: std::ops::RangeInclusive<u32> = 7..=150;
const BEEP_HERTZ: std::ops::RangeInclusive<f32> = 350.0..=3000.0;
/// It keeps its level, as no voice does: decibels.
const BEEP_SPREAD: f32 = 3.0;
/// A beep that could be a busy tone is one if no other follows for so long.
const ALONE: u32 = 45;

/// The level below which there is no voice.
#[derive(Debug)]
struct NoiseFloor {
    /// The quietest of this stretch and of the one before.
    quietest: [f32; 2],
    frames: u32,
}

impl Default for NoiseFloor {
    fn default() -> Self {
        Self {
            quietest: [0.0; 2],
            frames: 0,
        }
    }
}

impl NoiseFloor {
    fn is_voice(&mut self, level: f32) -> bool {
        if self.frames == MEMORY {
            self.quietest = [level, self.quietest[0]];
            self.frames = 0;
        }
        self.frames += 1;
        self.quietest[0] = self.quietest[0].min(level);
        let floor = self.quietest[0].min(self.quietest[1]);
        level > (floor + OVER_NOISE).clamp(WEAKEST_VOICE, SURE_VOICE)
    }
}

#[derive(Debug, Default)]
pub struct CalleeGreeting {
    floor: NoiseFloor,
    /// The voice in the word that is said now, or was last.
    word: u32,
    /// Since the last voice.
    silence: u32,
    words: u32,
    spoken: u32,
}

impl CalleeGreeting {
    pub fn hear(&mut self, level: f32, is_tone: bool) {
        let is_voice = self.floor.is_voice(level) && !is_tone;
        if !is_voice {
            self.silence = self.silence.saturating_add(1);
            return;
        }
        if self.silence > LONGEST_GAP {
            self.word = 0;
        }
        self.silence = 0;
        self.word = self.word.saturating_add(1);
        if self.word == SHORTEST_WORD {
            self.words = self.words.saturating_add(1);
            self.spoken = self.spoken.saturating_add(SHORTEST_WORD);
        } else if self.word > SHORTEST_WORD {
            self.spoken = self.spoken.saturating_add(1);
        }
    }

    pub fn spoken(&self) -> u32 {
        self.spoken
    }

    pub fn words(&self) -> u32 {
        self.words
    }

    pub fn answerer(&self) -> Option<Answerer> {
        if self.spoken >= LONG_GREETING || self.words >= MANY_WORDS {
            return Some(Answerer::Machine);
        }
        (self.words > 0 && self.silence >= WAITING).then_some(Answerer::Human)
    }

    /// A machine has said what it says, and nothing more comes.
    pub fn is_over(&self) -> bool {
        self.silence >= NO_BEEP
    }
}

/// Waits for the tone after which a machine records.
#[derive(Debug, Default)]
pub struct Beep {
    /// Frames since a tone that could also be a busy tone.
    alone: Option<u32>,
}

impl Beep {
    /// Takes a tone that has ended, and the one that is heard. Returns true when a beep is over.
    pub fn hear(&mut self, ended: Option<Burst>, sounding: Option<(Tone, u32)>) -> bool {
        let beep = ended.filter(|burst| {
            let is_heard = BEEP_HERTZ.contains(&burst.tone.low);
            let is_steady = burst.tone.is_one() && burst.spread <= BEEP_SPREAD;
            is_heard && is_steady && BEEP.contains(&burst.length)
        });
        if let Some(beep) = beep {
            if !beep.tone.is_progress() {
                return true;
            }
            self.alone = Some(0);
        }
        if sounding.is_some_and(|(tone, _)| tone.is_progress()) {
            self.alone = None;
        }
        let Some(frames) = &mut self.alone else {
            return false;
        };
        *frames += 1;
        let is_alone = *frames >= ALONE;
        if is_alone {
            self.alone = None;
        }
        is_alone
    }
}
