//! Where sounds are drawn. It is a ring: what reaches over the end goes on at the beginning, so a loop has no seam.

use std::f32::consts::TAU;

use crate::RATE;

pub(super) struct Canvas {
    pub samples: Vec<f32>,
}

/// The shape of a note: its partials as (multiple of the frequency, strength, how much faster it dies away).
pub(super) struct Timbre {
    pub partials: &'static [(f32, f32, f32)],
    /// Seconds until the note has risen, and until it has lost 60 dB.
    pub rise: f32,
    pub ring: f32,
}

impl Canvas {
    pub fn of_seconds(seconds: f32) -> Self {
        Self {
            samples: vec![0.0; samples(seconds)],
        }
    }

    /// A struck or plucked note.
    pub fn record(&mut self, at: f32, frequency: f32, strength: f32, timbre: &Timbre) {
        let length = samples(timbre.ring);
        for (multiple, loudness, decay) in timbre.partials {
            let frequency = frequency * multiple;
            // Above this the telephone hears nothing, and the partial would come back as another.
            if frequency > 3600.0 {
                continue;
            }
            let turn = TAU * frequency / RATE as f32;
            let fall = (-6.9 * decay / length as f32).exp();
            let mut level = strength * loudness;
            for index in 0..length {
                let rise = (index as f32 / (timbre.rise * RATE as f32)).min(1.0);
                self.add(at, index, level * rise * (turn * index as f32).sin());
                level *= fall;
            }
        }
    }

    /// A tone that swells and fades over its whole length.
    pub fn swell(&mut self, at: f32, seconds: f32, frequency: f32, strength: f32) {
        let length = samples(seconds);
        let turn = TAU * frequency / RATE as f32;
        for index in 0..length {
            let shape = (index as f32 / length as f32 * TAU / 2.0).sin();
            self.add(
                at,
                index,
                strength * shape * shape * (turn * index as f32).sin(),
            );
        }
    }

    fn add(&mut self, at: f32, index: usize, value: f32) {
        let place = (samples(at) + index) % self.samples.len();
        self.samples[place] += value;
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds of our own pieces"
)]
pub(super) fn samples(seconds: f32) -> usize {
    (seconds * RATE as f32) as usize
}

/// Noise that is always the same.
pub(super) struct Noise(pub u32);

impl Noise {
    /// Between -1 and 1.
    pub fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 as f32 / u32::MAX as f32 * 2.0 - 1.0
    }
}

/// Lets low frequencies pass, 6 dB an octave. It goes round the ring twice, so that its state fits at the seam.
pub(super) fn low_pass(samples: &mut [f32], frequency: f32) {
    let share = 1.0 - (-TAU * frequency / RATE as f32).exp();
    let mut state = 0.0;
    for sample in samples.iter() {
        state += share * (sample - state);
    }
    for sample in samples.iter_mut() {
        state += share * (*sample - state);
        *sample = state;
    }
}

/// Lets high frequencies pass: what the low ones leave.
pub(super) fn high_pass(samples: &mut [f32], frequency: f32) {
    let mut low = samples.to_vec();
    low_pass(&mut low, frequency);
    for (sample, low) in samples.iter_mut().zip(low) {
        *sample -= low;
    }
}
