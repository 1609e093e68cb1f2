//! Finds keys in sound by their two tones (ITU-T Q.23), sample by sample. It knows no packets.
//!
//! Every 5 ms the last 15 ms are judged by Goertzel's algorithm. A window is a hit if two tones of the pad are nearly all of its sound, are
//! about equally strong, and have no harmonics, neither of their own nor of a voice. A key is pressed when enough windows in a row are hits of the same key whose tones
//! keep their frequency, which shows in how their phases advance from window to window. Speech and music do all of that for a moment, but
//! hardly for so long.
//!
//! The limits are those of ITU-T Q.24: tones of 40 ms are heard and of 23 ms not, frequencies are right within 1.5 % and wrong beyond
//! 3.5 %, an interruption of 10 ms is none, and a pause of 40 ms is one.

use std::f32::consts::TAU;
use std::sync::LazyLock;

use super::dtmf::{HIGH, LOW, PAD};

const RATE: f32 = 8000.0;
/// Samples that are judged at once, and samples from one judgement to the next.
const WINDOW: usize = 120;
const HOP: usize = 40;
const TONES: usize = LOW.len() + HIGH.len();

/// Hits in a row that make a key: no tone of 25 ms has them, every tone of 40 ms does.
const HITS: u32 = 6;
/// Windows without the tones that end a key: an interruption of 10 ms has at most 5, every pause of 35 ms has them.
const MISSES: u32 = 6;
/// The weakest tone: -33 dBm0. The largest sample is 3.14 dBm0.
const LEAST_AMPLITUDE: f32 = 511.0;
/// The part of all energy that is in the two tones: at first sight, and when their frequencies are known.
const LEAST_PART: f32 = 0.7;
const LEAST_EXACT_PART: f32 = 0.9;
/// The loudness stays within 3 dB.
const STEADY: f32 = 2.0;
/// Telephones send the high tone stronger, and lines take more of it: it may be stronger by 6 dB, and weaker by 11 dB.
const HIGH_OVER_LOW: f32 = 4.0;
const LOW_OVER_HIGH: f32 = 12.6;
/// The second harmonic of the high tone is weaker than the tone by 13 dB. That of a low tone lies among the high tones, where the check of
/// their frequencies finds it.
const HARMONIC: f32 = 0.05;
/// The tones have 19 dB more than what is found where a voice has its other harmonics. Those of a lower pitch are too close to the tones to
/// be told from them.
const OTHER_HARMONIC: f32 = 0.012;
const LOWEST_PITCH: f32 = 150.0;
/// How far a tone may be from its frequency, from one window to the next and on average. Where the third and fourth harmonic of a voice
/// meet the tones of the star, one of them is off by more than 1.8 %.
const HOP_TOLERANCE: f32 = 0.03;
const TOLERANCE: f32 = 0.0175;
/// A key is still pressed while its tones have a quarter of their power, whatever sounds besides.
const STILL_PRESSED: f32 = 0.25;

/// One frequency in a window.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    re: f32,
    im: f32,
}

impl Bin {
    fn power(self) -> f32 {
        self.re * self.re + self.im * self.im
    }

    /// How much further the phase has advanced since `before` than `expected`.
    fn drift(self, before: Bin, expected: f32) -> f32 {
        let re = self.re * before.re + self.im * before.im;
        let im = self.im * before.re - self.re * before.im;
        let drift = im.atan2(re) - expected;
        drift - TAU * (drift / TAU).round()
    }
}

/// What is known before the first sample.
struct Tables {
    /// Hann's window, which keeps the tones apart.
    weights: [f32; WINDOW],
    frequencies: [f32; TONES],
    sines: [f32; TONES],
    cosines: [f32; TONES],
    /// The energy of a tone in a window is its power times this.
    energy_per_power: f32,
    least_energy: f32,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut weights = [0.0; WINDOW];
    for (place, weight) in weights.iter_mut().enumerate() {
        *weight = 0.5 - 0.5 * (TAU * (place as f32 + 0.5) / WINDOW as f32).cos();
    }
    let mut frequencies = [0.0; TONES];
    frequencies[..LOW.len()].copy_from_slice(&LOW);
    frequencies[LOW.len()..].copy_from_slice(&HIGH);
    let angles = frequencies.map(|frequency| TAU * frequency / RATE);
    let sum: f32 = weights.iter().sum();
    let squares: f32 = weights.iter().map(|weight| weight * weight).sum();
    Tables {
        weights,
        frequencies,
        sines: angles.map(f32::sin),
        cosines: angles.map(f32::cos),
        energy_per_power: 2.0 * squares / (sum * sum),
        least_energy: LEAST_AMPLITUDE * LEAST_AMPLITUDE / 2.0 * squares,
    }
});

