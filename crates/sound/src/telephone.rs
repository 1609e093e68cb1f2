//! Makes a sound ready for a telephone: what the line does not carry is left out, soft syllables come closer to loud ones, all prompts are as loud as each other, and
//! nothing is clipped.
//!
//! G.711 has about 38 dB of signal over its own noise wherever the sound is loud enough, and less below that: a sound with a small range sounds cleaner.

use std::f64::consts::FRAC_1_SQRT_2;

use crate::filter::{Filter, run_all};
use crate::{RATE, level, loudness};

/// Below this a telephone has nothing, and what is there would only take away room. Above, everything counts up to the end of what 8000 samples a second
/// have: a gentle end at 3600 Hz made a recogniser take every second "six" for an "eight".
const LOWEST: f64 = 180.0;

/// What is louder than this, against the mean, is made softer: of two decibels more, one is left.
const FROM_MEAN: f32 = -4.0;
const RATIO: f32 = 2.0;
/// The bend between the two is as wide as this.
const KNEE: f32 = 6.0;
/// The gain is counted anew for each millisecond, follows a rise within 10 ms and a fall within 150 ms.
const STEP: usize = RATE as usize / 1000;
const RISE: f32 = 10.0;
const FALL: f32 = 150.0;

/// A recording that is softer than this by far is not made as loud as others: it would be noise.
const MAX_GAIN: f32 = 30.0;

/// `target` is the loudness in LUFS. What nobody hears stays as it is.
pub fn mastered(mut samples: Vec<f32>, target: f32) -> Vec<f32> {
    limit_band(&mut samples);
    let Some(found) = loudness::integrated(&samples) else {
        return samples;
    };
    compress(&mut samples, found);
    let found = loudness::integrated(&samples).unwrap_or(found);
    at_loudness(samples, found, target)
}

/// The same for a single syllable: it has no others to come closer to, and its beginning and end tell it from others.
pub fn mastered_syllable(mut samples: Vec<f32>, target: f32) -> Vec<f32> {
    limit_band(&mut samples);
    match loudness::integrated(&samples) {
        Some(found) => at_loudness(samples, found, target),
        None => samples,
    }
}

fn at_loudness(mut samples: Vec<f32>, found: f32, target: f32) -> Vec<f32> {
    let gain = (target - found).min(MAX_GAIN);
    level::scale(&mut samples, level::from_db(gain));
    level::limit(&mut samples);
    samples
}

fn limit_band(samples: &mut [f32]) {
    let mut filters = [Filter::high_pass(LOWEST, FRAC_1_SQRT_2)];
    for sample in samples {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a sample needs no more than 24 bits"
        )]
        let limited = run_all(&mut filters, f64::from(*sample)) as f32;
        *sample = limited;
    }
}

/// `mean` is the loudness of the whole.
fn compress(samples: &mut [f32], mean: f32) {
    let threshold = mean + FROM_MEAN;
    let (rise, fall) = ((-1.0 / RISE).exp(), (-1.0 / FALL).exp());
    let mut power = 0.0_f32;
    let mut gain = 1.0_f32;
    for step in samples.chunks_mut(STEP) {
        let now = level::rms(step).powi(2);
        let keep = if now > power { rise } else { fall };
        power = now + (power - now) * keep;
        let next = level::from_db(reduction(10.0 * (power + 1e-9).log10() - threshold));
        let slope = (next - gain) / STEP as f32;
        for sample in step {
            gain += slope;
            *sample *= gain;
        }
    }
}

/// The gain in decibels of what is so far over the threshold.
fn reduction(over: f32) -> f32 {
    let slope = 1.0 / RATIO - 1.0;
    if over <= -KNEE / 2.0 {
        0.0
    } else if over >= KNEE / 2.0 {
        slope * over
    } else {
        slope * (over + KNEE / 2.0).powi(2) / (2.0 * KNEE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: f32 = -23.0;

    /// Syllables of a voice, each as loud as said.
    fn voice(decibels: &[f32]) -> Vec<f32> {
        let syllable = RATE as usize / 4;
        let mut samples = Vec::new();
        for level in decibels {
            let gain = level::from_db(*level);
            for place in 0..syllable {
                let within = place as f32 / syllable as f32;
                let phase = place as f32 * 0.12;
                let sum: f32 = (1..12_u8).map(|n| (phase * f32::from(n)).sin()).sum();
                samples.push(sum / 4.0 * gain * (within * std::f32::consts::PI).sin());
            }
        }
        samples
    }

    fn heard(samples: &[f32]) -> f32 {
        loudness::integrated(samples).unwrap()
    }

    #[test]
    fn every_sound_is_as_loud_as_the_others() {
        for gain in [-25.0, -10.0, 0.0, 10.0] {
            let mut samples = voice(&[-10.0, -16.0, -12.0, -10.0, -20.0, -9.0]);
            level::scale(&mut samples, level::from_db(gain));
            let mastered = mastered(samples, TARGET);
            let loudness = heard(&mastered);
            assert!((loudness - TARGET).abs() < 0.3, "{gain}: {loudness}");
            assert!(level::peak(&mastered) <= level::CEILING);
        }
    }

    #[test]
    fn soft_syllables_come_closer_to_loud_ones() {
        let levels = [-6.0, -18.0, -6.0, -18.0, -6.0, -18.0, -6.0, -18.0];
        let samples = voice(&levels);
        let mastered = mastered(samples.clone(), TARGET);
        let syllable = RATE as usize / 4;
        let range = |samples: &[f32]| {
            let part = |place: usize| level::rms(&samples[place * syllable..][..syllable]);
            20.0 * (part(4) / part(5)).log10()
        };
        let (before, after) = (range(&samples), range(&mastered));
        assert!((before - 12.0).abs() < 0.5, "{before}");
        assert!((6.0..11.0).contains(&after), "{after}");
    }

    #[test]
    fn what_a_telephone_does_not_carry_is_left_out() {
        let tone = |hertz: f32| -> Vec<f32> {
            let turn = std::f32::consts::TAU * hertz / RATE as f32;
            (0..16_000)
                .map(|place| (place as f32 * turn).sin() * 0.2)
                .collect()
        };
        let left = |hertz: f32| {
            let mut samples = tone(hertz);
            limit_band(&mut samples);
            20.0 * (level::rms(&samples) / level::rms(&tone(hertz))).log10()
        };
        assert!(left(50.0) < -20.0, "{}", left(50.0));
        for hertz in [300.0, 1000.0, 2500.0, 3300.0, 3900.0] {
            assert!(
                (-3.0..0.5).contains(&left(hertz)),
                "{hertz}: {}",
                left(hertz)
            );
        }
    }

    #[test]
    fn silence_stays_silence_and_a_whisper_is_not_blown_up() {
        assert!(mastered(vec![], TARGET).is_empty());
        assert_eq!(mastered(vec![0.0; 4000], TARGET), vec![0.0; 4000]);
        let mut soft = voice(&[-10.0; 8]);
        level::scale(&mut soft, level::from_db(-50.0));
        let before = heard(&soft);
        let after = heard(&mastered(soft, TARGET));
        assert!(after - before < MAX_GAIN + 0.5, "{before} to {after}");
    }
}
