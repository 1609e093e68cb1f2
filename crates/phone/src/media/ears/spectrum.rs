//! 20 ms of sound: how loud they are, and the tone that they consist of, if they do.

use std::f32::consts::TAU;
use std::sync::{Arc, LazyLock};

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

/// Samples from one judgement to the next, and samples that are judged at once.
pub const FRAME: usize = 160;
const WINDOW: usize = 256;
const LINES: usize = WINDOW / 2 + 1;
const HERTZ_A_LINE: f32 = 8000.0 / WINDOW as f32;

/// What is lower or higher is no part of what a line carries: the hum of the mains, and what a filter leaves over.
const LOWEST: usize = 6;
const HIGHEST: usize = LINES - 4;
/// The energy of a tone lies within so many lines on either side of the strongest.
const SIDE: usize = 2;

/// The weakest tone, in decibels of full scale.
const LEAST_TONE: f32 = -45.0;
/// The part of all energy that one tone has, or two have.
const ONE_TONE: f32 = 0.8;
const TWO_TONES: f32 = 0.85;
/// The weaker of two tones has at least this part of the stronger one: -13 dB.
const WEAKER: f32 = 0.05;

static TRANSFORM: LazyLock<Arc<dyn RealToComplex<f32>>> =
    LazyLock::new(|| RealFftPlanner::new().plan_fft_forward(WINDOW));

/// Hann's window.
static WEIGHTS: LazyLock<[f32; WINDOW]> = LazyLock::new(|| {
    std::array::from_fn(|place| 0.5 - 0.5 * (TAU * place as f32 / WINDOW as f32).cos())
});

/// One or two frequencies; the same twice if it is one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tone {
    pub low: f32,
    pub high: f32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoundFrame {
    /// In decibels of full scale.
    pub level: f32,
    /// Where the frame has hardly anything else.
    pub tone: Option<Tone>,
}

impl SoundFrame {
    pub const SILENCE: Self = Self {
        level: -90.0,
        tone: None,
    };
}

pub struct Spectrum {
    samples: [f32; WINDOW],
    /// How many of them there are.
    filled: usize,
    weighted: [f32; WINDOW],
    lines: [Complex<f32>; LINES],
    scratch: Vec<Complex<f32>>,
}

impl Default for Spectrum {
    /// Before the first sample was silence.
    fn default() -> Self {
        Self {
            samples: [0.0; WINDOW],
            filled: WINDOW - FRAME,
            weighted: [0.0; WINDOW],
            lines: [Complex::default(); LINES],
            scratch: TRANSFORM.make_scratch_vec(),
        }
    }
}

impl std::fmt::Debug for Spectrum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spectrum").finish_non_exhaustive()
    }
}

impl Spectrum {
    /// Takes the next sample. Returns a frame when there is a new one.
    #[inline]
    pub fn hear(&mut self, sample: i16) -> Option<SoundFrame> {
        self.samples[self.filled] = f32::from(sample) / 32_768.0;
        self.filled += 1;
        if self.filled < WINDOW {
            return None;
        }
        let frame = self.judge();
        self.samples.copy_within(FRAME.., 0);
        self.filled = WINDOW - FRAME;
        Some(frame)
    }

    fn judge(&mut self) -> SoundFrame {
        let newest = &self.samples[WINDOW - FRAME..];
        let energy: f32 = newest.iter().map(|sample| sample * sample).sum();
        let level = 10.0 * (energy / FRAME as f32 + 1e-9).log10();
        // Most of a call is not so loud.
        let tone = (level >= LEAST_TONE).then(|| self.tone()).flatten();
        SoundFrame { level, tone }
    }

    fn tone(&mut self) -> Option<Tone> {
        let samples = self.samples.iter().zip(&*WEIGHTS);
        for (weighted, (sample, weight)) in self.weighted.iter_mut().zip(samples) {
            *weighted = sample * weight;
        }
        let (weighted, lines) = (&mut self.weighted, &mut self.lines);
        TRANSFORM
            .process_with_scratch(weighted, lines, &mut self.scratch)
            .ok()?;
        let powers: [f32; LINES] = std::array::from_fn(|line| lines[line].norm_sqr());
        let all: f32 = powers[LOWEST - SIDE..=HIGHEST + SIDE].iter().sum();
        let first = strongest(&powers, None);
        let first_power = power_around(&powers, first);
        if first_power >= all * ONE_TONE {
            let frequency = frequency(&powers, first);
            return Some(Tone {
                low: frequency,
                high: frequency,
            });
        }
        let second = strongest(&powers, Some(first));
        let second_power = power_around(&powers, second);
        if first_power + second_power < all * TWO_TONES || second_power < first_power * WEAKER {
            return None;
        }
        let (low, high) = (first.min(second), first.max(second));
        Some(Tone {
            low: frequency(&powers, low),
            high: frequency(&powers, high),
        })
    }
}

/// The strongest line, apart from another one and what belongs to it.
fn strongest(powers: &[f32; LINES], but: Option<usize>) -> usize {
    let is_other = |line: &usize| but.is_none_or(|but| line.abs_diff(but) > SIDE + 1);
    let lines = (LOWEST..=HIGHEST).filter(is_other);
    let strongest = lines.max_by(|one, other| powers[*one].total_cmp(&powers[*other]));
    strongest.unwrap_or(LOWEST)
}

fn power_around(powers: &[f32; LINES], line: usize) -> f32 {
    powers[line - SIDE..=line + SIDE].iter().sum()
}

/// Between the lines: a tone that Hann's window has spread shows by the stronger neighbour where it is.
fn frequency(powers: &[f32; LINES], line: usize) -> f32 {
    let (before, after) = (powers[line - 1], powers[line + 1]);
    let (side, sign) = if after > before {
        (after, 1.0)
    } else {
        (before, -1.0)
    };
    let ratio = (side / powers[line].max(f32::MIN_POSITIVE)).sqrt();
    let offset = ((2.0 * ratio - 1.0) / (ratio + 1.0)).clamp(0.0, 1.0);
    (line as f32 + sign * offset) * HERTZ_A_LINE
}