/// Weights a window, and returns its energy. In lanes, which the compiler can compute at once.
fn weigh(samples: &mut [f32; WINDOW], weights: &[f32; WINDOW]) -> f32 {
    let mut energy = [0.0; 8];
    for (samples, weights) in samples.chunks_exact_mut(8).zip(weights.chunks_exact(8)) {
        for lane in 0..8 {
            samples[lane] *= weights[lane];
            energy[lane] += samples[lane] * samples[lane];
        }
    }
    energy.iter().sum()
}

/// All tones of the pad in a window of samples, already weighted.
fn goertzel(samples: &[f32; WINDOW], tables: &Tables) -> [Bin; TONES] {
    let coefficients = tables.cosines.map(|cosine| 2.0 * cosine);
    let (mut last, mut before) = ([0.0; TONES], [0.0; TONES]);
    for sample in samples {
        for tone in 0..TONES {
            let next = (sample - before[tone]) + coefficients[tone] * last[tone];
            before[tone] = last[tone];
            last[tone] = next;
        }
    }
    let mut bins = [Bin::default(); TONES];
    for (tone, bin) in bins.iter_mut().enumerate() {
        bin.re = last[tone] - before[tone] * tables.cosines[tone];
        bin.im = before[tone] * tables.sines[tone];
    }
    bins
}

/// The power of one frequency.
fn power_at(samples: &[f32; WINDOW], frequency: f32) -> f32 {
    let coefficient = 2.0 * (TAU * frequency / RATE).cos();
    let (mut last, mut before) = (0.0, 0.0);
    for sample in samples {
        (before, last) = (last, (sample - before) + coefficient * last);
    }
    last * last + before * before - coefficient * last * before
}

/// The strongest low and the strongest high tone of a window.
#[derive(Debug, Clone, Copy)]
struct Pair {
    row: usize,
    column: usize,
    low: Bin,
    high: Bin,
    /// The energy of everything in the window.
    energy: f32,
}

impl Pair {
    fn strongest(bins: &[Bin; TONES], energy: f32) -> Self {
        let strongest = |bins: &[Bin]| {
            let mut best = 0;
            for place in 1..bins.len() {
                if bins[place].power() > bins[best].power() {
                    best = place;
                }
            }
            best
        };
        let (low, high) = bins.split_at(LOW.len());
        let (row, column) = (strongest(low), strongest(high));
        Self {
            row,
            column,
            low: low[row],
            high: high[column],
            energy,
        }
    }

    fn key(&self) -> char {
        PAD[self.row][self.column]
    }

    /// Whether these are the tones of a key, and nothing but them.
    fn is_key(&self, samples: &[f32; WINDOW], tables: &Tables) -> bool {
        let (low, high) = (self.low.power(), self.high.power());
        let tones = (low + high) * tables.energy_per_power;
        low.min(high) * tables.energy_per_power >= tables.least_energy
            && high <= low * HIGH_OVER_LOW
            && low <= high * LOW_OVER_HIGH
            && tones >= self.energy * LEAST_PART
            && power_at(samples, 2.0 * tables.high(self.column)) <= high * HARMONIC
            && !self.is_voice(samples, tables)
    }

    /// Whether the tones are harmonics of a voice: neighbours, or with one to three others between them. Then others are beside them too.
    fn is_voice(&self, samples: &[f32; WINDOW], tables: &Tables) -> bool {
        let limit = (self.low.power() + self.high.power()) * OTHER_HARMONIC;
        let (low, high) = (tables.low(self.row), tables.high(self.column));
        (1_u8..=4).any(|steps| {
            let pitch = (high - low) / f32::from(steps);
            let others = (1..steps).map(|step| low + f32::from(step) * pitch);
            let mut others = others.chain([low - pitch, high + pitch]);
            pitch >= LOWEST_PITCH && others.any(|other| power_at(samples, other) > limit)
        })
    }
}

impl Tables {
    fn low(&self, row: usize) -> f32 {
        self.frequencies[row]
    }

    fn high(&self, column: usize) -> f32 {
        self.frequencies[LOW.len() + column]
    }
}

/// Hits of one key in a row.
#[derive(Debug, Clone, Copy)]
struct Run {
    last: Pair,
    hits: u32,
    /// How far the phases have drifted since the first hit.
    low: f32,
    high: f32,
    weakest: f32,
    strongest: f32,
}

/// The phase that a frequency advances by from window to window.
fn advance(frequency: f32) -> f32 {
    TAU * frequency * HOP as f32 / RATE
}

/// A tone beside its frequency has more energy than shows at it, by this factor.
fn correction(drift: f32) -> f32 {
    let bins = drift / TAU * WINDOW as f32 / HOP as f32;
    1.0 + 1.29 * bins * bins
}

impl Run {
    fn begin(pair: Pair) -> Self {
        let energy = pair.energy;
        Self {
            last: pair,
            hits: 1,
            low: 0.0,
            high: 0.0,
            weakest: energy,
            strongest: energy,
        }
    }

