//! Tones as they begin and end.

use super::spectrum::{SoundFrame, Tone};

/// An interruption of so many frames ends a tone.
const MISSES: u32 = 2;
/// How far a tone may be from itself: a part of its frequency, and hertz.
const TOLERANCE: f32 = 0.02;
const TOLERANCE_HERTZ: f32 = 6.0;
/// The first frames of a tone are cut off at its beginning: what they have is not exact, and the first may have anything. A tone has more of them.
const BEGINNING: u32 = 2;

/// Tones by which networks say how a call goes: one or two between these, and the pair of 480 and 620 Hz of North America.
const PROGRESS: std::ops::RangeInclusive<f32> = 330.0..=500.0;
const PROGRESS_PAIR: [std::ops::RangeInclusive<f32>; 2] = [460.0..=500.0, 600.0..=640.0];

impl Tone {
    pub fn is_one(self) -> bool {
        (self.high - self.low).abs() < f32::EPSILON
    }

    /// One frequency within this part of another.
    pub fn is_at(self, frequency: f32, part: f32) -> bool {
        self.is_one() && (self.low - frequency).abs() <= frequency * part
    }

    pub fn is_progress(self) -> bool {
        let [low, high] = PROGRESS_PAIR;
        (PROGRESS.contains(&self.low) && PROGRESS.contains(&self.high))
            || (low.contains(&self.low) && high.contains(&self.high))
    }

    /// Two tones that are close together are one that beats: what the network says is told by its rhythm.
    fn is_like(self, other: Self) -> bool {
        let is_near = |a: f32, b: f32| (a - b).abs() <= b * TOLERANCE + TOLERANCE_HERTZ;
        (self.is_progress() && other.is_progress())
            || (is_near(self.low, other.low) && is_near(self.high, other.high))
    }
}

/// A tone that is over, in frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    pub tone: Tone,
    /// Since the tone before it, or since the beginning.
    pub pause: u32,
    pub length: u32,
    /// Decibels between its softest and its loudest frame, without the first and the last.
    pub spread: f32,
}

#[derive(Debug, Default)]
pub struct ToneRuns {
    run: Option<Run>,
    /// Frames since the last tone.
    pause: u32,
}

#[derive(Debug)]
struct Run {
    burst: Burst,
    misses: u32,
    /// Of its last frame.
    level: f32,
    /// The softest and the loudest of those before it, but for the first.
    levels: Option<(f32, f32)>,
}

impl Run {
    fn go_on(&mut self, tone: Tone, level: f32) {
        if self.burst.length <= BEGINNING {
            self.burst.tone = tone;
        }
        if self.burst.length > 1 {
            let (softest, loudest) = self.levels.unwrap_or((self.level, self.level));
            let levels = (softest.min(self.level), loudest.max(self.level));
            self.levels = Some(levels);
            self.burst.spread = levels.1 - levels.0;
        }
        self.level = level;
        let missed = std::mem::take(&mut self.misses);
        self.burst.length = self.burst.length.saturating_add(missed + 1);
    }
}

impl ToneRuns {
    /// Takes the next frame. Returns a tone that has ended.
    pub fn hear(&mut self, frame: SoundFrame) -> Option<Burst> {
        let Some(run) = &mut self.run else {
            self.begin(frame);
            return None;
        };
        let goes_on = |tone: &Tone| run.burst.length == 1 || tone.is_like(run.burst.tone);
        if let Some(tone) = frame.tone.filter(goes_on) {
            run.go_on(tone, frame.level);
            return None;
        }
        run.misses += 1;
        if run.misses < MISSES {
            return None;
        }
        let (burst, misses) = (run.burst, run.misses);
        let is_tone = burst.length > BEGINNING;
        self.pause = if is_tone {
            misses - 1
        } else {
            burst.pause.saturating_add(burst.length + misses - 1)
        };
        self.begin(frame);
        is_tone.then_some(burst)
    }

    /// The tone that is heard now, and for how many frames it has been.
    pub fn sounding(&self) -> Option<(Tone, u32)> {
        let run = self.run.as_ref()?;
        Some((run.burst.tone, run.burst.length))
    }

    fn begin(&mut self, frame: SoundFrame) {
        self.run = frame.tone.map(|tone| Run {
            burst: Burst {
                tone,
                pause: self.pause,
                length: 1,
                spread: 0.0,
            },
            misses: 0,
            level: frame.level,
            levels: None,
        });
        if self.run.is_none() {
            self.pause = self.pause.saturating_add(1);
        }
    }
}
