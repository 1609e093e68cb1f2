//! Levels: of samples, in decibels, and how they are kept below the ceiling. How loud a sound is to a listener: `loudness`.

use std::collections::VecDeque;

use crate::RATE;

/// The loudest sample that leaves this crate, a little below full scale so that no codec clips it.
pub const CEILING: f32 = 0.95;

/// How loud every prompt is, in LUFS: what telephone announcements use, and broadcasts too.
pub const SPEECH_DB: f32 = -23.0;

/// Frames this much quieter than the loudest are pauses, not speech.
const PAUSE_DB: f32 = -35.0;
/// 20 ms.
const FRAME: usize = RATE as usize / 50;
/// The limiter looks 20 ms ahead and back, so that its gain moves over syllables and not over single waves.
const REACH: usize = RATE as usize / 50;

pub fn from_db(db: f32) -> f32 {
    10.0_f32.powf(db / 20.0)
}

pub fn to_db(amplitude: f32) -> f32 {
    20.0 * amplitude.max(f32::MIN_POSITIVE).log10()
}

pub fn peak(samples: &[f32]) -> f32 {
    samples
        .iter()
        .fold(0.0, |peak, sample| sample.abs().max(peak))
}

pub fn rms(samples: &[f32]) -> f32 {
    let energy: f64 = samples
        .iter()
        .map(|sample| f64::from(sample * sample))
        .sum();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a level needs no more than 24 bits"
    )]
    let rms = (energy / samples.len().max(1) as f64).sqrt() as f32;
    rms
}

/// Loudness while something is heard: pauses do not count, or a text with many commas would be spoken louder.
pub fn active_rms(samples: &[f32]) -> f32 {
    let frames: Vec<f32> = samples.chunks(FRAME).map(rms).collect();
    let loudest = frames.iter().copied().fold(0.0, f32::max);
    let active: Vec<f32> = frames
        .into_iter()
        .filter(|level| *level > loudest * from_db(PAUSE_DB))
        .collect();
    rms(&active)
}

pub fn scale(samples: &mut [f32], gain: f32) {
    for sample in samples {
        *sample *= gain;
    }
}

/// Keeps a whole file below the ceiling with one gain for all of it: nothing is clipped and nothing pumps.
pub fn fit(samples: &mut [f32]) {
    let peak = peak(samples);
    if peak > CEILING {
        scale(samples, CEILING / peak);
    }
}

/// Keeps what was made louder below the ceiling. The gain is the least that any sample nearby needs, averaged over the same reach:
/// so it never exceeds what a sample needs, and has no corners that would be heard.
pub fn limit(samples: &mut [f32]) {
    if peak(samples) <= CEILING {
        return;
    }
    let needed = samples
        .iter()
        .map(|sample| (CEILING / sample.abs().max(CEILING)).min(1.0));
    let gains = averaged(&least_nearby(&needed.collect::<Vec<_>>()));
    for (sample, gain) in samples.iter_mut().zip(gains) {
        *sample = (*sample * gain).clamp(-CEILING, CEILING);
    }
}

/// The smallest value within the reach on either side, each value being looked at a constant number of times.
fn least_nearby(values: &[f32]) -> Vec<f32> {
    let mut rising: VecDeque<usize> = VecDeque::new();
    let mut least = Vec::with_capacity(values.len());
    for end in 0..values.len() + REACH {
        if end < values.len() {
            while rising.back().is_some_and(|at| values[*at] >= values[end]) {
                rising.pop_back();
            }
            rising.push_back(end);
        }
        let Some(centre) = end.checked_sub(REACH) else {
            continue;
        };
        while rising.front().is_some_and(|at| *at + REACH < centre) {
            rising.pop_front();
        }
        least.push(rising.front().map_or(1.0, |at| values[*at]));
    }
    least
}

/// The mean over the reach on either side; beyond the ends the last value goes on.
fn averaged(values: &[f32]) -> Vec<f32> {
    let at = |place: isize| {
        let last = values.len() - 1;
        values[usize::try_from(place).map_or(0, |place| place.min(last))]
    };
    let reach = REACH.cast_signed();
    let mut sum: f64 = (-reach..=reach).map(|place| f64::from(at(place))).sum();
    let count = (2 * REACH + 1) as f64;
    let mut means = Vec::with_capacity(values.len());
    for centre in 0..values.len().cast_signed() {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a gain needs no more than 24 bits"
        )]
        means.push((sum / count) as f32);
        sum += f64::from(at(centre + reach + 1)) - f64::from(at(centre - reach));
    }
    means
}

/// Whole samples for the codec.
#[expect(
    clippy::cast_possible_truncation,
    reason = "clamped to the range first"
)]
pub fn to_whole(samples: &[f32]) -> Vec<i16> {
    samples
        .iter()
        .map(|sample| (sample * 32767.0).round().clamp(-32768.0, 32767.0) as i16)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limiter_clips_nothing_and_leaves_what_is_far_from_a_peak_alone() {
        let tone = |at: usize| (at as f32 * 0.7).sin();
        let mut samples: Vec<f32> = (0..16_000).map(tone).collect();
        scale(&mut samples[8_000..8_400], 4.0);
        let before = samples.clone();
        limit(&mut samples);
        assert!(peak(&samples) <= CEILING);
        // The loud part keeps its shape: a sine stays a sine, only smaller.
        let ratio: Vec<f32> = (8_100..8_300)
            .filter(|at| before[*at].abs() > 0.5)
            .map(|at| samples[at] / before[at])
            .collect();
        let (low, high) = (
            ratio.iter().copied().fold(f32::MAX, f32::min),
            ratio.iter().copied().fold(0.0, f32::max),
        );
        assert!(high - low < 0.02, "{low} to {high}");
        let quiet: Vec<f32> = (0..100).map(|at| 0.1 * tone(at)).collect();
        let mut same = quiet.clone();
        limit(&mut same);
        assert_eq!(same, quiet);
    }

    #[test]
    fn pauses_do_not_count_as_speech() {
        let tone: Vec<f32> = (0..8_000).map(|at| 0.1 * (at as f32 * 0.7).sin()).collect();
        let mut paused = tone.clone();
        paused.extend(vec![0.0; 8_000]);
        paused.extend(&tone);
        let ratio = active_rms(&paused) / active_rms(&tone);
        assert!((0.95..1.05).contains(&ratio), "{ratio}");
        assert!(active_rms(&[]).abs() < f32::EPSILON);
        assert!(active_rms(&[0.0; 500]).abs() < f32::EPSILON);
    }
}
