//! Speech at another speed or pitch, for voices that have only one.
//!
//! WSOLA: the sound is taken apart into short pieces that overlap, and put together again with more or less of each. Each piece is taken where it
//! goes on best from the one before, so that the waves of the voice meet and its pitch stays.

use crate::RATE;
use crate::resample::resample;

/// Half a piece: 15 ms. A piece holds some periods of any voice.
const HALF: usize = RATE as usize * 15 / 1000;
const PIECE: usize = 2 * HALF;
/// A piece may be taken this much earlier or later: a period of a deep voice.
const REACH: usize = RATE as usize / 110;
/// Less than this is not heard.
const NOTHING: f32 = 0.005;
/// Rates of sound are taken in such steps, in which the resampler has little to do.
const RATE_STEP: f32 = 100.0;

/// The same voice, so many times as fast.
pub fn at_tempo(samples: &[f32], tempo: f32) -> Vec<f32> {
    if (tempo - 1.0).abs() < NOTHING || tempo <= 0.0 || samples.len() <= PIECE {
        return samples.to_vec();
    }
    let wanted = place(samples.len() as f32 / tempo);
    let mut made = vec![0.0; wanted + PIECE];
    let last = samples.len() - PIECE;
    let mut goes_on = 0;
    for begin in (0..wanted).step_by(HALF) {
        let ideal = place(begin as f32 * tempo).min(last);
        let from = match begin {
            0 => 0,
            _ => best(samples, goes_on, ideal, last),
        };
        let piece = &samples[from..from + PIECE];
        for (at, (sample, out)) in piece.iter().zip(&mut made[begin..]).enumerate() {
            *out += sample * window(at);
        }
        goes_on = (from + HALF).min(last);
    }
    made.truncate(wanted);
    made
}

/// The same words in the same time, higher by this factor.
pub fn at_pitch(samples: &[f32], factor: f32) -> Vec<f32> {
    if (factor - 1.0).abs() < NOTHING || factor <= 0.0 {
        return samples.to_vec();
    }
    // Played faster it is higher, and shorter by as much.
    let steps = (RATE as f32 * factor / RATE_STEP).round().max(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of some thousands"
    )]
    let rate = (steps * RATE_STEP) as u32;
    let higher = resample(rate, RATE, samples.len(), &mut |first, out| {
        let rest = samples.get(first..).unwrap_or_default();
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        count
    });
    at_tempo(&higher, RATE as f32 / rate as f32)
}

/// Where near `ideal` the sound is most like what follows `goes_on`.
fn best(samples: &[f32], goes_on: usize, ideal: usize, last: usize) -> usize {
    let wanted = &samples[goes_on..goes_on + HALF];
    let places = ideal.saturating_sub(REACH)..=(ideal + REACH).min(last);
    let likeness = |from: usize| {
        let there = &samples[from..from + HALF];
        let (mut both, mut energy) = (0.0, 1e-9);
        for (a, b) in wanted.iter().zip(there) {
            both += a * b;
            energy += b * b;
        }
        both / energy.sqrt()
    };
    let likely = places.map(|from| (likeness(from), from));
    likely
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(ideal, |(_, from)| from)
}

/// Rises and falls so that two pieces that overlap are as loud as one.
fn window(at: usize) -> f32 {
    let turn = std::f32::consts::TAU * at as f32 / PIECE as f32;
    0.5 - 0.5 * turn.cos()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in a sound, which is not negative"
)]
fn place(samples: f32) -> usize {
    samples.round().max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::rms;

    /// A voiced sound with overtones.
    fn voice(hertz: f32, seconds: f32) -> Vec<f32> {
        let turn = std::f32::consts::TAU * hertz / RATE as f32;
        let wave = |at: usize| {
            let phase = at as f32 * turn;
            0.2 * (phase.sin() + 0.5 * (2.0 * phase).sin() + 0.3 * (3.0 * phase).sin())
        };
        (0..place(seconds * RATE as f32)).map(wave).collect()
    }

    /// By the shift at which a sound is most like itself.
    fn pitch(samples: &[f32]) -> f32 {
        let middle = &samples[samples.len() / 4..samples.len() * 3 / 4];
        let likeness = |shift: usize| -> f32 {
            let pairs = middle.iter().zip(&middle[shift..]);
            pairs.map(|(a, b)| a * b).sum::<f32>() / (middle.len() - shift) as f32
        };
        let shifts = RATE as usize / 400..RATE as usize / 82;
        let shift = shifts.max_by(|a, b| likeness(*a).total_cmp(&likeness(*b)));
        RATE as f32 / shift.unwrap() as f32
    }

    #[test]
    fn another_tempo_changes_the_length_and_nothing_else() {
        let sound = voice(125.0, 1.0);
        for tempo in [0.5, 0.8, 1.25, 2.0] {
            let made = at_tempo(&sound, tempo);
            let length = made.len() as f32 / sound.len() as f32;
            assert!((length * tempo - 1.0).abs() < 0.01, "{tempo}: {length}");
            assert!((pitch(&made) / 125.0 - 1.0).abs() < 0.04, "{tempo}");
            let loudness = rms(&made[PIECE..made.len() - PIECE]) / rms(&sound);
            assert!((0.9..1.1).contains(&loudness), "{tempo}: {loudness}");
        }
        assert_eq!(at_tempo(&sound, 1.0), sound);
        assert_eq!(at_tempo(&sound[..10], 2.0).len(), 10);
        assert!(at_tempo(&[], 0.5).is_empty());
    }

    #[test]
    fn another_pitch_changes_the_pitch_and_not_the_length() {
        let sound = voice(125.0, 1.0);
        for factor in [0.7, 0.9, 1.1, 1.45] {
            let made = at_pitch(&sound, factor);
            let length = made.len() as f32 / sound.len() as f32;
            assert!((length - 1.0).abs() < 0.01, "{factor}: {length}");
            let heard = pitch(&made) / 125.0;
            assert!((heard / factor - 1.0).abs() < 0.05, "{factor}: {heard}");
        }
        assert_eq!(at_pitch(&sound, 1.0), sound);
    }
}
