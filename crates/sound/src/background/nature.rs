//! Water: noise, shaped.

use std::f32::consts::TAU;

use super::canvas::{Canvas, Noise, Timbre, high_pass, low_pass};
use crate::RATE;

const DROP: Timbre = Timbre {
    partials: &[(1.0, 1.0, 1.0), (2.3, 0.2, 1.6)],
    rise: 0.004,
    ring: 0.12,
};

fn noise(seconds: f32, seed: u32) -> Canvas {
    let mut canvas = Canvas::of_seconds(seconds);
    let mut noise = Noise(seed);
    canvas.samples.fill_with(|| noise.next());
    canvas
}

/// How loud something is at a place of a ring, going up and down a whole number of times.
fn tide(at: usize, length: usize, times: f32, phase: f32) -> f32 {
    0.5 - 0.5 * (TAU * (times * at as f32 / length as f32 + phase)).cos()
}

/// A small stream: soft rushing with a drop now and then.
pub(super) fn brook() -> Vec<f32> {
    let mut canvas = noise(20.0, 0x51a2_7e31);
    low_pass(&mut canvas.samples, 700.0);
    low_pass(&mut canvas.samples, 1100.0);
    high_pass(&mut canvas.samples, 250.0);
    let length = canvas.samples.len();
    for (at, sample) in canvas.samples.iter_mut().enumerate() {
        *sample *= 0.7 + 0.2 * tide(at, length, 7.0, 0.1) + 0.1 * tide(at, length, 17.0, 0.6);
    }
    let mut chance = Noise(0x0bad_cafe);
    for index in 0..70_u8 {
        let at = f32::from(index) / 3.5 + 0.12 * (chance.next() + 1.0);
        let frequency = 900.0 + 500.0 * chance.next();
        canvas.record(at, frequency, 0.05 + 0.03 * chance.next(), &DROP);
    }
    canvas.samples
}

/// Waves on a flat shore, one every six or seven seconds.
pub(super) fn shore() -> Vec<f32> {
    let mut canvas = noise(26.0, 0x2c1b_3c6d);
    low_pass(&mut canvas.samples, 500.0);
    let mut foam = noise(26.0, 0x1234_5678).samples;
    high_pass(&mut foam, 900.0);
    low_pass(&mut foam, 1800.0);
    let length = canvas.samples.len();
    for (at, (sample, foam)) in canvas.samples.iter_mut().zip(foam).enumerate() {
        let wave = tide(at, length, 4.0, 0.3);
        let late = tide(at + RATE as usize / 2, length, 4.0, 0.3);
        *sample = *sample * (0.4 + 0.6 * wave) + foam * 0.12 * late * late;
    }
    canvas.samples
}