    /// `None` if this hit is another key's, or its tones are not steady, or not pure.
    fn go_on(self, pair: Pair, tables: &Tables) -> Option<Self> {
        let same = (self.last.row, self.last.column) == (pair.row, pair.column);
        let (low, high) = (
            advance(tables.low(pair.row)),
            advance(tables.high(pair.column)),
        );
        let low_drift = pair.low.drift(self.last.low, low);
        let high_drift = pair.high.drift(self.last.high, high);
        let steady =
            low_drift.abs() <= low * HOP_TOLERANCE && high_drift.abs() <= high * HOP_TOLERANCE;
        let tones =
            pair.low.power() * correction(low_drift) + pair.high.power() * correction(high_drift);
        let part = tones * tables.energy_per_power / pair.energy;
        let weakest = self.weakest.min(pair.energy);
        let strongest = self.strongest.max(pair.energy);
        let goes_on = same && steady && part >= LEAST_EXACT_PART && strongest <= weakest * STEADY;
        goes_on.then(|| Self {
            last: pair,
            hits: self.hits.saturating_add(1),
            low: self.low + low_drift,
            high: self.high + high_drift,
            weakest,
            strongest,
        })
    }

    /// Whether the frequencies are right on average. A voice that glides through them is at them for a moment.
    fn keeps_frequencies(&self, tables: &Tables) -> bool {
        let hops = (self.hits - 1) as f32;
        let low = advance(tables.low(self.last.row)) * TOLERANCE;
        let high = advance(tables.high(self.last.column)) * TOLERANCE;
        self.low.abs() <= low * hops && self.high.abs() <= high * hops
    }
}

/// A key that is being pressed.
#[derive(Debug, Clone, Copy)]
struct Held {
    pair: Pair,
    misses: u32,
}

#[derive(Debug)]
pub struct ToneDetector {
    samples: [f32; WINDOW],
    /// How many of them there are.
    filled: usize,
    run: Option<Run>,
    held: Option<Held>,
}

impl Default for ToneDetector {
    fn default() -> Self {
        Self {
            samples: [0.0; WINDOW],
            filled: 0,
            run: None,
            held: None,
        }
    }
}

impl ToneDetector {
    /// Takes the next sample. Returns a key when it has been pressed for long enough, once.
    #[inline]
    pub fn hear(&mut self, sample: i16) -> Option<char> {
        self.samples[self.filled] = f32::from(sample);
        self.filled += 1;
        if self.filled < WINDOW {
            return None;
        }
        let pressed = self.judge();
        self.samples.copy_within(HOP.., 0);
        self.filled = WINDOW - HOP;
        pressed
    }

    /// What came until now is not followed by what comes next. A key that is held may go on.
    pub fn interrupt(&mut self) {
        self.filled = 0;
        self.run = None;
    }

    fn judge(&mut self) -> Option<char> {
        let tables = &*TABLES;
        let mut samples = self.samples;
        let energy = weigh(&mut samples, &tables.weights);
        // Two tones that are loud enough have more than this; most of a call is not.
        if energy < 2.0 * tables.least_energy {
            self.run = None;
            self.hold(false);
            return None;
        }
        let bins = goertzel(&samples, tables);
        let pair = Pair::strongest(&bins, energy);
        let is_hit = pair.is_key(&samples, tables);
        self.run = is_hit.then(|| {
            let run = self.run.and_then(|run| run.go_on(pair, tables));
            run.unwrap_or_else(|| Run::begin(pair))
        });
        let still_held = self
            .held
            .is_some_and(|held| held.is_in(&bins) || (is_hit && held.pair.key() == pair.key()));
        self.hold(still_held);
        self.press(tables)
    }

    fn hold(&mut self, still_held: bool) {
        self.held = self.held.and_then(|held| {
            let misses = if still_held { 0 } else { held.misses + 1 };
            (misses < MISSES).then_some(Held { misses, ..held })
        });
    }

    /// The key that is pressed now, unless it was before.
    fn press(&mut self, tables: &Tables) -> Option<char> {
        let run = self.run.filter(|run| run.hits >= HITS)?;
        let pair = run.last;
        if !run.keeps_frequencies(tables) {
            self.run = Some(Run::begin(pair));
            return None;
        }
        let is_held = self.held.is_some_and(|held| held.pair.key() == pair.key());
        if is_held {
            return None;
        }
        self.held = Some(Held { pair, misses: 0 });
        Some(pair.key())
    }
}

impl Held {
    fn is_in(&self, bins: &[Bin; TONES]) -> bool {
        let (low, high) = bins.split_at(LOW.len());
        let Pair { row, column, .. } = self.pair;
        low[row].power() >= self.pair.low.power() * STILL_PRESSED
            && high[column].power() >= self.pair.high.power() * STILL_PRESSED
    }
}

#[cfg(test)]
mod tests;
