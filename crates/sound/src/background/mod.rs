//! The platform's own sounds: six backgrounds and a test tune. Made by this code when they are first needed, always the same, from
//! nothing but sines and noise: there is no recording of anybody's in here.

mod canvas;
mod music;
mod nature;

use std::sync::LazyLock;

use crate::{level, telephone};

/// Names by number; number 0 is none.
pub const NAMES: [&str; 6] = ["Brook", "Shore", "Piano", "Music box", "Strings", "Marimba"];

static SOUNDS: LazyLock<[LazyLock<Vec<f32>>; 6]> = LazyLock::new(|| {
    [
        LazyLock::new(|| loudness_one(nature::brook())),
        LazyLock::new(|| loudness_one(nature::shore())),
        LazyLock::new(|| loudness_one(music::piano())),
        LazyLock::new(|| loudness_one(music::music_box())),
        LazyLock::new(|| loudness_one(music::strings())),
        LazyLock::new(|| loudness_one(music::marimba())),
    ]
});

/// A background of 8 kHz that can be repeated without a seam, its mean loudness being 1.
pub fn sound(number: u8) -> Option<&'static [f32]> {
    let index = usize::from(number).checked_sub(1)?;
    SOUNDS.get(index).map(|sound| sound.as_slice())
}

/// What `ccp_marketingcall.wav` plays unless somebody has uploaded another: eight seconds of a friendly tune.
pub fn test_tune() -> Vec<f32> {
    telephone::mastered(music::test_tune(), level::SPEECH_DB)
}

fn loudness_one(mut samples: Vec<f32>) -> Vec<f32> {
    let loudness = level::rms(&samples);
    level::scale(&mut samples, 1.0 / loudness.max(1e-6));
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RATE;

    #[test]
    fn every_background_is_long_even_and_without_a_seam() {
        for number in 1..=6 {
            let sound = sound(number).unwrap();
            assert!(sound.len() >= 15 * RATE as usize, "{number}");
            assert!((level::rms(sound) - 1.0).abs() < 0.01, "{number}");
            // Nothing jumps out: even plucked sounds stay within 18 dB of their mean.
            assert!(level::peak(sound) < 8.0, "{number}: {}", level::peak(sound));
            let step = |pair: &[f32]| (pair[1] - pair[0]).abs();
            let largest = sound.windows(2).map(step).fold(0.0, f32::max);
            let seam = step(&[sound[sound.len() - 1], sound[0]]);
            assert!(seam <= largest, "{number}: {seam} against {largest}");
        }
        assert!(sound(0).is_none() && sound(7).is_none());
    }

    #[test]
    fn the_test_tune_is_about_eight_seconds_and_clips_nowhere() {
        let tune = test_tune();
        assert!((6..=10).contains(&(tune.len() / RATE as usize)));
        assert!(level::peak(&tune) <= level::CEILING);
        assert_eq!(tune, test_tune());
    }
}
